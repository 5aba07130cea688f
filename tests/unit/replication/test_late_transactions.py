"""Transactions that are open for too long are counted, and logged once."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import LATE_TRANSACTION_BUFFER_MS
from skylog.replication.late_transactions import LateTransactions
from skylog.replication.partition import Partition
from tests.unit.log.support import NOW, UNVERIFIED, batch, end_transaction, open_log
from tests.unit.replication.support import NODE, Host, state

TIMEOUT_MS = 60_000
LATE_MS = TIMEOUT_MS + LATE_TRANSACTION_BUFFER_MS
OTHER = NODE + 1


class Told:
    """Stands in for the log."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def warning(self, _: str, *, first_offset: int, **__: object) -> None:
        self.offsets.append(first_offset)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found = Told()
    monkeypatch.setattr("skylog.replication.late_transactions._log", found)
    return found


def led(directory: Path, index: int = 0) -> Partition:
    log = open_log(directory / f"t-{index}")
    partition = Partition(Host(NODE), "t", index, Uuid(b"t" * 16), log)
    partition.update(state())
    return partition


def write(partition: Partition, producer_id: int, sequence: int, timestamp: int = NOW) -> None:
    sent = batch(b"v", timestamp=timestamp, producer=(producer_id, 0, sequence), transactional=True)
    partition.append([sent], NOW, UNVERIFIED)


async def test_a_transaction_is_late_once_nothing_can_excuse_it(tmp_path: Path, told: Told) -> None:
    clock = ManualClock(NOW)
    partition, quiet = led(tmp_path), led(tmp_path, 1)
    late = LateTransactions([partition, quiet], clock, TIMEOUT_MS)
    write(partition, 7, 0)
    clock.advance(LATE_MS)
    await late.review()
    assert late.partition_count == 0
    clock.advance(1)
    await late.review()
    await late.review()
    assert (late.partition_count, told.offsets) == (1, [0])
    end_transaction(partition.log, 7, commit=False)
    await late.review()
    assert late.partition_count == 0


async def test_what_counts_is_the_latest_batch_of_the_oldest_transaction(
    tmp_path: Path, told: Told
) -> None:
    clock = ManualClock(NOW)
    partition = led(tmp_path)
    late = LateTransactions([partition], clock, TIMEOUT_MS)
    write(partition, 7, 0)
    write(partition, 8, 0)
    write(partition, 7, 1, NOW + 10)
    clock.advance(LATE_MS + 5)
    await late.review()
    assert late.partition_count == 0  # as in Kafka, though that of 8 would be late
    end_transaction(partition.log, 7, commit=True)
    await late.review()
    assert (late.partition_count, told.offsets) == (1, [1])


async def test_only_leaders_count(tmp_path: Path, told: Told) -> None:
    clock = ManualClock(NOW)
    partition = led(tmp_path)
    late = LateTransactions([partition], clock, TIMEOUT_MS)
    write(partition, 7, 0)
    clock.advance(LATE_MS + 1)
    partition.update(state(OTHER, 1, (NODE, OTHER)))
    await late.review()
    assert (late.partition_count, told.offsets) == (0, [])


async def test_the_next_late_transaction_is_told_too(tmp_path: Path, told: Told) -> None:
    clock = ManualClock(NOW)
    partition = led(tmp_path)
    late = LateTransactions([partition], clock, TIMEOUT_MS)
    write(partition, 7, 0)
    write(partition, 8, 0)
    clock.advance(LATE_MS + 1)
    await late.review()
    end_transaction(partition.log, 7, commit=True)
    await late.review()
    assert (late.partition_count, told.offsets) == (1, [0, 1])
