"""What is copied next, what is cleaned, and how far copying may lag behind."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from skylog.kernel.ids import Uuid
from skylog.log.closed import ClosedSegment
from skylog.tiered.candidates import CopyLag, abandoned, uncopied
from skylog.tiered.copying import claiming, empty_run
from skylog.tiered.lineage import Lineage
from skylog.tiered.slots import Slots
from tests.tiered_world import Broker, Crash, World, WorldLog, with_config
from tests.unit.tiered.test_expiry import Remote

NOW = 1_000_000


def closed(*bases: int, size: int = 100, time: int = 0) -> list[ClosedSegment]:
    """Segments between the bases."""
    return [
        ClosedSegment(base, end, size, time, "l", "i", "t", None, "s")
        for base, end in pairwise(bases)
    ]


def bases(
    remote: Remote, *local: int, epochs: list[tuple[int, int]], start: int = 0, end: int = 100
) -> list[int]:
    found = uncopied(closed(*local), remote.log, Lineage(epochs, end), start)
    return [segment.base_offset for segment in found]


def test_what_is_not_remote_is_copied_oldest_first() -> None:
    remote = Remote()
    assert bases(remote, 0, 10, 20, epochs=[(0, 0)]) == [0, 10]
    remote.finished(0, 9)
    assert bases(remote, 0, 10, 20, epochs=[(0, 0)]) == [10]
    remote.started(10, 19)
    assert bases(remote, 0, 10, 20, epochs=[(0, 0)]) == [10]


def test_a_gap_is_filled() -> None:
    """Kafka goes on behind its highest remote offset, and the gap stays one."""
    remote = Remote()
    remote.finished(0, 9)
    remote.finished(20, 29)
    assert bases(remote, 0, 10, 20, 30, 40, epochs=[(0, 0)]) == [10, 30]


def test_other_boundaries_of_an_older_leader_do_not_matter() -> None:
    remote = Remote()
    remote.finished(0, 14)
    remote.finished(15, 24)
    # 0 to 9 and 10 to 19 are covered by both together, 20 to 29 only in part.
    assert bases(remote, 0, 10, 20, 30, epochs=[(0, 0)]) == [20]


def test_what_another_lineage_copied_does_not_count() -> None:
    remote = Remote()
    remote.finished(0, 19, (1, 0))
    assert bases(remote, 0, 10, 20, epochs=[(1, 0), (2, 10)]) == [10]


def test_what_is_below_the_log_start_is_not_copied() -> None:
    remote = Remote()
    assert bases(remote, 0, 10, 20, epochs=[(0, 12)], start=12) == [10]
    remote.finished(12, 19)
    assert bases(remote, 0, 10, 20, epochs=[(0, 12)], start=12) == []


def test_only_copies_of_lower_epochs_and_own_failures_are_cleaned() -> None:
    remote = Remote()  # written in epoch 5
    first = remote.started(0, 9)
    remote.finished(10, 19)
    remote.deleting(20, 29)
    assert [one.id for one in abandoned(remote.log, 6)] == [first.id]
    assert abandoned(remote.log, 5) == []
    assert [one.id for one in abandoned(remote.log, 5, {first.id})] == [first.id]


@pytest.mark.parametrize(
    ("lag", "age_ms", "behind", "due_ms"),
    [
        (CopyLag(), 0, 0, NOW),
        (CopyLag(0, 5000), 0, 0, NOW),
        (CopyLag(5000, 0), 0, 0, NOW),
        (CopyLag(5000, -1), 0, 9999, NOW + 5000),
        (CopyLag(5000, -1), 5000, 0, NOW),
        (CopyLag(5000, -1), 4999, 0, NOW + 1),
        (CopyLag(-1, 500), 0, 499, None),
        (CopyLag(-1, 500), 0, 500, NOW),
        (CopyLag(5000, 500), 0, 500, NOW),
        (CopyLag(5000, 500), 5000, 0, NOW),
        (CopyLag(5000, 500), 1000, 0, NOW + 4000),
        (CopyLag(-1, -1), 10**9, 10**9, None),
        # A timestamp from the future says nothing about age.
        (CopyLag(5000, -1), -10, 0, NOW),
    ],
)
def test_copying_may_lag_behind(lag: CopyLag, age_ms: int, behind: int, due_ms: int | None) -> None:
    segment = closed(0, 10, time=NOW - age_ms)[0]
    assert lag.due_ms(segment, behind, NOW) == due_ms


def test_a_lag_of_minus_one_is_the_local_limit() -> None:
    world = World()
    log = WorldLog(world, with_config(remote_copy_lag_ms=-1, local_retention_ms=777))
    assert Broker(world, log, 0).hosted.copy_lag == CopyLag(777, -1)
    log.config = with_config(remote_copy_lag_bytes=55, remote_copy_lag_ms=66)
    assert Broker(world, log, 1).hosted.copy_lag == CopyLag(66, 55)


def test_a_leader_that_has_nothing_to_copy_claims_before_it_cleans() -> None:
    world = World(fate=lambda number, name: (_ for _ in ()).throw(Crash) if number == 2 else "")
    log = WorldLog(world)
    old = Broker(world, log, 1)
    log.append(15)
    with pytest.raises(Crash):
        asyncio.run(old.settle())
    assert len(old.remote.unfinished()) == 1
    world.fate = lambda number, name: ""
    log.config = with_config(remote_log_copy_disable=True)
    heir = Broker(world, log, 2)
    before = len(world.effects)
    asyncio.run(heir.settle())
    effects = [effect.split()[-1] for effect in world.effects[before:]]
    # The claim: states 0, 2, 3; then what the old one had left.
    assert effects == ["0", "2", "3", "2", "manifest", "log", "indexes", "3"]
    assert heir.remote.fence == 2
    assert not world.objects


def test_an_empty_run_is_no_copy() -> None:
    run = empty_run(Remote().log.partition, "t", Uuid(b"i" * 16), 1, 0, 1, 0)
    assert claiming(run).is_empty_run


def test_a_slot_is_left_to_others_while_its_user_waits() -> None:
    async def run() -> None:
        slots, order = Slots(1), []
        resume = asyncio.Event()

        async def first() -> None:
            async with slots:
                order.append("first")
                await slots.let_go(resume.wait())
                order.append("first again")

        async def second() -> None:
            async with slots:
                order.append("second")
                resume.set()

        await asyncio.gather(first(), second())
        assert order == ["first", "second", "first again"]

    asyncio.run(run())
