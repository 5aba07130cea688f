"""Writing with a real Spark: rows as librdkafka reads them, failing tasks, bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import udf

from skylog.client.partitioner import partition_of_key
from skylog.testing import Broker
from tests.spark.support import Topics, rows_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.timeout(300)
Writer = Callable[..., DataFrameWriter]


@pytest.fixture
def writer(broker: Broker) -> Writer:
    """``writer(df, topic="t", …)``: a batch writer with options."""

    def make(frame: DataFrame, **options: str) -> DataFrameWriter:
        given = {"kafka.bootstrap.servers": broker.bootstrap, **options}
        return frame.write.format("skylog").options(**given).mode("append")

    return make


def numbers(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("cast(id as string) as value")


def values(topics: Topics, topic: str, partitions: int = 2) -> Counter[bytes | None]:
    return Counter(row.value for row in topics.rows(topic, partitions))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_columns_as_librdkafka_reads_them(
    spark: SparkSession, topics: Topics, writer: Writer, codec: str
) -> None:
    topic = topics.create(f"sink-{codec}", 3)
    frame = spark.range(0, 300, 1, 3).selectExpr(
        "case when id % 7 > 0 then cast(concat('key-', id) as binary) end as key",
        "case when id % 5 > 0 then repeat(cast(id as string), cast(id % 30 as int)) end as value",
        f"'{topic}' as topic",
        "case when id % 11 = 0 then 2 end as partition",
        "timestamp_millis(1700000000000 + id) as timestamp",
        """case when id % 3 = 0 then array(
             named_struct('key', 'h', 'value', cast(string(id) as binary)),
             named_struct('key', 'n', 'value', cast(null as binary))) end as headers""",
        "id as offset",
    )
    writer(frame, compression=codec).save()
    found = topics.rows(topic, 3)
    assert len(found) == 300
    by_id = {row.timestamp - 1_700_000_000_000: row for row in found}
    expected = {row["offset"]: row for row in frame.collect()}
    assert by_id.keys() == expected.keys()
    for number, row in by_id.items():
        want = expected[number]
        assert row.key == (None if want["key"] is None else bytes(want["key"]))
        assert row.value == (None if want["value"] is None else want["value"].encode())
        headers = want["headers"]
        assert row.headers == (
            None if not headers else (("h", bytes(headers[0]["value"])), ("n", None))
        )
        if want["partition"] is not None:
            assert row.partition == 2
        elif row.key is not None:
            assert row.partition == partition_of_key(row.key, 3)


def test_what_was_read_can_be_written(
    spark: SparkSession, topics: Topics, writer: Writer, reader: Any
) -> None:
    """A topic copied with its partitions, headers and times."""
    first, second = topics.create("sink-read", 2), topics.create("sink-copy", 2)
    writer(numbers(spark, 100), topic=first).save()
    frame = reader(subscribe=first, includeHeaders="true").load()
    writer(frame.drop("topic"), topic=second).save()
    read = rows_of(reader(subscribe=second, includeHeaders="true").load())
    assert [row._replace(topic=first) for row in read] == rows_of(frame)
    assert read == topics.rows(second, 2)


def test_classic_and_diskless_topics_in_one_write(
    spark: SparkSession, topics: Topics, writer: Writer
) -> None:
    topics.create("both-classic", 2, diskless=False)
    topics.create("both-diskless", 2)
    frame = spark.range(0, 200, 1, 2).selectExpr(
        "cast(id as string) as value",
        "case when id % 2 = 0 then 'both-classic' else 'both-diskless' end as topic",
    )
    writer(frame).save()
    for name, rest in (("both-classic", 0), ("both-diskless", 1)):
        assert values(topics, name) == Counter(b"%d" % i for i in range(rest, 200, 2))


def test_no_rows_and_empty_partitions(spark: SparkSession, topics: Topics, writer: Writer) -> None:
    topic = topics.create("sink-empty", 2)
    writer(numbers(spark, 0), topic=topic).save()
    writer(numbers(spark, 10, 4).where("value = '3'"), topic=topic).save()
    assert values(topics, topic) == Counter([b"3"])


def failing(directory: Path) -> Any:
    """A function that fails the first attempt of the task with row 7."""
    mark = directory / "failed"

    def fail_once(value):  # type: ignore[no-untyped-def]  # Spark judges functions by their hints
        if value == "7" and not mark.exists():
            mark.touch()
            raise RuntimeError("the task fails once")
        return value

    return udf(fail_once, "string")


def test_a_failed_write_leaves_nothing(
    spark: SparkSession, topics: Topics, writer: Writer, tmp_path: Path
) -> None:
    topic = topics.create("sink-failed", 2)
    fail_once = failing(tmp_path)
    frame = numbers(spark, 100, 4).select(fail_once("value").alias("value"))
    with pytest.raises(Exception, match="the task fails once"):
        writer(frame, topic=topic, writeId="failed").save()
    assert not values(topics, topic)
    # Again with the same name: now the tasks succeed.
    writer(frame, topic=topic, writeId="failed").save()
    assert values(topics, topic) == Counter(b"%d" % i for i in range(100))


def run_job(program: str, *arguments: str) -> bytes:
    """The output of a job in a separate process."""
    ran = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode(errors="replace")[-3000:]
    return ran.stderr


def test_tasks_that_are_tried_again_or_run_twice_count_once(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create("sink-tasks", 2)
    said = run_job("sink_tasks.py", broker.bootstrap, topic, str(tmp_path))
    assert b"the task fails once" in said
    assert values(topics, topic) == Counter(b"%d" % i for i in range(100))


def test_a_write_with_a_name_is_done_once(
    spark: SparkSession, topics: Topics, writer: Writer
) -> None:
    topic = topics.create("sink-named", 2)
    for _ in range(3):
        writer(numbers(spark, 50), topic=topic, writeId="nightly").save()
    assert values(topics, topic) == Counter(b"%d" % i for i in range(50))
    writer(numbers(spark, 50), topic=topic, writeId="another").save()
    writer(numbers(spark, 50), topic=topic).save()
    assert set(values(topics, topic).values()) == {3}


def bad_writes() -> list[tuple[str, str, dict[str, str], str]]:
    """(name, SQL of the columns, options, error)"""
    return [
        ("no-value", "cast(id as string) as key", {}, "no column value"),
        ("value-type", "id as value", {}, "column value is bigint"),
        ("partition", "'x' as value, 5 as partition", {}, "partition 5 of topic .* has 2 part"),
        ("negative", "'x' as value, -1 as partition", {}, "partition -1 of topic"),
        (
            "null-topic",
            "'x' as value, if(id = 9, null, 'T') as topic",
            {"topic": ""},
            "topic is nu",
        ),
        (
            "too-large",
            "if(id = 9, repeat('x', 5000), 'x') as value",
            {},
            "max.message.bytes is 2000",
        ),
        ("missing", "'x' as value", {"topic": "nowhere"}, "topic nowhere does not exist"),
        ("option", "'x' as value", {"wrteid": "x"}, r"wrteid \(is it writeId\?\)"),
        ("headers", "'x' as value, array('a') as headers", {}, "column headers is array<string>"),
        ("codec", "'x' as value", {"compression": "rar"}, "option compression is 'rar'"),
        ("old", "'x' as value, timestamp_millis(-5) as timestamp", {}, "timestamp -5 ms"),
        ("broker", "'x' as value", {"kafka.bootstrap.servers": "127.0.0.1:1"}, "127.0.0.1:1"),
    ]


@pytest.mark.parametrize(("name", "columns", "options", "what"), bad_writes())
def test_bad_input_is_named_and_nothing_is_written(
    spark: SparkSession,
    topics: Topics,
    writer: Writer,
    name: str,
    columns: str,
    options: dict[str, str],
    what: str,
) -> None:
    topic = topics.create(f"bad-{name}", 2, max_message_bytes="2000")
    given = {"topic": topic, "kafka.default.api.timeout.ms": "2000", **options}
    if given["topic"] == "":
        del given["topic"]
    columns = columns.replace("'T'", f"'{topic}'")
    frame = spark.sql(f"select {columns} from range(0, 10, 1, 2)")
    with pytest.raises(Exception, match=what):
        writer(frame, **given).save()
    assert not topics.rows(topic, 2)


def test_topics_only_grow(
    spark: SparkSession, broker: Broker, topics: Topics, writer: Writer
) -> None:
    topic = topics.create("sink-modes", 1)
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    with pytest.raises(Exception, match="mode overwrite: rows of a topic cannot be replaced"):
        writer(numbers(spark, 3), topic=topic).mode("overwrite").save()
    # Spark's error for a write without a mode, for every data source in Python.
    bare = numbers(spark, 3).write.format("skylog").options(**options, topic=topic)
    with pytest.raises(Exception, match=r'"ErrorIfExists" mode. Please use either the "Append"'):
        bare.save()
    assert not topics.rows(topic, 1)
