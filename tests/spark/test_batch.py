"""Batch reads, compared row by row with what librdkafka consumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrameReader, SparkSession

import skylog
from skylog.spark import explain, register
from skylog.testing import Broker
from tests.spark.secured import Secured
from tests.spark.support import Message, Row, Topics, rows_of

Reader = Callable[..., DataFrameReader]
T0 = 1_700_000_000_000
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def mixed(count: int, partitions: int) -> list[Message]:
    """Nulls, tombstones, empty values, headers with and without value, unordered timestamps."""
    found = []
    for i in range(count):
        headers: list[tuple[str, bytes | None]] = []
        if i % 3 == 0:
            headers = [("a", b"x" * (i % 5)), ("none", None), ("a", b"again")]
        found.append(
            Message(
                None if i % 11 == 0 else b"v%d" % i * (i % 20),
                None if i % 7 == 0 else b"k%d" % (i % 50),
                i % partitions,
                T0 + (i * 7919) % 100_000,
                headers,
            )
        )
    return found


@pytest.fixture(scope="module")
def rising(topics: Topics) -> str:
    """Two partitions in ten batches each, of 20 records of 1 KiB; one record every second."""
    name = topics.create("rising", 2)
    for start in range(0, 400, 40):
        messages = [
            Message(b"%01024d" % i, b"k%d" % i, i % 2, T0 + 1000 * i)
            for i in range(start, start + 40)
        ]
        topics.produce(name, messages)
    return name


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


def offsets(rows: list[Row], partition: int) -> list[int]:
    return [row.offset for row in rows if row.partition == partition]


# Rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["diskless", "classic", "append-time"])
def test_every_row_is_what_librdkafka_reads(topics: Topics, reader: Reader, kind: str) -> None:
    times = "LogAppendTime" if kind == "append-time" else "CreateTime"
    name = topics.create(
        f"rows-{kind}", 3, diskless=kind != "classic", message_timestamp_type=times
    )
    for codec in CODECS:
        topics.produce(name, mixed(200, 3), codec)
    topics.delete_records(name, 1, 17)
    frame = reader(subscribe=name, includeHeaders="true").load()
    assert frame.columns == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    expected = topics.rows(name, 3)
    assert len(expected) == 1000 - 17
    assert {row.timestamp_type for row in expected} == {int(kind == "append-time")}
    assert rows_of(frame) == expected
    if kind == "diskless":
        through = reader(**{"subscribe": name, "includeHeaders": "true", "read.via": "broker"})
        assert rows_of(through.load()) == expected


def test_topics_by_name_by_pattern_and_partitions(topics: Topics, reader: Reader) -> None:
    for name in ("by-a", "by-b", "by-c"):
        topics.create(name, 2, diskless=name != "by-b")
        topics.produce(name, [Message(name.encode(), partition=i % 2) for i in range(6)])
    everything = [row for name in ("by-a", "by-b", "by-c") for row in topics.rows(name, 2)]
    assert rows_of(reader(subscribe="by-a, by-b,by-c").load()) == everything
    assert rows_of(reader(subscribePattern="^by-[ab]$").load()) == [
        row for row in everything if row.topic != "by-c"
    ]
    assert rows_of(reader(subscribePattern="^nothing-like-this$").load()) == []
    assigned = reader(assign='{"by-a":[1],"by-c":[0]}').load()
    assert rows_of(assigned) == [
        row for row in everything if (row.topic, row.partition) in (("by-a", 1), ("by-c", 0))
    ]


# Where reading starts and ends ------------------------------------------------------------


def test_starts_and_ends(topics: Topics, reader: Reader, rising: str) -> None:
    def read(**options: str) -> list[Row]:
        return rows_of(reader(subscribe=rising, **options).load())

    start, end = json.dumps({rising: {"0": 3, "1": -2}}), json.dumps({rising: {"0": -1, "1": 4}})
    found = read(startingOffsets=start, endingOffsets=end)
    assert offsets(found, 0) == list(range(3, 200))
    assert offsets(found, 1) == [0, 1, 2, 3]
    # Records of even numbers are in partition 0: number 10 has offset 5 there.
    found = read(startingTimestamp=str(T0 + 9500), endingTimestamp=str(T0 + 20_000))
    assert offsets(found, 0) == list(range(5, 10))
    assert offsets(found, 1) == list(range(5, 10))
    by_time = json.dumps({rising: {"0": T0 + 390_000, "1": T0 + 10**9}})
    found = read(startingOffsetsByTimestamp=by_time, startingOffsetsByTimestampStrategy="latest")
    assert (offsets(found, 0), offsets(found, 1)) == ([195, 196, 197, 198, 199], [])
    with pytest.raises(AnalysisException, match=f"no record of {rising}-1 is at or after"):
        read(startingOffsetsByTimestamp=by_time)
    with pytest.raises(AnalysisException, match=f"does not name {rising}-1"):
        read(startingOffsets=json.dumps({rising: {"0": 3}}))


def test_a_load_is_one_snapshot(topics: Topics, reader: Reader) -> None:
    name = topics.create("snapshot")
    topics.produce(name, [Message(b"1")])
    frame = reader(subscribe=name).load()
    assert frame.count() == 1
    topics.produce(name, [Message(b"2")])
    assert frame.count() == 1
    assert reader(subscribe=name).load().count() == 2


def test_lost_records_fail_the_query_unless_allowed(topics: Topics, reader: Reader) -> None:
    name = topics.create("gone")
    topics.produce(name, [Message(b"%d" % i) for i in range(10)])
    topics.delete_records(name, 0, 4)
    asked = {
        "subscribe": name,
        "startingOffsets": json.dumps({name: {"0": 1}}),
        "endingOffsets": json.dumps({name: {"0": 12}}),
    }
    with pytest.raises(AnalysisException) as raised:
        reader(**asked).load().count()
    for words in ("offsets 1 to 3 of gone-0 are gone", "ends before 10", "failOnDataLoss"):
        assert words in str(raised.value)
    found = rows_of(reader(**asked, failOnDataLoss="false").load())
    assert offsets(found, 0) == list(range(4, 10))


# Tasks, columns, filters ------------------------------------------------------------------


def test_tasks_by_bytes_and_by_records(reader: Reader, rising: str) -> None:
    def tasks(**options: str) -> int:
        frame = reader(**{"subscribe": rising, **options}).load()
        assert frame.count() == 400
        return explain(frame).tasks

    assert tasks() == 1
    assert tasks(**{"read.split.bytes": "65536"}) >= 5
    assert tasks(minPartitions="7") >= 7
    assert tasks(maxRecordsPerPartition="100") == 4


def test_columns_by_option_and_by_schema(reader: Reader, rising: str) -> None:
    frame = reader(subscribe=rising, columns="offset,value").load()
    assert frame.columns == ["offset", "value"]
    assert frame.filter("offset = 3").count() == 2
    schema = "timestampType int, partition int"
    typed = reader(subscribe=rising).schema(schema).load()
    assert sorted(map(tuple, typed.distinct().collect())) == [(0, 0), (0, 1)]
    with pytest.raises(AnalysisException, match="column value is string; it must be binary"):
        reader(subscribe=rising).schema("value string").load().count()
    with pytest.raises(AnalysisException, match="column valu; allowed are key, value"):
        reader(subscribe=rising).schema("valu binary").load().count()


@pytest.mark.usefixtures("pushdown")
def test_filters_are_pushed_to_batches(reader: Reader, rising: str) -> None:
    def pushed(condition: str) -> tuple[int, skylog.spark.explanation.Explanation]:
        frame = reader(**{"subscribe": rising, "read.push.filters": "true"}).load()
        filtered = frame.filter(condition)
        return filtered.count(), explain(filtered)

    whole = explain(reader(subscribe=rising).load())
    assert whole.planned_bytes > 400 * 1024
    count, plan = pushed(f"timestamp >= timestamp_millis({T0 + 390_000})")
    assert count == 10
    assert plan.planned_bytes <= whole.planned_bytes * 0.11
    assert plan.planned_bytes + plan.skipped_bytes == whole.planned_bytes
    count, plan = pushed("partition = 1 and offset between 40 and 59")
    assert count == 20
    assert plan.planned_bytes <= whole.planned_bytes * 0.06
    assert pushed("partition in (0, 1) and offset < 0")[0] == 0
    count, plan = pushed(f"topic = '{rising}' and value is not null and offset >= 190")
    assert (count, plan.topics[0].partitions) == (20, 2)
    # Off by default: Spark would use the plan of one filter for another.
    base = reader(subscribe=rising).load()
    both = base.filter("partition = 0").union(base.filter("partition = 1"))
    assert (both.count(), base.count()) == (400, 400)


def test_filters_without_pushdown(reader: Reader, rising: str) -> None:
    frame = reader(**{"subscribe": rising, "read.push.filters": "true"}).load()
    assert frame.filter("partition = 1 and offset < 5").count() == 5
    bounds = {"read.timestamp.min": str(T0 + 390_000), "read.timestamp.max": str(T0 + 394_999)}
    within = reader(**{"subscribe": rising, **bounds}).load()
    assert sorted(row.timestamp for row in rows_of(within)) == [
        T0 + 1000 * i for i in range(390, 395)
    ]
    assert explain(within).skipped_bytes > 300 * 1024


def test_explain(spark: SparkSession, topics: Topics, reader: Reader, rising: str) -> None:
    frame = reader(subscribe=rising).load()
    found = skylog.explain(frame.select("value").filter("offset > 7"))
    assert [topic.topic for topic in found.topics] == [rising]
    assert found.topics[0].offsets == 400
    assert str(found).splitlines()[0].endswith("KiB planned in 1 tasks, 0 B skipped")
    assert "from bucket" in str(found)
    topics.create("by-broker", diskless=False)
    topics.produce("by-broker", [Message(b"x")])
    both = explain(frame.select("value").union(reader(subscribe="by-broker").load()["value",]))
    assert [topic.is_diskless for topic in both.topics] == [False, True]
    with pytest.raises(ValueError, match="does not read"):
        explain(spark.range(3))


def test_registered_by_a_call(spark: SparkSession, reader: Reader, rising: str) -> None:
    register(spark)
    assert reader(subscribe=rising).load().count() == 400


# What cannot be read ----------------------------------------------------------------------


def said(frame_reader: DataFrameReader) -> str:
    """The last line of the driver's error, which is ours."""
    with pytest.raises((AnalysisException, PythonException)) as raised:
        frame_reader.load().count()
    lines = [line for line in str(raised.value).splitlines() if "skylog." in line and ": " in line]
    return lines[-1].partition(": ")[2]


def test_missing_resources_are_named(reader: Reader, broker: Broker, rising: str) -> None:
    assert said(reader(subscribe=f"{rising},nowhere")).startswith("there is no topic nowhere")
    assert "no partition 7 of topic rising" in said(reader(assign='{"rising":[0,7]}'))
    assert "is not a valid topic name" in said(reader(subscribe="what?"))
    misspelt = reader(subscribe=rising, startingOfsets="earliest")
    assert "startingofsets (is it startingOffsets?)" in said(misspelt)
    assert "exactly one of the options" in said(reader())
    patience = {"kafka.default.api.timeout.ms": "1000"}
    silent = reader(**{"subscribe": rising, "kafka.bootstrap.servers": "127.0.0.1:1", **patience})
    assert said(silent).startswith("no broker answers at kafka.bootstrap.servers=127.0.0.1:1")


def test_a_bucket_out_of_reach_is_named(reader: Reader, rising: str, tmp_path: Path) -> None:
    missing = f"file://{tmp_path}/nowhere"
    assert missing in said(reader(**{"subscribe": rising, "diskless.storage.url": missing}))
    closed = {
        "diskless.storage.url": "s3://bucket/prefix",
        "diskless.storage.s3.endpoint": "http://127.0.0.1:1",
        "diskless.storage.s3.access.key.id": "x",
        "diskless.storage.s3.secret.access.key": "y",
        "diskless.storage.retries": "0",
    }
    assert "bucket" in said(reader(**{"subscribe": rising, **closed}))


def test_principals_without_rights(spark: SparkSession) -> None:
    with Secured() as secured:
        name = secured.topics("admin").create("secret")
        secured.topics("admin").produce(name, [Message(b"x")])
        secured.allow("alice", AclOperation.READ, name)

        def reader(user: str, password: str | None = None) -> DataFrameReader:
            options = {**secured.options(user, password), "subscribe": name}
            return spark.read.format("skylog").options(**options)

        assert reader("alice").load().count() == 1
        assert said(reader("bob")).startswith("the principal may not read topic secret")
        assert "refuses the login" in said(reader("alice", "wrong"))
