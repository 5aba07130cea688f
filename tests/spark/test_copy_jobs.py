"""Records copied from topic to topic and loaded from files: each once, with all fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from skylog.bulk.epoch import Step
from skylog.kernel.errors import ConfigError, KafkaError
from skylog.spark.jobs import load, replay
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import JobError
from skylog.spark.jobs.load import LoadJob, Mapped
from skylog.spark.jobs.replay import ReplayJob, Selection
from skylog.testing import Broker
from tests.spark.support import Message, Row, Topics


class Killed(BaseException):
    """Nothing catches it, so it acts like a kill."""


def dying(step: Step, times: int) -> Callable[[Step], None]:
    left = times

    def before(found: Step) -> None:
        nonlocal left
        left -= found is step
        if left == 0:
            raise Killed

    return before


def replay_job(broker: Broker, topic: str, to: str, state: Path, **more: Any) -> ReplayJob:
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    given = {"run_id": "r1", **more}
    return ReplayJob(cluster, topic, cluster, to, state=str(state), **given)


def load_job(broker: Broker, topic: str, state: Path, *paths: Path, **more: Any) -> LoadJob:
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    given = {"run_id": "l1", **more}
    return LoadJob(cluster, topic, tuple(map(str, paths)), state=str(state), **given)


def bare(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Records without their topic."""
    return [(row.partition, row.offset, *row[3:]) for row in rows]


def messages(count: int, first: int = 0) -> list[Message]:
    return [
        Message(
            None if i % 7 == 0 else b"v%d" % i,
            None if i % 5 == 0 else b"k%d" % i,
            i % 2,
            1_700_000_000_000 + i,
            [("h", b"%d" % i), ("none", None)] if i % 3 == 0 else [],
        )
        for i in range(first, first + count)
    ]


def test_a_replay_that_is_killed_copies_once(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("replay-from", 2)
    for part in range(3):
        topics.produce(source, messages(100, 100 * part))
    target = topics.create("replay-to", 2)
    job = replay_job(broker, source, target, tmp_path, chunk_records=100, compression="zstd")
    for step in (Step.PIN, Step.COMMIT, Step.MARK_DONE):
        with pytest.raises(Killed):
            replay.run(spark, job, dying(step, 1))
    # Later records are not part of it.
    wanted = bare(topics.rows(source, 2))
    topics.produce(source, messages(10, 300))
    done = replay.run(spark, job)
    assert done.exactly_once
    assert bare(topics.rows(target, 2)) == wanted
    assert replay.run(spark, job).rows == 0

    with pytest.raises(ConfigError, match="began with where None, not 'offset > 1'"):
        replay.run(
            spark,
            replay_job(broker, source, target, tmp_path, selection=Selection(where="offset > 1")),
        )
    (tmp_path / "replay-r1.json").unlink()
    with pytest.raises(ConfigError, match="a run of this id has written to topic replay-to"):
        replay.run(spark, job)


def test_a_replay_of_some_records_to_other_partitions(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("replay-some", 2, diskless=False)
    topics.produce(source, messages(200))
    topics.delete_records(source, 0, 10)
    target = topics.create("replay-three", 3)
    selection = Selection(
        start={1: 5},
        end={0: 90},
        since=1_700_000_000_020,
        until=1_700_000_000_150,
        where="key is not null and cast(value as string) <> 'v33'",
    )
    job = replay_job(broker, source, target, tmp_path, selection=selection)
    replay.run(spark, job)
    wanted = [
        row
        for row in topics.rows(source, 2)
        if row.key is not None
        and row.value not in (None, b"v33")
        and 1_700_000_000_020 <= row.timestamp <= 1_700_000_000_150
        and (row.offset < 90 if row.partition == 0 else row.offset >= 5)
    ]
    assert len(wanted) > 50
    found = topics.rows(target, 3)
    assert sorted(row[3:] for row in found) == sorted(row[3:] for row in wanted)
    # The partitions of Kafka's own partitioner.
    again = topics.create("replay-produced", 3)
    kafka = Topics(broker.bootstrap, partitioner="murmur2_random")
    kafka.produce(again, [Message(b"", row.key, -1) for row in wanted])
    assert {(row.key, row.partition) for row in found} == {
        (row.key, row.partition) for row in topics.rows(again, 3)
    }


def test_a_replay_to_a_classic_topic_keeps_the_order(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("replay-classic-from", 2)
    for part in range(3):
        topics.produce(source, messages(100, 100 * part))
    target = topics.create("replay-classic-to", 3, diskless=False)
    job = replay_job(broker, source, target, tmp_path, partitions="keep", chunk_records=150)
    done = replay.run(spark, job)
    assert (done.rows, done.chunks, done.exactly_once) == (300, 2, False)
    assert bare(topics.rows(target, 3)) == bare(topics.rows(source, 2))


def test_errors_of_a_replay_are_named(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("replay-wrong", 2)
    topics.produce(source, messages(4))
    small = topics.create("replay-small", 1)
    for more, message in (
        ({"partitions": "keep"}, "partitions cannot be kept: topic replay-wrong has 2"),
        ({"run_id": "a/b"}, "--run-id is 'a/b'"),
        ({"selection": Selection(start={7: 1})}, "no partition 7"),
        ({"selection": Selection(where="nonsense(")}, "--where: "),
        ({"selection": Selection(where="no_column = 1")}, "--where: .*no_column"),
        ({"compression": "rar"}, "--compression is 'rar'"),
    ):
        with pytest.raises(ConfigError, match=message):
            replay.run(spark, replay_job(broker, source, small, tmp_path, **more))
    with pytest.raises(KafkaError, match="no-such-topic"):
        replay.run(spark, replay_job(broker, source, "no-such-topic", tmp_path))
    keyed = topics.create("replay-compacted", 1, diskless=False, cleanup_policy="compact")
    with pytest.raises(JobError, match="has no key, and the topic is compacted"):
        replay.run(spark, replay_job(broker, source, keyed, tmp_path))
    assert topics.rows(keyed, 1) == []


def test_files_are_loaded_once(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    target = topics.create("load-json", 2)
    data = tmp_path / "data {1}"
    data.mkdir()
    for part in range(3):
        lines = [{"id": part * 10 + i, "at": 1_700_000_000_000 + i, "p": i % 2} for i in range(5)]
        (data / f"{part}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    mapped = Mapped(
        value_columns=("id", "p"),
        key="id",
        partition="p",
        timestamp="at",
        headers="map('from', 'file')",
    )
    job = load_job(broker, target, tmp_path, data, mapped=mapped)
    for step, times in ((Step.COMMIT, 1), (Step.MARK_DONE, 1), (Step.RELEASE, 2)):
        with pytest.raises(Killed):
            load.run(spark, job, dying(step, times))
    load.run(spark, job)
    # A resumed run includes new files.
    (data / "0-later.jsonl").write_text('{"id": 99, "at": 1, "p": 0}\n')
    done = load.run(spark, job)
    assert (done.rows, done.files, done.exactly_once) == (1, 1, True)
    found = topics.rows(target, 2)
    ids = [part * 10 + i for part in range(3) for i in range(5)]
    assert sorted(int(row.key or b"") for row in found) == [*ids, 99]
    for row in found[:3]:
        assert json.loads(row.value or b"") == {"id": int(row.key or b""), "p": row.partition}
        assert row.headers == (("from", b"file"),)
    (data / "1.jsonl").write_text("{}")
    with pytest.raises(ConfigError, match="now has 2"):
        load.run(spark, job)


def test_parquet_csv_and_text(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    target = topics.create("load-many", 1)
    raw = topics.create("load-from", 1)
    topics.produce(raw, messages(0) or [Message(b"\x00\xff", b"\x01", 0, 1_700_000_000_123)])
    rows = spark.read.format("skylog").options(
        **{"kafka.bootstrap.servers": broker.bootstrap, "subscribe": raw}
    )
    rows.load().coalesce(1).write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "a.csv").write_text("id;name\n1;x\n2;\n")
    (tmp_path / "a.txt").write_text("one line\nanother\n")
    jobs = [
        load_job(
            broker,
            target,
            tmp_path,
            tmp_path / "parquet",
            run_id="p",
            mapped=Mapped(key="key", timestamp="timestamp"),
        ),
        load_job(
            broker,
            target,
            tmp_path,
            tmp_path / "a.csv",
            run_id="c",
            options={"sep": ";"},
            mapped=Mapped(key="id"),
        ),
        load_job(broker, target, tmp_path, tmp_path / "*.txt", run_id="t"),
    ]
    assert [load.run(spark, job).rows for job in jobs] == [1, 2, 2]
    found = topics.rows(target, 1)
    assert (found[0].key, found[0].value, found[0].timestamp) == (
        b"\x01",
        b"\x00\xff",
        1_700_000_000_123,
    )
    assert [row.value for row in found[1:]] == [
        b'{"id":"1","name":"x"}',
        b'{"id":"2"}',
        b"one line",
        b"another",
    ]
    assert [row.key for row in found[1:]] == [b"1", b"2", None, None]


def test_errors_of_a_load_are_named(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    target = topics.create("load-wrong", 1)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"a": 1}\n')
    bad.write_text('{"a": 1}\nnonsense\n')
    for paths, more, error, message in (
        ([tmp_path / "none*"], {}, ConfigError, "no file found"),
        ([good], {"format": "xls"}, ConfigError, "--format is 'xls'"),
        ([good], {"mapped": Mapped(value="a", value_columns=("a",))}, ConfigError, "exclude"),
        ([good], {"mapped": Mapped(key="nope")}, JobError, "good.json: .*nope"),
        ([good], {"mapped": Mapped(partition="7")}, JobError, "partition 7 of topic load-wrong"),
        ([bad], {}, JobError, "bad.json"),
        ([tmp_path], {}, ConfigError, "not clear"),
    ):
        (tmp_path / "x.bin").write_bytes(b"")
        with pytest.raises(error, match=message):
            load.run(spark, load_job(broker, target, tmp_path / "state", *paths, **more))
    # None of them has started the run.
    assert load.run(spark, load_job(broker, target, tmp_path / "state", good)).rows == 1
    assert [row.value for row in topics.rows(target, 1)] == [b'{"a":1}']
