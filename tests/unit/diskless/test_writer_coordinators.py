"""The writer over several coordinators: one that hangs delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.writer import DisklessWriter, Item, Request, WriterSettings
from skylog.diskless.writer.room import Room
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.memory import MemoryStore
from tests.unit.diskless.coordinator.support import TOPIC, Home, home
from tests.unit.diskless.engine import item
from tests.waiting import eventually

NONE = ErrorCode.NONE
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
COORDINATORS = 3
WAIT_SECONDS = 30


class Scene:
    """Partition n of the topic belongs to coordinator n."""

    def __init__(self, opened: Home, clock: SystemClock, **settings: Any) -> None:
        self.home = opened
        self.plane = TopicPlane(opened.coordinators, self._coordinator_of, opened.rng)
        self.store = MemoryStore(clock)
        self.writer = DisklessWriter(
            WriterSettings(**settings), self.store, self.plane, clock=clock, rng=opened.rng
        )

    def _coordinator_of(self, partition: tuple[Any, int]) -> int | None:
        return partition[1] if partition[1] < COORDINATORS else None

    def hold(self, coordinator: int) -> None:
        """Followers have stopped: its log is no longer committed."""
        self.home.partitions[coordinator].held = True
        self.home.partitions[coordinator].isr = (0, 1)

    def release(self, coordinator: int) -> None:
        self.home.partitions[coordinator].held = False
        self.home.partitions[coordinator].commit()

    def send(self, *items: Item) -> Request:
        return self.writer.submit(1, items)


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[Scene]:
    clock = SystemClock()
    async with home(clock=clock) as opened:
        await opened.lead(*range(COORDINATORS))
        one = Scene(opened, clock, **settings)
        await one.plane.create_partitions([(TOPIC, "t", COORDINATORS)])
        yield one
        for coordinator in range(COORDINATORS):
            one.release(coordinator)
        await one.writer.close()


def to(partition: int, value: bytes = b"v", sequence: int = -1) -> Item:
    producer = (7, 0, sequence) if sequence >= 0 else (-1, -1, -1)
    return item(value, partition, topic_id=TOPIC, producer=producer)


async def acked(*requests: Request) -> list[list[tuple[ErrorCode, int]]]:
    await asyncio.wait_for(asyncio.gather(*(r.done for r in requests)), WAIT_SECONDS)
    return [[(r.error, r.base_offset) for r in one.results()] for one in requests]


async def test_a_hanging_coordinator_delays_no_other() -> None:
    # ENG-17, DC-21
    async with scene() as at:
        at.hold(1)
        held = [at.send(to(1, b"a", 0)), at.send(to(1, b"b", 1))]
        # All in one file, and in files after it.
        assert await acked(at.send(to(0)), at.send(to(2))) == [[(NONE, 0)], [(NONE, 0)]]
        for offset in range(1, 6):
            held.append(at.send(to(1, b"c", offset + 1)))
            assert await acked(at.send(to(0))) == [[(NONE, offset)]]
        assert not any(one.done.done() for one in held)
        assert at.writer.waiting().get(0, 0) == 0
        assert at.writer.waiting()[1] > 1
        at.release(1)
        assert await acked(*held) == [[(NONE, offset)] for offset in range(7)]


async def test_a_file_of_several_coordinators_is_committed_to_all_at_once() -> None:
    # ENG-16
    async with scene() as at:
        for coordinator in (0, 1):
            at.hold(coordinator)
        before = [at.home.partitions[one].log.log_end_offset for one in (0, 1)]
        request = at.send(to(0), to(1))

        def appended() -> list[int]:
            return [at.home.partitions[one].log.log_end_offset for one in (0, 1)]

        # Both are in flight, and none has ended.
        await eventually(
            lambda: all(now > then for now, then in zip(appended(), before, strict=True))
        )
        assert {result.error for result in request.results()} == {TIMED_OUT}
        assert len([one async for one in at.store.list("wal/")]) == 1
        for coordinator in (0, 1):
            at.release(coordinator)
        assert await acked(request) == [[(NONE, 0), (NONE, 0)]]


async def test_of_a_request_to_several_the_known_part_is_told() -> None:
    # ENG-17
    async with scene() as at:
        at.hold(1)
        request = at.send(to(0), to(1), to(2))
        await eventually(lambda: [r.error for r in request.results()] == [NONE, TIMED_OUT, NONE])
        assert not request.done.done()
        at.release(1)
        assert await acked(request) == [[(NONE, 0)] * 3]
        assert at.writer.stats.files == 1
        assert at.writer.stats.commits == 3


async def test_an_unavailable_coordinator_fails_no_other_and_is_waited_for() -> None:
    # DC-21
    async with scene() as at:
        at.home.coordinators.partition_resigned(1)
        waiting = at.send(to(1, b"a", 0))
        assert await acked(at.send(to(0)), at.send(to(2))) == [[(NONE, 0)], [(NONE, 0)]]
        assert await acked(at.send(to(0), to(2))) == [[(NONE, 1), (NONE, 1)]]
        assert not waiting.done.done()
        await at.home.lead(1)
        assert await acked(waiting) == [[(NONE, 0)]]


async def test_an_unknown_outcome_is_settled_before_later_files_of_its_coordinator() -> None:
    async with scene() as at:
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, ambiguous=True)
        at.home.partitions[1].append_error = error
        sent = [at.send(to(1, b"a", 0))]
        await eventually(lambda: bool(at.home.timers.actions))
        at.home.partitions[1].append_error = None
        sent += [at.send(to(1, b"b", 1)), at.send(to(1, b"c", 2))]
        assert await acked(at.send(to(0))) == [[(NONE, 0)]]
        at.home.timers.fire()  # the coordinator is loaded again
        assert await acked(*sent) == [[(NONE, 0)], [(NONE, 1)], [(NONE, 2)]]


async def test_a_partition_without_a_coordinator_is_refused_at_once() -> None:
    async with scene() as at:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await acked(at.send(to(9))) == [[(unknown, -1)]]
        assert await acked(at.send(to(9), to(0))) == [[(unknown, -1), (NONE, 0)]]


async def test_a_part_that_is_refused_keeps_the_object_for_the_others() -> None:
    async with scene() as at:
        runtime = at.home.runtime(1)

        async def refuse(_request: Any) -> Any:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

        runtime.submit = refuse  # type: ignore[assignment,method-assign]
        request = at.send(to(0), to(1))
        assert await acked(request) == [[(NONE, 0), (ErrorCode.KAFKA_STORAGE_ERROR, -1)]]
        await at.writer.close()
        assert len([one async for one in at.store.list("wal/")]) == 1
        assert (at.writer.stats.failed_files, at.writer.stats.files) == (1, 0)


async def test_files_close_early_though_a_coordinator_is_held_up() -> None:
    # Age alone would not allow an answer here.
    async with scene(interval_ms=600_000, adaptive=True) as at:
        at.hold(1)
        held = [at.send(to(1))]
        for offset in range(8):
            held.append(at.send(to(1)))
            assert await acked(at.send(to(0))) == [[(NONE, offset)]]


async def test_what_waits_for_one_coordinator_leaves_room_for_others() -> None:
    size = to(0).batch.size
    async with scene(inflight_bytes_max=8 * size) as at:
        at.hold(1)
        held = [at.send(to(1, b"v", sequence)) for sequence in range(20)]
        assert [one.waits for one in held].count(False) == 8
        for offset in range(30):
            assert await acked(at.send(to(0))) == [[(NONE, offset)]]
        at.release(1)
        assert await acked(*held) == [[(NONE, offset)] for offset in range(20)]


async def request(**sizes: int) -> Request:
    coordinator_ids = [int(name[1:]) for name in sizes]
    items = [
        to(coordinator_id, b"v" * size)
        for coordinator_id, size in zip(coordinator_ids, sizes.values(), strict=True)
    ]
    return Request(1, items, coordinator_ids)


async def test_a_coordinator_alone_gets_to_the_limit() -> None:
    one = await request(c0=1)
    room = Room(3 * one.size)
    taken = [await request(c0=1) for _ in range(4)]
    assert [room.take(r) for r in taken] == [True, True, True, False]
    room.give_back(taken[0])
    assert room.admit() == [taken[3]]
    assert not room.is_waited_for


async def test_requests_to_a_coordinator_keep_their_order_and_others_pass() -> None:
    one = await request(c0=1)
    room = Room(3 * one.size)
    first = [await request(c0=1) for _ in range(3)]
    assert all(room.take(r) for r in first)
    both, again, other = await request(c0=1, c1=1), await request(c1=1), await request(c2=1)
    assert not room.take(both)
    assert not room.take(again)  # there would be room, but ``both`` comes first
    assert room.take(other)
    room.give_back(first[0])
    room.give_back(other)
    assert room.admit() == [both, again]


async def test_coordinators_that_are_held_up_leave_as_much_for_others() -> None:
    one = await request(c0=1)
    room = Room(6 * one.size)
    for name, share in (("c0", 6), ("c1", 3), ("c2", 2)):
        taken = 0
        while room.take(await request(**{name: 1})):
            taken += 1
        assert taken == share, name


async def test_a_request_larger_than_all_room_has_its_turn() -> None:
    room = Room(100)
    large = await request(c0=1000)
    assert room.take(large)
    small = await request(c1=1)
    assert not room.take(small)
    room.give_back(large)
    assert room.admit() == [small]
