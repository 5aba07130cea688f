"""Bulk writes without Spark: tasks stage, a driver commits, real clients read every row once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from skylog.bulk.epoch import Step
from skylog.bulk.process import close_process
from skylog.bulk.rows_columns import BadRows
from skylog.bulk.writer import EpochDriver, WriteContext, Written, write_rows
from skylog.client.partitioner import partition_of_key
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.testing import Broker
from skylog.wire.batch import Compression
from tests.integration.diskless_support import create_topic

SECONDS_MAX = 60.0
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "auto.create.topics.enable": "false",
        "diskless.storage.url": tmp_path_factory.mktemp("objects").as_uri(),
    }
    with Broker(settings) as running:
        yield running
        close_process()


def context(broker: Broker, topic: str | None = None, **more: Any) -> WriteContext:
    return WriteContext({"bootstrap.servers": broker.bootstrap}, topic=topic, **more)


def consumed(broker: Broker, topic: str, partitions: int) -> list[Any]:
    """Everything that librdkafka reads, in order of partitions and offsets."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "log_level": 0})
    found: list[Any] = []
    try:
        places = [TopicPartition(topic, index, 0) for index in range(partitions)]
        wanted = sum(consumer.get_watermark_offsets(one, SECONDS_MAX)[1] for one in places)
        consumer.assign(places)
        deadline = time.monotonic() + SECONDS_MAX
        while len(found) < wanted:
            assert time.monotonic() < deadline, f"{len(found)} of {wanted}"
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None
                found.append(message)
    finally:
        consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def values(broker: Broker, topic: str, partitions: int = 2) -> Counter[bytes]:
    return Counter(message.value() for message in consumed(broker, topic, partitions))


def staged_files(broker: Broker) -> set[str]:
    """Keys of staged objects in the bucket, without marks."""
    url = broker.node.settings.diskless.storage_url
    root = Path(url.removeprefix("file://")) / "staging"
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.name for path in files if len(path.name) == 32}


def stage(broker: Broker, topic: str, rows: Sequence[bytes], parts: int = 2) -> list[Written]:
    """Stage the rows of ``parts`` tasks."""
    return [
        write_rows(
            context(broker, topic), [pa.record_batch({"value": list(rows[part::parts])})], part
        )
        for part in range(parts)
    ]


@pytest.mark.parametrize("codec", Compression)
def test_rows_come_back_as_they_were_written(broker: Broker, codec: Compression) -> None:
    topic = f"codec-{codec.name.lower()}"
    create_topic(broker.bootstrap, topic, 3)
    count = 500
    now = 1_700_000_000_000
    keys = [None if i % 7 == 0 else b"key-%d" % i for i in range(count)]
    rows = [None if i % 11 == 0 else b"value-%d " % i * (i % 40) for i in range(count)]
    headers = [
        None if i % 3 else [{"key": "h", "value": b"%d" % i}, {"key": "n", "value": None}]
        for i in range(count)
    ]
    batch = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(rows, pa.binary()),
            "headers": pa.array(headers, HEADERS),
            "timestamp": pa.array([now + i for i in range(count)], pa.int64()),
        }
    )
    many = [batch.slice(at, 90) for at in range(0, count, 90)]
    small = context(broker, topic, codec=codec, batch_bytes=2048, object_bytes=16 * 1024)
    written = write_rows(small, many)
    assert (written.rows, written.produced_rows) == (count, 0)
    assert len(written.objects) > 1
    assert not consumed(broker, topic, 3)
    EpochDriver(small, f"batch-{topic}").complete(0, [written])
    found = consumed(broker, topic, 3)
    by_time = {message.timestamp()[1] - now: message for message in found}
    assert sorted(by_time) == list(range(count)) and len(found) == count
    for i, message in by_time.items():
        assert (message.key(), message.value()) == (keys[i], rows[i])
        expected = None if i % 3 else [("h", b"%d" % i), ("n", None)]
        assert message.headers() == expected
        if keys[i] is not None:
            assert message.partition() == partition_of_key(keys[i], 3)
    for partition in range(3):
        stamps = [m.timestamp()[1] for m in found if m.partition() == partition]
        assert stamps == sorted(stamps)


class Killed(Exception):  # noqa: N818
    """The driver was killed."""


def killer(step: Step) -> Any:
    def before(reached: Step) -> None:
        if reached is step:
            raise Killed

    return before


STEPS = [
    Step.PIN, Step.CLAIM, Step.LOOK, Step.COMMIT, Step.MARK_DONE, Step.RELEASE, Step.SWEEP,
    Step.FINISHED,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_driver_killed_before_any_step_leaves_each_row_once(broker: Broker, step: Step) -> None:
    topic = f"killed-{step.name}"
    create_topic(broker.bootstrap, topic, 2)
    writer = f"stream-{topic}"
    for epoch in range(3):
        rows = [b"%d/%d" % (epoch, i) for i in range(20)]
        first = stage(broker, topic, rows)
        if epoch == 1:
            with pytest.raises(Killed):
                EpochDriver(context(broker), writer, killer(step)).complete(epoch, first)
            second = stage(broker, topic, rows)
            EpochDriver(context(broker), writer).complete(epoch, second)
        else:
            EpochDriver(context(broker), writer).complete(epoch, first)
    expected = [b"%d/%d" % (epoch, i) for epoch in range(3) for i in range(20)]
    assert values(broker, topic) == Counter(expected)
    # Replays of the last epoch and of an older one.
    for epoch in (2, 0):
        again = stage(broker, topic, [b"again"])
        EpochDriver(context(broker), writer).complete(epoch, again)
    assert values(broker, topic) == Counter(expected)


def test_a_driver_that_was_away_for_longer_than_the_commit_window(tmp_path: Path) -> None:
    settings = {
        "auto.create.topics.enable": "false",
        "diskless.storage.url": tmp_path.as_uri(),
        "diskless.commit.age.max.ms": "3000",
    }
    with Broker(settings) as broker:
        create_topic(broker.bootstrap, "away", 2)
        rows = [b"%d" % i for i in range(20)]
        staged = stage(broker, "away", rows)
        with pytest.raises(Killed):
            EpochDriver(context(broker), "stream-away", killer(Step.COMMIT)).complete(0, staged)
        created = [
            ObjectKey.parse(one.key).created_ms or 0 for part in staged for one in part.objects
        ]
        deadline = time.monotonic() + SECONDS_MAX
        while time.time() * 1000 < max(created) + 6000:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        EpochDriver(context(broker), "stream-away").complete(0, stage(broker, "away", rows))
        assert values(broker, "away") == Counter(rows)
        close_process()


@pytest.mark.parametrize("diskless", ["true", "false"])
def test_rows_of_a_task_keep_their_order(broker: Broker, diskless: str) -> None:
    topic = f"ordered-{diskless}"
    create_topic(broker.bootstrap, topic, 1, **{"diskless.enable": diskless})
    rows = [b"%05d" % i * 20 for i in range(3000)]
    small = context(broker, topic, object_bytes=64 * 1024, batch_bytes=4096)
    written = write_rows(small, [pa.record_batch({"value": rows})])
    assert (len(written.objects) > 4) is (diskless == "true")
    EpochDriver(small, f"batch-{topic}").complete(0, [written])
    assert [message.value() for message in consumed(broker, topic, 1)] == rows


def test_failed_attempts_leave_no_objects(broker: Broker) -> None:
    create_topic(broker.bootstrap, "losers", 2)
    before = staged_files(broker)
    driver = EpochDriver(context(broker), "stream-losers")
    driver.complete(0, stage(broker, "losers", [b"a", b"b"]))
    kept = staged_files(broker) - before
    driver.complete(0, stage(broker, "losers", [b"c", b"d"]))
    driver.give_up(1, stage(broker, "losers", [b"e", b"f"]))
    assert staged_files(broker) - before == kept
    assert values(broker, "losers") == Counter([b"a", b"b"])


def test_claimed_objects_are_not_aborted(broker: Broker) -> None:
    """Spark aborts a write whose commit failed; objects in the manifest must stay."""
    create_topic(broker.bootstrap, "claimed", 2)
    staged = stage(broker, "claimed", [b"a", b"b"])
    with pytest.raises(Killed):
        EpochDriver(context(broker), "batch-claimed", killer(Step.COMMIT)).complete(0, staged)
    EpochDriver(context(broker), "batch-claimed").give_up(0, staged)
    again = stage(broker, "claimed", [b"a", b"b"])
    EpochDriver(context(broker), "batch-claimed").complete(0, again)
    assert values(broker, "claimed") == Counter([b"a", b"b"])


def test_a_batch_without_a_name_leaves_no_marks(broker: Broker) -> None:
    create_topic(broker.bootstrap, "single", 2)
    driver = EpochDriver(context(broker), "batch-single")
    driver.complete(0, stage(broker, "single", [b"a"]), single=True)
    root = Path(broker.node.settings.diskless.storage_url.removeprefix("file://"))
    from skylog.bulk.epoch import writer_prefix

    folder = writer_prefix("", "batch-single").strip("/")
    assert not [path for path in root.rglob("*.done") if folder in str(path)]
    assert values(broker, "single") == Counter([b"a"])


def test_classic_and_diskless_topics_in_one_write(broker: Broker) -> None:
    create_topic(broker.bootstrap, "mixed-diskless", 2)
    create_topic(broker.bootstrap, "mixed-classic", 2, **{"diskless.enable": "false"})
    rows = pa.record_batch(
        {
            "value": [b"%d" % i for i in range(100)],
            "topic": ["mixed-diskless" if i % 2 else "mixed-classic" for i in range(100)],
        }
    )
    written = write_rows(context(broker, batch_bytes=1024), [rows, rows.slice(0, 1)])
    assert (written.rows, written.produced_rows) == (101, 51)
    classic = values(broker, "mixed-classic")
    assert classic == Counter([b"%d" % i for i in range(0, 100, 2)] + [b"0"])
    assert not values(broker, "mixed-diskless")
    EpochDriver(context(broker), "batch-mixed").complete(0, [written])
    assert values(broker, "mixed-diskless") == Counter(b"%d" % i for i in range(1, 100, 2))


def test_rows_that_are_refused_leave_nothing(broker: Broker) -> None:
    create_topic(broker.bootstrap, "refusing", 2, **{"max.message.bytes": "2000"})
    before = staged_files(broker)
    good = [pa.record_batch({"value": [os.urandom(500) for _ in range(400)]})]
    small = context(broker, "refusing", object_bytes=64 * 1024)
    big = pa.record_batch({"value": [bytes(5000)]})
    with pytest.raises(KafkaError, match=r"topic refusing makes a batch of .* 2000") as error:
        write_rows(small, [*good, big])
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    placed = [one.append_column("partition", pa.array([1] * one.num_rows)) for one in good]
    astray = pa.record_batch({"value": [b"x"], "partition": [2]})
    with pytest.raises(BadRows, match="partition 2 of topic refusing, which has 2 partitions"):
        write_rows(small, [*placed, astray])
    with pytest.raises(KafkaError, match="topic nowhere does not exist"):
        write_rows(context(broker, "nowhere"), good)
    with pytest.raises(BadRows, match="column topic is null"):
        write_rows(
            context(broker),
            [pa.record_batch({"value": [b"x"], "topic": pa.array([None], pa.string())})],
        )
    assert staged_files(broker) == before
    assert not values(broker, "refusing")


def test_no_rows_send_no_requests() -> None:
    nowhere = WriteContext({"bootstrap.servers": "127.0.0.1:1"}, topic="t")
    assert write_rows(nowhere, []) == Written()
    assert write_rows(nowhere, [pa.record_batch({"value": pa.array([], pa.binary())})]) == Written()


def test_a_check_before_the_job(broker: Broker) -> None:
    create_topic(broker.bootstrap, "checked", 1)
    EpochDriver(context(broker), "w").check(["checked"])
    with pytest.raises(KafkaError, match="topic nowhere does not exist"):
        EpochDriver(context(broker), "w").check(["nowhere"])
    elsewhere = {"diskless.storage.url": "file:///nowhere/at/all"}
    with pytest.raises(ConfigError, match="file:///nowhere/at/all is not a directory"):
        EpochDriver(context(broker, storage=elsewhere), "w").check(["checked"])
