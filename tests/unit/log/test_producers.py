from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.producers import REMEMBERED_BATCHES
from skylog.wire.batch import SEQUENCE_MAX
from tests.unit.log.support import (
    NOW,
    UNVERIFIED,
    batch,
    end_transaction,
    open_log,
    read_values,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path)


def put(
    log: Log,
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    producer_id: int = 5,
    transactional: bool = False,
    now_ms: int = NOW,
) -> tuple[int, int, bool]:
    values = [b"v"] * count
    info = log.appender.append(
        [
            batch(
                *values,
                producer=(producer_id, epoch, sequence),
                transactional=transactional,
                timestamp=now_ms,
            )
        ],
        0,
        now_ms,
        UNVERIFIED,
    )
    log.high_watermark = log.log_end_offset
    return info.first_offset, info.last_offset, info.duplicate


def refused(log: Log, code: ErrorCode, sequence: int, **kwargs: int) -> None:
    end = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        put(log, sequence, **kwargs)  # type: ignore[arg-type]
    assert caught.value.code is code
    assert log.log_end_offset == end


def test_a_repeated_batch_gets_its_first_answer(log: Log) -> None:
    assert put(log, 0, count=3) == (0, 2, False)
    assert put(log, 3, count=2) == (3, 4, False)
    assert put(log, 0, count=3) == (0, 2, True)
    assert put(log, 3, count=2) == (3, 4, True)
    assert log.log_end_offset == 5


def test_only_the_last_five_batches_are_known_again(log: Log) -> None:
    for sequence in range(REMEMBERED_BATCHES + 1):
        put(log, sequence)
    assert put(log, 1) == (1, 1, True)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


@pytest.mark.parametrize("config", [LogConfig(), LogConfig(segment_bytes=200)])
def test_they_are_known_again_after_a_clean_start(tmp_path: Path, config: LogConfig) -> None:
    log = open_log(tmp_path, config)
    for sequence in range(10):
        put(log, sequence)
        put(log, sequence, producer_id=6)
    log.close()
    again = open_log(tmp_path, config, clean=True)
    # With large segments, all that are remembered; with small ones, those of the last two.
    known = REMEMBERED_BATCHES if config.segment_bytes > 1000 else 2
    for sequence in range(10 - known, 10):
        assert put(again, sequence) == (2 * sequence, 2 * sequence, True)
    refused(again, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 9 - REMEMBERED_BATCHES)
    assert put(again, 10) == (20, 20, False)


def test_a_duplicate_must_match_in_both_ends(log: Log) -> None:
    put(log, 0, count=3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, count=2)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, count=2)


def test_gaps_are_refused_and_unknown_producers_begin_anywhere(log: Log) -> None:
    assert put(log, 77) == (0, 0, False)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 79)
    assert put(log, 78) == (1, 1, False)
    assert put(log, 12, producer_id=6) == (2, 2, False)


def test_a_new_epoch_begins_at_zero_and_ends_the_old_one(log: Log) -> None:
    put(log, 0)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, epoch=1)
    assert put(log, 0, epoch=1) == (1, 1, False)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=0)
    # The same sequences under an old epoch are no duplicate.
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=0)


@pytest.mark.parametrize("count", [1, 4])
def test_sequences_wrap(log: Log, count: int) -> None:
    start = SEQUENCE_MAX - 1
    put(log, start, count=count)
    following = (start + count) & SEQUENCE_MAX
    assert put(log, following) == (count, count, False)
    assert put(log, start, count=count) == (0, count - 1, True)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (following + 2) & SEQUENCE_MAX)


def test_batches_of_one_append_see_each_other(log: Log) -> None:
    log.appender.append([batch(b"a", producer=(5, 0, 0)), batch(b"b", producer=(5, 0, 1))], 0, NOW)
    with pytest.raises(KafkaError):
        log.appender.append(
            [batch(b"c", producer=(5, 0, 2)), batch(b"d", producer=(5, 0, 4))], 0, NOW
        )
    assert log.log_end_offset == 2
    assert put(log, 2) == (2, 2, False)


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(producer_id_expiration_ms=1000))
    put(log, 0, producer_id=1, now_ms=NOW)
    put(log, 0, producer_id=2, now_ms=NOW + 500)
    assert log.producers.expire(NOW + 999, log.config.producer_id_expiration_ms) == 0
    assert log.producers.expire(NOW + 1000, log.config.producer_id_expiration_ms) == 1
    assert [p.producer_id for p in log.producers] == [2]
    assert put(log, 9, producer_id=1)[2] is False


def test_state_survives_a_clean_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(3):
        put(log, sequence)
    log.close()
    log = open_log(tmp_path, clean=True)
    assert put(log, 2) == (2, 2, True)
    assert put(log, 3) == (3, 3, False)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 9)


def test_state_survives_a_crash_without_any_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(3):
        put(log, sequence)
    log = open_log(tmp_path)
    # Read back from the batches, all of them are known again.
    assert put(log, 0) == (0, 0, True)
    assert put(log, 3) == (3, 3, False)


def test_a_broken_snapshot_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    for sequence in range(6):
        put(log, sequence)
    log.close()
    snapshots = sorted(tmp_path.glob("*.snapshot"))
    for path in snapshots[1:]:
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    log = open_log(tmp_path, clean=True)
    assert put(log, 6) == (6, 6, False)
    assert len(read_values(log)) == 7


def test_an_open_transaction_holds_back_the_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 0)
    put(log, 0, producer_id=6, transactional=True)
    put(log, 0, producer_id=7, transactional=True)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    refused(log, ErrorCode.INVALID_TXN_STATE, 1, producer_id=6)
    assert list(open_log(tmp_path).producers)[1].txn_first_offset == 1
    end_transaction(log, 6, commit=True)
    assert log.last_stable_offset == 2
    end_transaction(log, 7, commit=False)
    assert log.last_stable_offset == 5
    again = open_log(tmp_path)
    assert [p.txn_first_offset for p in again.producers] == [-1, -1, -1]
    assert [p.coordinator_epoch for p in again.producers] == [-1, 0, 0]
