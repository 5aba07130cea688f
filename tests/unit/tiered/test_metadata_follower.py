"""Remote logs are followed, published to and read back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.tiered.metadata.follower import FollowerSettings, MetadataFollower
from skylog.tiered.metadata.machine import Outcome
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.records import segment_started
from skylog.tiered.ports import Published
from skylog.tiered.segments import SegmentState, TopicIdPartition
from skylog.wire.messages.remote_log_segment_metadata_snapshot_record import (
    RemoteLogSegmentMetadataSnapshotRecord,
)
from skylog.wire.metadata_records import encode_remote_log
from tests.unit.tiered.metadata_world import MemoryMetadataTopic
from tests.unit.tiered.remote_records import PARTITION, TOPIC, TOPIC_ID, segment, update
from tests.waiting import eventually

PARTITIONS = 5
NUMBER = metadata_partition(PARTITION, PARTITIONS)
# Another partition of the topic whose records are in the same metadata partition.
NEIGHBOUR = next(
    one
    for index in range(1, 100)
    if metadata_partition(one := TopicIdPartition(TOPIC_ID, index), PARTITIONS) == NUMBER
)


@pytest.fixture
async def topic() -> MemoryMetadataTopic:
    return MemoryMetadataTopic(PARTITIONS)


def new_follower(
    topic: MemoryMetadataTopic, directory: Path, wait_ms: int = 5000
) -> MetadataFollower:
    settings = FollowerSettings(
        partitions=PARTITIONS, consume_wait_ms=wait_ms, retry_ms=1, directory=str(directory)
    )
    return MetadataFollower(topic, InlineExecutor(), settings)


@pytest.fixture
async def follower(topic: MemoryMetadataTopic, tmp_path: Path) -> AsyncIterator[MetadataFollower]:
    made = new_follower(topic, tmp_path)
    yield made
    await made.close()


def started(number: int, start: int, end: int, of: TopicIdPartition = PARTITION) -> bytes:
    return encode_remote_log(segment_started(segment(number, start, end, partition=of)))


def finished(number: int, of: TopicIdPartition = PARTITION) -> bytes:
    one = segment(number, 0, 0, partition=of)
    return encode_remote_log(update(one, SegmentState.COPY_FINISHED))


async def test_a_record_is_published_when_it_was_read_back(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    follower.follow(PARTITION, TOPIC)
    assert follower.get(PARTITION) is None
    log = await follower.ready(PARTITION)
    one = segment(1, 0, 99, copier_epoch=3)
    assert await follower.publish(PARTITION, segment_started(one)) is Published.EFFECTIVE
    assert log.fence == 3
    late = update(one, SegmentState.COPY_FINISHED, epoch=2)
    assert await follower.publish(PARTITION, late) is Published.VOID
    good = update(one, SegmentState.COPY_FINISHED, epoch=3)
    assert await follower.publish(PARTITION, good) is Published.EFFECTIVE
    assert await follower.publish(PARTITION, good) is Published.EFFECTIVE
    assert log.segment_for(0, 50) is not None
    assert follower.outcomes[Outcome.VOID] == 1


async def test_published_means_applied_here(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    follower.follow(PARTITION, TOPIC)
    log = await follower.ready(PARTITION)
    topic.visible_end = 0
    record = segment_started(segment(1, 0, 99))
    publishing = asyncio.create_task(follower.publish(PARTITION, record))
    await eventually(lambda: bool(topic.values[NUMBER]))
    await asyncio.sleep(0.01)
    assert not publishing.done()
    assert not len(log)
    topic.visible_end = None
    topic.moved()
    assert await publishing is Published.EFFECTIVE


async def test_what_is_not_read_back_in_time_is_ambiguous(
    topic: MemoryMetadataTopic, tmp_path: Path
) -> None:
    follower = new_follower(topic, tmp_path, wait_ms=10)
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    topic.visible_end = 0
    with pytest.raises(KafkaError) as raised:
        await follower.publish(PARTITION, segment_started(segment(1, 0, 99)))
    assert raised.value.ambiguous
    await follower.close()


async def test_errors_of_an_append_are_passed_on(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    topic.failures = [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)]
    with pytest.raises(KafkaError) as raised:
        await follower.publish(PARTITION, segment_started(segment(1, 0, 99)))
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_a_partition_that_is_not_followed_is_refused(follower: MetadataFollower) -> None:
    with pytest.raises(KafkaError):
        await follower.publish(PARTITION, segment_started(segment(1, 0, 99)))
    with pytest.raises(KafkaError):
        await follower.ready(PARTITION)
    follower.follow(PARTITION, TOPIC)
    waiting = asyncio.create_task(follower.ready(PARTITION))
    await asyncio.sleep(0)
    follower.unfollow(PARTITION)
    with pytest.raises(KafkaError):
        await waiting


async def test_the_topic_is_created_when_a_partition_needs_it(tmp_path: Path) -> None:
    topic = MemoryMetadataTopic(PARTITIONS, exists=False)
    follower = new_follower(topic, tmp_path)
    await asyncio.sleep(0)
    assert not topic.created
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    assert topic.created == 1
    await follower.close()


async def test_only_needed_partitions_are_read_and_only_hosted_logs_kept(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), started(2, 0, 9, NEIGHBOUR), finished(1)]
    follower.follow(PARTITION, TOPIC)
    log = await follower.ready(PARTITION)
    assert [one.id for one in log.all()] == [segment(1, 0, 9).id]
    assert {partition for partition, _ in topic.reads} == {NUMBER}
    assert follower.get(NEIGHBOUR) is None


async def test_a_log_is_ready_when_the_end_seen_at_first_is_applied(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    topic.visible_end = 1
    follower.follow(PARTITION, TOPIC)
    await eventually(lambda: (NUMBER, 1) in topic.reads)
    assert follower.get(PARTITION) is None
    topic.visible_end = None
    topic.moved()
    assert (await follower.ready(PARTITION)).segment_for(0, 5) is not None


async def test_a_partition_followed_later_is_read_from_the_beginning(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.page_records = 2
    topic.values[NUMBER] = [
        started(1, 0, 9),
        started(2, 0, 9, NEIGHBOUR),
        finished(1),
        finished(2, NEIGHBOUR),
        started(3, 10, 19),
    ]
    follower.follow(PARTITION, TOPIC)
    log = await follower.ready(PARTITION)
    follower.follow(NEIGHBOUR, TOPIC)
    later = await follower.ready(NEIGHBOUR)
    assert later.segment_for(0, 5) is not None
    # From now on both are fed by the same reads.
    record = segment_started(segment(4, 10, 19, partition=NEIGHBOUR))
    assert await follower.publish(NEIGHBOUR, record) is Published.EFFECTIVE
    record = segment_started(segment(5, 20, 29))
    assert await follower.publish(PARTITION, record) is Published.EFFECTIVE
    assert (len(log), len(later)) == (3, 2)


async def test_a_replica_that_is_behind_makes_nobody_pass_over_records(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.values[NUMBER] = [started(2, 0, 9, NEIGHBOUR), finished(2, NEIGHBOUR)]
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    await eventually(lambda: topic.reads[-1] == (NUMBER, 2))
    topic.empty_reads = 1
    follower.follow(NEIGHBOUR, TOPIC)
    assert (await follower.ready(NEIGHBOUR)).segment_for(0, 5) is not None


@pytest.mark.parametrize(
    "junk",
    [
        None,
        b"",
        b"\x01",
        b"\x01\x07\x00",
        b"\x02\x00\x00rest",
        started(9, 0, 9)[:-5],
        started(9, 0, 9) + b"behind",
        b"\x01\x00\x05" + started(9, 0, 9)[3:],
        b"\xff" * 40,
        encode_remote_log(RemoteLogSegmentMetadataSnapshotRecord()),
    ],
)
async def test_hostile_records_are_skipped_and_counted(
    topic: MemoryMetadataTopic, follower: MetadataFollower, junk: bytes | None
) -> None:
    topic.values[NUMBER] = [junk, started(1, 0, 9), junk, finished(1), junk]
    follower.follow(PARTITION, TOPIC)
    log = await follower.ready(PARTITION)
    assert log.segment_for(0, 5) is not None
    assert len(log) == 1
    assert follower.junk_records == 3


async def test_reading_goes_on_after_errors(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    topic.failures = [KafkaError(ErrorCode.LEADER_NOT_AVAILABLE) for _ in range(3)]
    follower.follow(PARTITION, TOPIC)
    assert (await follower.ready(PARTITION)).segment_for(0, 5) is not None


async def test_a_topic_that_was_made_anew_is_read_again(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    follower.follow(PARTITION, TOPIC)
    old = await follower.ready(PARTITION)
    topic.recreate()
    topic.values[NUMBER] = [started(2, 0, 9), finished(2), started(3, 10, 19)]
    topic.moved()
    await eventually(lambda: follower.get(PARTITION) not in (None, old))
    log = await follower.ready(PARTITION)
    assert [one.start_offset for one in log.all()] == [0, 10]


async def test_a_topic_that_cannot_be_used_ends_the_reading(
    tmp_path: Path, topic: MemoryMetadataTopic
) -> None:
    class Wrong(MemoryMetadataTopic):
        partition_count = property(lambda self: self.refuse(), lambda self, value: None)  # type: ignore[assignment]

        def refuse(self) -> int:
            asked.append(len(asked))
            raise ConfigError("has 3 partitions")

    asked: list[int] = []
    follower = new_follower(Wrong(PARTITIONS), tmp_path)
    follower.follow(PARTITION, TOPIC)
    await eventually(lambda: bool(asked))
    await asyncio.sleep(0.01)  # another try would come after a tenth of it
    assert asked == [0]
    assert follower.get(PARTITION) is None
    await follower.close()


async def test_listeners_hear_of_readiness_and_of_changes(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    heard: list[TopicIdPartition] = []
    follower.on_change(heard.append)
    topic.values[NUMBER] = [started(1, 0, 9)]
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    assert heard == [PARTITION]
    await topic.append(NUMBER, [finished(1)])
    await eventually(lambda: len(heard) == 2)
    await topic.append(NUMBER, [started(2, 0, 9, NEIGHBOUR)])
    await follower.publish(PARTITION, segment_started(segment(3, 10, 19)))
    assert heard == [PARTITION] * 3


async def test_a_start_goes_on_from_the_snapshot(
    topic: MemoryMetadataTopic, tmp_path: Path
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    follower = new_follower(topic, tmp_path)
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    await follower.close()
    await topic.append(NUMBER, [started(2, 10, 19)])
    topic.reads.clear()
    again = new_follower(topic, tmp_path)
    again.follow(PARTITION, TOPIC)
    log = await again.ready(PARTITION)
    assert topic.reads[0] == (NUMBER, 2)
    assert len(log) == 2
    await again.close()


async def test_a_topic_that_has_lost_its_end_is_read_without_the_snapshot(
    topic: MemoryMetadataTopic, tmp_path: Path
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1), started(3, 10, 19), finished(3)]
    before = new_follower(topic, tmp_path)
    before.follow(PARTITION, TOPIC)
    await before.ready(PARTITION)
    await before.close()
    del topic.values[NUMBER][2:]
    after = new_follower(topic, tmp_path)
    after.follow(PARTITION, TOPIC)
    async with asyncio.timeout(5):
        log = await after.ready(PARTITION)
    assert [one.start_offset for one in log.all()] == [0]
    await after.close()


async def test_a_partition_that_the_snapshot_lacks_is_read_from_the_beginning(
    topic: MemoryMetadataTopic, tmp_path: Path
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), started(2, 0, 9, NEIGHBOUR)]
    follower = new_follower(topic, tmp_path)
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    await follower.close()
    again = new_follower(topic, tmp_path)
    again.follow(NEIGHBOUR, TOPIC)
    assert len(await again.ready(NEIGHBOUR)) == 1
    # The other one was in the snapshot: followed later, it needs no second reading.
    again.follow(PARTITION, TOPIC)
    assert len(await again.ready(PARTITION)) == 1
    await again.close()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "huge-count"])
async def test_a_doubtful_snapshot_is_ignored(
    topic: MemoryMetadataTopic, tmp_path: Path, damage: str
) -> None:
    topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    follower = new_follower(topic, tmp_path)
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    await follower.close()
    path = tmp_path / f"remote-log-metadata-{NUMBER}.snapshot"
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-3]
    elif damage == "flipped":
        data[len(data) // 2] ^= 1
    elif damage == "empty":
        data.clear()
    elif damage == "huge-count":
        data += b"\xff\xff\xff\xff"
    else:
        topic.recreate()
        topic.values[NUMBER] = [started(1, 0, 9), finished(1)]
    path.write_bytes(data)
    again = new_follower(topic, tmp_path)
    again.follow(PARTITION, TOPIC)
    log = await again.ready(PARTITION)
    assert topic.reads[-2] == (NUMBER, 0) or (NUMBER, 0) in topic.reads
    assert log.segment_for(0, 5) is not None
    await again.close()


async def test_a_reader_without_logs_ends(
    topic: MemoryMetadataTopic, follower: MetadataFollower
) -> None:
    follower.follow(PARTITION, TOPIC)
    await follower.ready(PARTITION)
    follower.unfollow(PARTITION)
    assert follower.get(PARTITION) is None
    follower.unfollow(PARTITION)
    follower.follow(PARTITION, TOPIC)
    assert not len(await follower.ready(PARTITION))
