"""Ranges for bulk readers: the same plan in Python and in SQL, whatever the batches are like."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from skylog.diskless.batch import Committed, Extent, Stamp
from skylog.diskless.bulk import PlannedRange, PlannedSplit, RangeRequest
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.queries import look
from skylog.diskless.coordinator.requests import LocateBatches, PlanRanges
from skylog.diskless.coordinator.sqlite import SqliteState
from skylog.diskless.coordinator.state import FileState, StateStore
from skylog.diskless.rules import ranges
from skylog.kernel.ids import Uuid

T0 = (Uuid(b"topic-a---------"), 0)


def fill(store: StateStore, batches: list[Committed]) -> None:
    with store.transaction():
        store.create_partition(T0, "a")
        store.add_file(FileState("wal/aa/x", 1, 1, 0, (0,), 0, 0, len(batches)), ())
        store.add_batches(T0, 0, batches)
        end = batches[-1][1].last_offset + 1 if batches else 0
        size = sum(extent.byte_size for extent, _ in batches)
        log = store.log(T0)
        assert log is not None
        start = batches[0][1].base_offset if batches else 0
        store.set_log(T0, log._replace(high_watermark=end, byte_size=size, log_start_offset=start))


def random_batches(rng: random.Random) -> list[Committed]:
    offset = rng.randrange(50)
    found = []
    for number in range(rng.randrange(60)):
        count = rng.randrange(1, 9)
        size = rng.choice((1, 70, 100, 5000))
        stamp, kind = rng.randrange(100), rng.randrange(2)
        found.append(
            (
                Extent(object_key="wal/aa/x", byte_offset=number * 5001, byte_size=size),
                Stamp(
                    base_offset=offset,
                    last_offset=offset + count - 1,
                    log_append_timestamp=stamp,
                    batch_max_timestamp=99 - stamp,
                    timestamp_type=kind,
                ),
            )
        )
        offset += count
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_database_plans_as_python_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    batches = random_batches(rng)
    plain, on_disk = MemoryState(), SqliteState(tmp_path / "state.sqlite", "t")
    fill(plain, batches)
    fill(on_disk, batches)
    start, end = (batches[0][1].base_offset, batches[-1][1].last_offset + 1) if batches else (0, 0)
    for _ in range(20):
        first = rng.randint(start, end)
        request = RangeRequest(*T0, first, rng.randint(first, end), rng.choice((-1, 40, 90)))
        size, limit = rng.choice((1, 100, 333, 1 << 40)), rng.choice((1, 2, 7, 1000))
        plan = PlanRanges([request], size, limit)
        (planned,) = look(plain, plan)
        assert isinstance(planned, PlannedRange)
        assert look(on_disk, plan) == [planned]
        for one, following in pairwise(planned.splits):
            assert one.end_offset <= following.start_offset
        locate = LocateBatches([request], limit)
        assert look(on_disk, locate) == look(plain, locate)
    on_disk.close()


@pytest.mark.parametrize("seed", range(20))
def test_pages_make_the_whole(seed: int) -> None:
    """However a plan is split into pages, it covers the same batches, in order, once."""
    rng = random.Random(seed)
    batches = random_batches(rng)
    state = MemoryState()
    fill(state, batches)
    wanted = [(extent, stamp) for extent, stamp in batches if stamp.timestamp >= 30]
    request = RangeRequest(*T0, min_timestamp=30)
    for limit in (1, 3, 1000):
        splits: list[PlannedSplit] = []
        skipped, left = 0, request
        while True:
            (page,) = look(state, PlanRanges([left], 300, limit))
            assert isinstance(page, PlannedRange)
            splits += page.splits
            skipped += page.skipped_bytes
            if page.next_offset >= page.end_offset:
                break
            left = RangeRequest(*T0, page.next_offset, page.end_offset, 30)
        merged = list(ranges.merged(splits, 300))
        assert sum(split.byte_size for split in merged) == sum(
            extent.byte_size for extent, _ in wanted
        )
        assert skipped == sum(extent.byte_size for extent, _ in batches) - sum(
            extent.byte_size for extent, _ in wanted
        )
        for _, stamp in wanted:
            assert sum(s.start_offset <= stamp.base_offset < s.end_offset for s in merged) == 1
        for one, following in pairwise(merged):
            assert one.end_offset <= following.start_offset
            assert one.byte_size + following.byte_size > 300


def test_small_neighbours_become_one() -> None:
    splits = [PlannedSplit(0, 1, 50), PlannedSplit(1, 3, 50), PlannedSplit(5, 6, 1)]
    assert list(ranges.merged(splits, 100)) == [PlannedSplit(0, 3, 100), PlannedSplit(5, 6, 1)]
    assert list(ranges.merged(splits, 49)) == splits
    assert list(ranges.merged([], 49)) == []
