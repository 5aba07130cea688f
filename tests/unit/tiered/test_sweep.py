"""The sweep: what is left of deleted topics goes, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.ids import Uuid
from skylog.tiered.copying import copying, record_of
from skylog.tiered.metadata.records import partition_deleted
from skylog.tiered.ports import MetadataPage, MetadataValue
from skylog.tiered.segments import PartitionDeleteState, RemoteSegment, TopicIdPartition
from skylog.tiered.sweep import MetadataSweep, owner_of
from skylog.wire.metadata_records import encode_remote_log

GRACE_MS = 1000
OLD = TopicIdPartition(Uuid(b"o" * 16), 4)
KEPT = TopicIdPartition(Uuid(b"k" * 16), 0)


def started(partition: TopicIdPartition, topic: str) -> bytes:
    segment = RemoteSegment(
        topic=topic,
        partition=partition,
        id=Uuid(b"i" * 16),
        start_offset=0,
        end_offset=9,
        broker_id=1,
        max_timestamp_ms=0,
        event_timestamp_ms=0,
        epochs=((0, 0),),
        size=10,
    )
    return encode_remote_log(record_of(copying(segment), 1, 0, 3, 0))


def marked(partition: TopicIdPartition, state: PartitionDeleteState) -> bytes:
    return encode_remote_log(partition_deleted("old", partition, state, broker_id=1, now_ms=0))


class Topic:
    """Two records to a page."""

    partition_count = 5

    def __init__(self, *values: bytes) -> None:
        self.values = list(values)
        self.reads = 0

    async def create(self) -> None: ...

    async def append(self, partition: int, values: object) -> int:
        raise AssertionError("a sweep only reads the topic")

    async def end_offset(self, partition: int) -> int:
        return len(self.values)

    async def read(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        self.reads += 1
        found = self.values[offset : offset + 2]
        values = [MetadataValue(offset + at, value) for at, value in enumerate(found)]
        return MetadataPage(values, offset + len(found), 0, len(self.values))


class World:
    def __init__(self, *values: bytes) -> None:
        self.topic = Topic(*values)
        self.led = {2: 7}
        self.existing = {KEPT.topic_id}
        self.held = False
        self.deleted: list[tuple[TopicIdPartition, str]] = []
        self.clock = ManualClock()
        self.sweep = MetadataSweep(
            self.topic,
            lambda: list(self.led.items()),
            self.existing.__contains__,
            self.delete,
            self.is_held,
            self.clock,
            grace_ms=GRACE_MS,
        )

    async def delete(self, partition: TopicIdPartition, topic: str) -> None:
        self.deleted.append((partition, topic))

    async def is_held(self) -> bool:
        return self.held

    def run(self, *, after_ms: int = 0) -> list[tuple[TopicIdPartition, str]]:
        self.clock.advance(after_ms)
        self.deleted.clear()
        asyncio.run(self.sweep.run_once())
        return list(self.deleted)


def test_a_topic_that_is_missing_for_a_whole_grace_goes() -> None:
    world = World(started(OLD, "old"), started(KEPT, "kept"), started(OLD, "old"))
    assert world.run() == []
    assert world.run(after_ms=GRACE_MS - 1) == []
    assert world.run(after_ms=1) == [(OLD, "old")]


def test_a_topic_that_was_only_late_is_left_alone() -> None:
    world = World(started(OLD, "old"))
    assert world.run() == []
    world.existing.add(OLD.topic_id)
    assert world.run(after_ms=GRACE_MS) == []
    world.existing.discard(OLD.topic_id)
    assert world.run() == []
    assert world.run(after_ms=GRACE_MS) == [(OLD, "old")]


def test_what_was_deleted_to_its_end_is_not_asked_for_again() -> None:
    world = World(started(OLD, "old"), marked(OLD, PartitionDeleteState.STARTED))
    world.run()
    assert world.run(after_ms=GRACE_MS) == [(OLD, "old")]
    world.topic.values.append(marked(OLD, PartitionDeleteState.FINISHED))
    assert world.run(after_ms=GRACE_MS) == []


def test_nothing_goes_while_a_restore_holds_objects() -> None:
    world = World(started(OLD, "old"))
    world.held = True
    world.run()
    assert world.run(after_ms=GRACE_MS) == []
    world.held = False
    assert world.run() == [(OLD, "old")]


def test_only_what_is_led_is_read_and_each_record_once() -> None:
    world = World(*[started(OLD, "old")] * 5)
    world.run()
    assert world.topic.reads == 3
    world.run()
    assert world.topic.reads == 3
    world.led = {2: 8}
    world.run()
    assert world.topic.reads == 6
    world.led = {}
    assert world.run(after_ms=GRACE_MS) == []


@pytest.mark.parametrize("name", ["t", "x" * 126, "x" * 127, "y" * 249])
def test_the_owner_of_a_record_is_found_without_decoding_it(name: str) -> None:
    assert owner_of(started(OLD, name)) == (OLD, name)
    update = encode_remote_log(
        partition_deleted(name, OLD, PartitionDeleteState.MARKED, broker_id=1, now_ms=0)
    )
    assert owner_of(update) == (OLD, name)


def test_garbage_has_no_owner() -> None:
    whole = started(OLD, "old")
    for length in range(27):
        assert owner_of(whole[:length]) is None
    assert owner_of(b"\x01\x00\x00\xff\xff" + bytes(40)) is None
    world = World(b"", b"\x00", b"\x01\x00\x00\x00" + bytes(40), started(KEPT, "kept"))
    world.run()
    assert world.run(after_ms=GRACE_MS) == []
