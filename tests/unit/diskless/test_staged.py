"""Staged objects: what is validated, and what happens to them after failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from crc32c import crc32c

from skylog.diskless.batch import Extent
from skylog.diskless.bulk import PinRequest
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.staged import (
    Refused,
    StagedBatch,
    StagedCommits,
    StagedObject,
    check_extents,
    staged_key,
)
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import STAGED_OBJECT_BYTES_MAX
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.wire.batch import HEADER_BYTES
from skylog.wire.records import encode_batch
from skylog.wire.topic_rules import TopicRules

T = TypeVar("T")
TOPIC = Uuid(b"topic-a---------")
LATER = Uuid(b"topic-b---------")
OWNER = "ab" * 8
NONE = ErrorCode.NONE
INVALID = ErrorCode.INVALID_REQUEST


class Validators:
    """Counts its work."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, work: Callable[[], T]) -> T:
        self.runs += 1
        return work()


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.rng = random.Random(1)
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory, random.Random(2))
        self.plane = MemoryPlane(self.clock)
        self.validators = Validators()
        self.commits = StagedCommits(self.store, self.plane, self.clock, self.validators, 7)

    async def start(self) -> World:
        await self.plane.create_partitions([(TOPIC, "a", 2)])
        return self

    async def stage(self, *values: bytes, topic_id: Uuid = TOPIC, **rules: Any) -> StagedObject:
        key = ObjectKey.staged(OWNER, self.clock.now_ms(), self.rng)
        data = bytearray(b"\0")
        batches = []
        for value in values:
            encoded = encode_batch([(None, value)], timestamp=self.clock.now_ms())
            extent = Extent(object_key=key.text, byte_offset=len(data), byte_size=len(encoded))
            batches.append(StagedBatch(topic_id, 0, extent, TopicRules(**rules)))
            data += encoded
        await self.memory.put(key, bytes(data))
        return StagedObject(key, len(data), batches)


async def code_of(world: World, staged: StagedObject) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        await world.commits.commit(staged)
    return error.value.code


async def test_a_repetition_is_answered_without_a_look_at_the_object() -> None:
    world = await World().start()
    staged = await world.stage(b"a", b"b")
    first = await world.commits.commit(staged)
    assert [r.assigned_base_offset for r in first] == [0, 1]
    assert world.validators.runs == 1
    await world.memory.delete_many([staged.key])
    # Nor do the topic's current settings matter.
    strict = replace(
        staged,
        batches=[replace(b, rules=TopicRules(message_bytes_max=1)) for b in staged.batches],
    )
    again = await world.commits.commit(strict)
    assert again == [r._replace(duplicate=True) for r in first]
    assert world.validators.runs == 1
    other = replace(staged, batches=staged.batches[:1])
    assert await code_of(world, other) is INVALID


async def test_a_store_that_fails_is_asked_again_by_the_writer() -> None:
    world = await World().start()
    staged = await world.stage(b"a")
    world.store.faults = Faults(before=1.0)
    assert await code_of(world, staged) is ErrorCode.KAFKA_STORAGE_ERROR
    world.store.faults = Faults()
    (result,) = await world.commits.commit(staged)
    assert (result.error, result.assigned_base_offset, result.duplicate) == (NONE, 0, False)


async def test_a_partition_that_comes_later_is_no_reason_to_fail_for_ever() -> None:
    """Metadata may be ahead of the partition's coordinator."""
    world = await World().start()
    staged = await world.stage(b"a", topic_id=LATER)
    assert await code_of(world, staged) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await world.plane.create_partitions([(LATER, "b", 1)])
    (result,) = await world.commits.commit(staged)
    assert (result.error, result.duplicate) == (NONE, False)


async def test_refusals_name_their_batches() -> None:
    world = await World().start()
    staged = await world.stage(b"a" * 500, b"b", b"c" * 500, message_bytes_max=200)
    with pytest.raises(Refused) as refused:
        await world.commits.commit(staged)
    codes = [error.code if error else None for error in refused.value.errors]
    assert codes == [ErrorCode.MESSAGE_TOO_LARGE, None, ErrorCode.MESSAGE_TOO_LARGE]
    assert (await world.plane.log_info([(TOPIC, 0)]))[0].high_watermark == 0


async def test_a_compacted_topic_wants_keys() -> None:
    world = await World().start()
    staged = await world.stage(b"a", compacted=True)
    with pytest.raises(Refused, match="INVALID_RECORD"):
        await world.commits.commit(staged)


async def test_every_record_is_looked_at_and_none_is_compressed_anew() -> None:
    """Whatever the topic's settings: the bytes come from another process, and are not changed."""
    world = await World().start()
    lying = bytearray(encode_batch([(None, b"v" * 50)], timestamp=world.clock.now_ms()))
    lying[61] = 0x10  # the first record's length
    lying[17:21] = crc32c(lying[21:]).to_bytes(4, "big")
    key = ObjectKey.staged(OWNER, world.clock.now_ms(), world.rng)
    await world.memory.put(key, b"\0" + bytes(lying))
    rules = TopicRules(full=False, compression_type="zstd")
    batch = StagedBatch(TOPIC, 0, Extent(key.text, 1, len(lying)), rules)
    with pytest.raises(Refused):
        await world.commits.commit(StagedObject(key, 1 + len(lying), [batch]))
    good = await world.stage(b"a", full=False, compression_type="zstd")
    (result,) = await world.commits.commit(good)
    assert result.error is NONE


async def test_pinned_objects_wait() -> None:
    world = await World().start()
    staged = await world.stage(b"a")
    expires_ms = world.clock.now_ms() + 3_600_000
    pin = PinRequest(staged.key.text, "w", 1, expires_ms, [(TOPIC, 0)])
    assert await world.plane.pin_files([pin]) == [None]
    world.clock.advance(3_599_999)
    (result,) = await world.commits.commit(staged)
    assert result.error is NONE


async def test_timestamps_are_judged_by_when_the_object_was_written() -> None:
    """An epoch that is completed later is not refused for its age."""
    world = await World().start()
    staged = await world.stage(b"a", timestamp_before_max_ms=1000)
    expires_ms = world.clock.now_ms() + 3_600_000
    pin = PinRequest(staged.key.text, "w", 1, expires_ms, [(TOPIC, 0)])
    assert await world.plane.pin_files([pin]) == [None]
    world.clock.advance(3_000_000)
    (result,) = await world.commits.commit(staged)
    assert result.error is NONE


def extents(*pairs: tuple[int, int]) -> list[StagedBatch]:
    return [StagedBatch(TOPIC, 0, Extent("key", at, size), TopicRules()) for at, size in pairs]


def test_extents() -> None:
    check_extents(200, extents((1, 100), (101, 99)))
    check_extents(200, extents((101, 99), (1, 100)))
    check_extents(STAGED_OBJECT_BYTES_MAX, extents((1, HEADER_BYTES)))
    wrong = [
        (200, []),
        (200, [(0, 100)]),
        (200, [(-1, 100)]),
        (200, [(1, 100), (100, 100)]),
        (200, [(1, 100), (1, 100)]),
        (200, [(101, 100)]),
        (200, [(1, HEADER_BYTES - 1)]),
        (200, [(1, -100)]),
        (200, [(2**31 - 1, 100)]),
        (0, [(1, 100)]),
        (-5, [(1, 100)]),
    ]
    for size, pairs in wrong:
        with pytest.raises(KafkaError) as error:
            check_extents(size, extents(*pairs))
        assert error.value.code is INVALID
    with pytest.raises(KafkaError) as error:
        check_extents(STAGED_OBJECT_BYTES_MAX + 1, extents((1, HEADER_BYTES)))
    assert error.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_keys_have_owners() -> None:
    rng = random.Random(4)
    key = ObjectKey.staged(OWNER, 5, rng)
    assert staged_key(key.text, OWNER) == key
    for text, code in (
        (ObjectKey.staged("cd" * 8, 5, rng).text, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ObjectKey.new("wal", 5, rng).text, INVALID),
        (f"staging/{OWNER}/w/manifest", INVALID),
        (f"staging/{OWNER}/../x", INVALID),
        ("", INVALID),
        ("x" * 5000, INVALID),
    ):
        with pytest.raises(KafkaError) as error:
            staged_key(text, OWNER)
        assert error.value.code is code
