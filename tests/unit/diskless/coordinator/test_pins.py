"""Pins of a coordinator: in its log, its cache and its snapshots."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from skylog.diskless.bulk import PinRequest
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.coordinator.state import Applied
from skylog.diskless.plane import CommitResult, DescribeFileResult, FileToCommit
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import DISKLESS_PINS_PER_WRITE_MAX
from skylog.objects.keys import ObjectKey
from skylog.wire.messages.file_pinned_record import FilePinnedRecord
from tests.unit.diskless.batches import to_commit
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, Home, home

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
NONE = ErrorCode.NONE
RULES = PlaneRules()


async def start(opened: Home) -> None:
    await opened.lead(0)
    await opened.runtime().submit(ask.CreatePartitions([(TOPIC, "a", [0, 1])]))


async def pin(opened: Home, *keys: str, lifetime_ms: int = 5 * DAY_MS) -> None:
    expires_ms = opened.clock.now_ms() + lifetime_ms
    pins = [PinRequest(key, "w", 1, expires_ms, [T0]) for key in keys]
    assert await opened.runtime().submit(ask.PinFiles(pins)) == [None] * len(keys)


async def commit(opened: Home, key: str) -> list[CommitResult]:
    results: list[CommitResult] = await opened.runtime().submit(
        ask.CommitFile(opened.file((T0, 3), key=key))
    )
    return results


async def known(opened: Home, *keys: str) -> list[DescribeFileResult]:
    described: list[DescribeFileResult] = await opened.runtime().submit(ask.DescribeFiles(keys))
    return described


async def again(opened: Home, *, cache: bool, snapshot: bool) -> None:
    """Reload the coordinator, with or without its cache."""
    if snapshot:
        # The log is pruned up to the first of two snapshots.
        for _ in range(2):
            await opened.runtime().snapshot()
            await opened.runtime().submit(tick(opened))
    opened.coordinators.partition_resigned(0)
    await opened.coordinators.loaded()
    if not cache:
        for path in opened.database.parent.glob("state.sqlite*"):
            path.unlink()
    await opened.lead(0)


def tick(opened: Home) -> Any:
    """A record that changes nothing of interest."""
    return ask.CommitFile(opened.file((T1, 1)))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("snapshot", [True, False])
async def test_pins_outlast_everything(cache: bool, snapshot: bool) -> None:
    async with home() as opened:
        await start(opened)
        waiting, committed, released = (opened.staged() for _ in range(3))
        await pin(opened, waiting, committed, released)
        first = await commit(opened, committed)
        await opened.runtime().submit(ask.ReleasePins([released]))
        before = await opened.digest() if not snapshot else None
        await again(opened, cache=cache, snapshot=snapshot)
        assert before in (None, await opened.digest())
        opened.clock.advance(2 * DAY_MS)
        assert [one.pinned for one in await known(opened, waiting, committed, released)] == [
            True,
            True,
            False,
        ]
        assert await commit(opened, committed) == [r._replace(duplicate=True) for r in first]
        (result,) = await commit(opened, waiting)
        assert (result.error, result.assigned_base_offset) == (NONE, 3)
        with pytest.raises(KafkaError) as refused:
            await commit(opened, released)
        assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("snapshot", [True, False])
async def test_a_pins_answer_outlasts_its_file(snapshot: bool) -> None:
    """Also when cleaning, which is not logged, and a rebuild happen in between."""
    async with home() as opened:
        await start(opened)
        key = opened.staged()
        await pin(opened, key)
        first = await commit(opened, key)
        opened.clock.advance(3 * HOUR_MS)  # the answers of a file are forgotten by then
        await opened.runtime().submit(ask.DeleteRecords([(*T0, -1)]))
        await opened.runtime().find(ask.ForgetFiles([key]))
        await again(opened, cache=False, snapshot=snapshot)
        await opened.runtime().find(ask.ForgetFiles([key]))
        assert await known(opened, key) == [DescribeFileResult(NONE, False, True)]
        (result,) = await commit(opened, key)
        assert result == first[0]._replace(duplicate=True, log_start_offset=3)


async def test_pins_expire_by_the_time_of_the_log() -> None:
    async with home() as opened:
        await start(opened)
        short, long = opened.staged(), opened.staged()
        await pin(opened, short, lifetime_ms=HOUR_MS)
        await pin(opened, long)
        machine = opened.runtime().machine
        assert machine is not None
        opened.clock.advance(HOUR_MS + RULES.pin_grace_ms)
        await opened.runtime().submit(tick(opened))
        await opened.runtime().caught_up()
        assert [one.object_key for one in machine.state.pins.all()] == sorted([short, long])
        opened.clock.advance(HOUR_MS)
        await opened.runtime().submit(tick(opened))
        await opened.runtime().caught_up()
        assert [one.object_key for one in machine.state.pins.all()] == [long]


async def test_a_pinned_file_is_not_handed_over() -> None:
    """The next owner may still have to commit its part: the object is not deleted before."""
    async with home(settings=RuntimeSettings(rules=RULES)) as opened:
        await opened.lead(0, 1)
        plane = TopicPlane(opened.coordinators, lambda at: at[1], opened.rng)
        await plane.create_partitions([(TOPIC, "a", 2)])
        key = opened.staged()
        expires_ms = opened.clock.now_ms() + 2 * DAY_MS
        pinned = [PinRequest(key, "w", 1, expires_ms, [T0, T1])]
        assert await plane.pin_files(pinned) == [None]
        file = opened.file((T0, 1), (T1, 1), key=key)
        # The first broker fails after one of the coordinators has its part.
        half = replace(file, batches=file.batches[:1], coordinator_ids=(0, 1))
        await opened.runtime(0).submit(ask.CommitFile(half))
        await plane.delete_records([(*T0, -1)])
        opened.clock.advance(DAY_MS)
        assert await plane.files_to_delete(opened.clock.now_ms(), 0) == []
        results = await plane.commit_file(file)
        assert [(r.error, r.assigned_base_offset, r.duplicate) for r in results] == [
            (NONE, 0, True),
            (NONE, 0, False),
        ]
        await plane.delete_records([(*T1, -1)])
        opened.clock.advance(DAY_MS)
        assert await plane.files_to_delete(opened.clock.now_ms(), 0) == [key]


async def test_a_repeated_commit_has_the_same_owners() -> None:
    """A retry may not know of the first attempt."""
    async with home() as opened:
        await opened.lead(0, 1, 2)
        orders = set()
        for _ in range(20):
            file = opened.file(*[((TOPIC, index), 1) for index in range(3)], key=opened.staged())
            divided = []
            for _ in range(3):
                plane = TopicPlane(opened.coordinators, lambda at: at[1], opened.rng)
                divided.append(tuple(plane._divide(file)))
            assert len(set(divided)) == 1
            orders.add(divided[0])
        assert len(orders) == 3


async def test_many_pins_are_several_writes() -> None:
    async with home() as opened:
        await start(opened)
        plane = TopicPlane(opened.coordinators, lambda _: 0, opened.rng)
        keys = [opened.staged() for _ in range(DISKLESS_PINS_PER_WRITE_MAX * 2 + 1)]
        expires_ms = opened.clock.now_ms() + DAY_MS
        pins = [PinRequest(key, "w" * 200, 1, expires_ms, [T0]) for key in keys]
        assert await plane.pin_files(pins) == [None] * len(keys)
        assert all(one.pinned for one in await plane.describe_files(keys))
        await plane.release_pins(keys)
        assert not any(one.pinned for one in await plane.describe_files(keys))


async def test_a_coordinator_that_is_away_refuses_its_pins_only() -> None:
    async with home() as opened:
        await start(opened)
        plane = TopicPlane(opened.coordinators, lambda at: at[1], opened.rng)
        expires_ms = opened.clock.now_ms() + DAY_MS
        wanted = [
            PinRequest(opened.staged(), "w", 1, expires_ms, partitions)
            for partitions in ([T0], [T1], [T0, T1], [])
        ]
        errors = await plane.pin_files(wanted)
        assert [error.code if error else None for error in errors] == [
            None,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


# --- The machine alone: uncommitted writes ----------------------------------------------------


NOW_MS = 1_700_000_000_000


class Machine:
    """Writes are appended and not committed until ``settle``."""

    def __init__(self) -> None:
        self.machine = CoordinatorMachine(0, MemoryState(), RULES)
        self._pending: list[Any] = []
        self._end = 0
        self.write(ask.CreatePartitions([(TOPIC, "a", [0])]))
        self.settle()

    def write(self, request: Any, now_ms: int = NOW_MS) -> Any:
        decision = self.machine.handle(request, now_ms)
        self.machine.note(decision, self._end)
        self._end += len(decision.records)
        self._pending += decision.records
        return decision

    def settle(self) -> None:
        self.machine.apply(self._pending, Applied(self._end, NOW_MS))
        self.machine.committed()
        self._pending = []


def staged(created_ms: int = NOW_MS) -> str:
    return ObjectKey.staged("f" * 16, created_ms, random.Random(3)).text


def pins_of(key: str) -> ask.PinFiles:
    return ask.PinFiles([PinRequest(key, "w", 1, NOW_MS + DAY_MS, [T0])])


def file_of(key: str) -> FileToCommit:
    batch = to_commit(
        key,
        topic_id=TOPIC,
        partition=0,
        byte_offset=1,
        byte_size=100,
        base_offset=0,
        last_offset=0,
        batch_max_timestamp=NOW_MS,
    )
    return FileToCommit(object_key=key, size=101, batches=[batch], coordinator_ids=(0,))


def test_a_pin_that_may_be_lost_promises_nothing() -> None:
    machine = Machine()
    old = staged(NOW_MS - RULES.commit_age_ms_max - 1)
    machine.write(pins_of(old))
    with pytest.raises(KafkaError):
        machine.write(ask.CommitFile(file_of(old)))
    machine.settle()
    assert machine.write(ask.CommitFile(file_of(old))).reply[0].error is NONE


def test_a_release_catches_a_pin_on_its_way() -> None:
    machine = Machine()
    key = staged()
    machine.write(pins_of(key))
    released = machine.write(ask.ReleasePins([key, "staging/unknown"]))
    assert [record.object_key for record in released.records] == [key]
    machine.settle()
    assert list(machine.machine.state.pins.all()) == []


def test_a_commit_on_its_way_is_joined_by_its_repetition() -> None:
    machine = Machine()
    key = staged()
    machine.write(pins_of(key))
    machine.settle()
    first = machine.write(ask.CommitFile(file_of(key)))
    second = machine.write(ask.CommitFile(replace(file_of(key), known_only=True)))
    assert second.joined
    assert second.reply == [first.reply[0]._replace(duplicate=True)]


def test_the_record_of_a_pin_is_small() -> None:
    machine = Machine()
    (record,) = machine.write(pins_of(staged())).records
    assert isinstance(record, FilePinnedRecord)
    assert (record.writer_id, record.epoch, record.expires_ms) == ("w", 1, NOW_MS + DAY_MS)
    assert (record.file_size, record.answers) == (-1, [])
