"""Where a fetch is served, how much is kept, and where copying continues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.diskless.local.plan import (
    CATCH_UP_ROUNDS_MAX,
    ROUND_PARTITIONS_MAX,
    SEGMENT_BYTES_MIN,
    TAIL_ROUNDS_MAX,
    LocalLimits,
    Resume,
    Rounds,
    copy_answers,
    newest,
    next_rounds,
    resume,
    sizes,
)
from skylog.diskless.plane import LogInfo
from skylog.diskless.regions import Region, Source
from skylog.kernel.errors import ErrorCode

# The regions of the architecture's example without tiered storage.
REGION = Region(4000, 5500)


def info(
    log_start: int, high_watermark: int, byte_size: int, wal_start: int | None = None
) -> LogInfo:
    start = log_start if wal_start is None else wal_start
    return LogInfo(ErrorCode.NONE, log_start, high_watermark, byte_size, start)


@pytest.mark.parametrize(
    ("offset", "source"),
    [
        (2000, Source.WAL),
        (3999, Source.WAL),
        (4000, Source.LOCAL),
        (5499, Source.LOCAL),
        (5500, Source.TAIL),
        # Only the plane knows whether it is out of range.
        (5501, Source.WAL),
    ],
)
def test_regions_are_half_open(offset: int, source: Source) -> None:
    # ENG-42 partly
    assert copy_answers(offset, REGION, following=True) is source


def test_fetches_do_not_wait_for_a_copy_that_lags() -> None:
    # ENG-39 partly
    assert copy_answers(5500, REGION, following=False) is Source.WAL
    assert copy_answers(5499, REGION, following=False) is Source.LOCAL
    assert copy_answers(0, None, following=False) is Source.WAL


def test_everything_deleted_is_a_tail_only_at_the_log_start() -> None:
    empty = Region(6000, 5500)
    assert copy_answers(5500, empty, following=True) is Source.WAL
    assert copy_answers(5200, empty, following=True) is Source.WAL


def test_partitions_share_the_disk() -> None:
    limits = LocalLimits(partition_bytes=1 << 20, bytes_max=4 << 20)
    assert sizes(limits, 0).copy_bytes == 1 << 20
    assert sizes(limits, 4).copy_bytes == 1 << 20
    assert sizes(limits, 16).copy_bytes == 1 << 18
    assert sizes(limits, 1 << 30) == (0, SEGMENT_BYTES_MIN)
    few = sizes(limits, 1)
    assert few.kept_bytes + few.segment_bytes == few.copy_bytes


def test_a_new_copy_begins_where_the_rest_fits() -> None:
    assert newest(info(100, 1100, 1000), 1000) == 100
    assert newest(info(100, 1100, 2000), 1000) == 600
    assert newest(info(1100, 1100, 0), 1000) == 1100


def test_a_new_copy_begins_where_wal_objects_do() -> None:
    """Their bytes are those of the log without its tiered prefix."""
    assert newest(info(100, 1100, 500, 600), 1000) == 600
    assert newest(info(100, 1100, 2000, 600), 1000) == 850
    assert newest(info(100, 1100, 0, 1100), 1000) == 1100


@pytest.mark.parametrize(
    ("region", "known", "expected"),
    [
        (None, info(0, 10, 10), Resume(0, keep=False)),
        (Region(3, 7), info(0, 10, 10), Resume(7, keep=True)),
        (Region(3, 10), info(0, 10, 10), Resume(10, keep=True)),
        # Beyond the high watermark: another history.
        (Region(3, 11), info(0, 10, 10), Resume(0, keep=False)),
        # It ends before the log begins.
        (Region(3, 7), info(8, 10, 10), Resume(8, keep=False)),
        # All that follows it is only tiered.
        (Region(3, 7), info(0, 10, 10, 8), Resume(8, keep=False)),
        (Region(3, 8), info(0, 10, 10, 8), Resume(8, keep=True)),
        # More is missing than is kept.
        (Region(3, 7), info(0, 1000, 100_000), Resume(990, keep=False)),
    ],
)
def test_what_becomes_of_a_copy(region: Region | None, known: LogInfo, expected: Resume) -> None:
    assert resume(region, known, 1000) == expected


@given(
    start=st.integers(0, 1 << 40),
    count=st.integers(0, 1 << 40),
    size=st.integers(0, 1 << 50),
    kept=st.integers(0, 1 << 40),
    region=st.none() | st.tuples(st.integers(0, 1 << 41), st.integers(0, 1 << 41)),
)
def test_copying_goes_on_inside_the_log(
    start: int, count: int, size: int, kept: int, region: tuple[int, int] | None
) -> None:
    copied = Region(min(region), max(region)) if region else None
    chosen = resume(copied, info(start, start + count, size), kept)
    assert start <= chosen.offset <= start + count
    if chosen.keep:
        assert copied is not None
        assert copied.end == chosen.offset


def test_rounds_are_bounded_and_those_that_catch_up_leave_room() -> None:
    waiting = [(number % 2 == 0, number) for number in range(4 * ROUND_PARTITIONS_MAX)]
    tail, catch_up = next_rounds(waiting, Rounds(0, 0))
    assert tail == list(range(0, 2 * ROUND_PARTITIONS_MAX, 2))
    assert catch_up == list(range(1, 2 * ROUND_PARTITIONS_MAX, 2))
    assert next_rounds(waiting, Rounds(TAIL_ROUNDS_MAX, 0))[0] == []
    assert next_rounds(waiting, Rounds(0, CATCH_UP_ROUNDS_MAX)) == (tail, [])
