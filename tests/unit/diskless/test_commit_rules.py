"""The rules that all planes share, in cases that the contract suite does not cover."""

from __future__ import annotations

import pytest

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.rules import commits, offsets
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode
from tests.contract.support import T0, sent
from tests.unit.diskless.batches import coordinate

NOW = 1_700_000_000_000
DAY = PlaneRules().producer_expiration_ms
LAST = 2**31 - 1


def entry(first: int, last: int, *, epoch: int = 0, at: int = NOW) -> commits.ProducerEntry:
    return commits.ProducerEntry(epoch, first, last, first + 100, at)


def verdict(entries: list[commits.ProducerEntry], first: int, count: int = 1, epoch: int = 0):
    batch = sent(first, count, epoch=epoch, to=T0).at("key", 1, NOW)
    return commits.check_sequence(commits.unexpired(tuple(entries), NOW, DAY), batch.producer)


@pytest.mark.parametrize(
    ("entries", "first", "count", "epoch", "error"),
    [
        ([], 77, 1, 5, ErrorCode.NONE),
        ([entry(0, 4)], 5, 1, 0, ErrorCode.NONE),
        ([entry(0, 4)], 6, 1, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([entry(0, LAST)], 0, 1, 0, ErrorCode.NONE),
        ([entry(LAST - 1, 2)], 3, 1, 0, ErrorCode.NONE),
        ([entry(0, 4)], 0, 1, 1, ErrorCode.NONE),
        ([entry(0, 4)], 5, 1, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([entry(0, 4, epoch=2)], 5, 1, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        ([entry(0, 4, epoch=2, at=NOW - DAY)], 9, 1, 1, ErrorCode.NONE),
    ],
)
def test_sequences(
    entries: list[commits.ProducerEntry], first: int, count: int, epoch: int, error: ErrorCode
) -> None:
    assert verdict(entries, first, count, epoch) == (error, None)


def test_a_duplicate_names_the_batch_that_it_repeats() -> None:
    known = [entry(0, 4), entry(5, 5), entry(6, 9)]
    assert verdict(known, 5).duplicate_of == known[1]
    assert verdict(known, 6, 4).duplicate_of == known[2]


def test_only_the_latest_epoch_is_remembered() -> None:
    entries: commits.Entries = ()
    for number in range(7):
        entries = commits.remember(entries, entry(number, number))
    assert [e.base_sequence for e in entries] == [2, 3, 4, 5, 6]
    assert commits.remember(entries, entry(0, 0, epoch=1)) == (entry(0, 0, epoch=1),)


def found(base: int) -> BatchCoordinate:
    return coordinate(
        "key",
        byte_offset=1,
        byte_size=100,
        base_offset=base,
        last_offset=base + 9,
        batch_max_timestamp=NOW,
    )


def start(oldest: list[BatchCoordinate], limit: offsets.RetentionLimits, cap: int = 10, **log: int):
    state = offsets.LogState(**({"high_watermark": 1000, "byte_size": 300} | log))
    return offsets.retention_start(oldest, state, limit, NOW, cap)


def test_retention_needs_only_the_oldest_batches() -> None:
    """Given the first cap + 1 batches of many, the log starts at the last of them."""
    first_three = [found(0), found(10), found(20)]
    nothing_fits = offsets.RetentionLimits(bytes=0, ms=-1)
    assert start(first_three, nothing_fits, cap=2, byte_size=100_000) == 20
    assert start(first_three, nothing_fits, cap=3) == 1000


def test_retention_never_moves_the_start_back() -> None:
    keep = offsets.RetentionLimits(bytes=300, ms=-1)
    assert start([found(0)], keep, log_start_offset=4) == 4
    assert start([], offsets.RetentionLimits(-1, -1), log_start_offset=4) == 4


def test_a_partition_without_wal_batches_starts_at_its_end() -> None:
    assert start([], offsets.RetentionLimits(bytes=0, ms=0), byte_size=0) == 1000


def test_retention_waits_while_the_oldest_records_are_only_tiered() -> None:
    """The plane does not know how old they are; moving the start would delete them all."""
    week = offsets.RetentionLimits(bytes=0, ms=7 * 24 * 3_600_000)
    pruned = {"wal_start_offset": 20, "high_watermark": 30}
    assert start([found(20)], week, **pruned) == 0
    assert start([], week, wal_start_offset=30, high_watermark=30, log_start_offset=4) == 4
    # Once the tiered prefix is gone, it decides again.
    assert start([found(20)], week, **pruned, log_start_offset=20) == 30


def test_offsets_between_the_log_start_and_wal_are_tiered() -> None:
    log = offsets.LogState(log_start_offset=2, high_watermark=9, wal_start_offset=5)
    errors = [offsets.find_error(offset, log).name for offset in (1, 2, 4, 5, 9, 10)]
    moved, out = "OFFSET_MOVED_TO_TIERED_STORAGE", "OFFSET_OUT_OF_RANGE"
    assert errors == [out, moved, moved, "NONE", "NONE", out]
