"""Transactions in a local log: the stable offset, aborted transactions, crashes."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import TRANSACTION_GUARDS_PER_PARTITION_MAX
from skylog.log.aborted import AbortedTransaction, decode_aborted
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.log import Log
from skylog.log.producers import EPOCH_MAX, Marker, TransactionEnd
from skylog.log.verification import COORDINATOR, Origin
from skylog.wire.batch import split_batches
from tests.unit.log.support import (
    NOW,
    UNVERIFIED,
    FaultyFiles,
    batch,
    end_transaction,
    fill,
    open_log,
)

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def put(log: Log, producer_id: int, sequence: int, *, epoch: int = 0, value: bytes = b"v") -> int:
    """A transactional batch, committed; returns its offset."""
    sent = batch(value, producer=(producer_id, epoch, sequence), transactional=True)
    info = log.appender.append([sent], 0, NOW, UNVERIFIED)
    log.high_watermark = log.log_end_offset
    return info.first_offset


def aborted(log: Log, start: int, end: int) -> list[tuple[int, int, int]]:
    """(producer, first, last) of the aborted transactions that touch these offsets."""
    found = log.reader.aborted_transactions(start, end, block=True)
    return [(one.producer_id, one.first_offset, one.last_offset) for one in found]


def txn_indexes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.txnindex")}


def refused(code: ErrorCode, end: TransactionEnd, log: Log) -> None:
    before = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        log.appender.append_marker(end, 0, NOW)
    assert caught.value.code is code
    assert log.log_end_offset == before


# -- the last stable offset --------------------------------------------------------------------


def test_a_marker_above_the_high_watermark_does_not_count_yet(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, [b"a"])
    put(log, 6, 0)
    fill(log, [b"b"])
    log.appender.append_marker(TransactionEnd(6, 0, Marker(0, True)), 0, NOW)
    assert (log.high_watermark, log.last_stable_offset) == (3, 1)
    log.high_watermark = 4
    assert log.last_stable_offset == 4


def test_a_restart_remembers_which_markers_may_be_lost(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0)
    end_transaction(log, 6, commit=True)
    again = open_log(tmp_path)
    again.high_watermark = 1
    assert again.last_stable_offset == 0
    again.high_watermark = 2
    assert again.last_stable_offset == 2


def test_unused_ends_are_not_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(50):
        put(log, 6, number)
        end_transaction(log, 6, commit=True)
    assert len(log.producers._undecided) <= 1


def test_the_oldest_of_many_transactions_decides(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for producer_id in range(5):
        put(log, producer_id, 0)
    for producer_id in (3, 1, 0, 4, 2):
        stable = log.last_stable_offset
        end_transaction(log, producer_id, commit=producer_id % 2 == 0)
        assert log.last_stable_offset >= stable
    assert log.last_stable_offset == log.log_end_offset == 10
    assert aborted(log, 0, 10) == [(3, 3, 5), (1, 1, 6)]


def test_the_log_start_bounds_it_from_below(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0)
    fill(log, [b"a", b"b"])
    log.trimming.delete_records_before(2)
    assert log.last_stable_offset == 2


def test_a_marker_of_no_transaction_is_written_and_aborts_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end_transaction(log, 6, commit=False)
    end_transaction(log, 6, commit=False)
    assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
    assert aborted(log, 0, 2) == []
    assert txn_indexes(tmp_path) == {}


# -- who may write -----------------------------------------------------------------------------


def test_markers_of_old_epochs_and_old_coordinators_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0, epoch=3)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, TransactionEnd(6, 2, Marker(5, True)), log)
    log.appender.append_marker(TransactionEnd(6, 3, Marker(5, True)), 0, NOW)
    put(log, 6, 1, epoch=3)
    refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED, TransactionEnd(6, 3, Marker(4, True)), log)
    log.appender.append_marker(TransactionEnd(6, 4, Marker(5, False)), 0, NOW)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, TransactionEnd(6, 3, Marker(5, True)), log)


def test_a_marker_of_version_2_has_a_greater_epoch_or_is_repeated(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0)
    same = TransactionEnd(6, 0, Marker(0, True), 2)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, same, log)
    greater = TransactionEnd(6, 1, Marker(0, True), 2)
    log.appender.append_marker(greater, 0, NOW)
    log.appender.append_marker(greater, 0, NOW)  # its answer was lost
    put(log, 6, 0, epoch=1)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, greater, log)
    put(log, 7, 0, epoch=EPOCH_MAX)
    log.appender.append_marker(TransactionEnd(7, EPOCH_MAX, Marker(0, False), 2), 0, NOW)


def test_a_transaction_opens_only_with_its_guard(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    def write(sequence: int, origin: Origin) -> None:
        sent = batch(b"v", producer=(6, 0, sequence), transactional=True)
        log.appender.append([sent], 0, NOW, origin)

    def no_entry(origin: Origin) -> None:
        with pytest.raises(KafkaError) as caught:
            write(0, origin)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
        assert log.log_end_offset == 0

    no_entry(Origin())
    guard = log.appender.start_verification(6, 0, 0, epoch_grows=False, now_ms=NOW)
    assert guard is not None
    no_entry(Origin())
    write(0, Origin(guard=guard))
    # The rest of the transaction needs no verification, and after its end the old one is void.
    assert log.appender.start_verification(6, 1, 0, epoch_grows=False, now_ms=NOW) is None
    write(1, Origin())
    log.appender.append_marker(TransactionEnd(6, 0, Marker(0, False)), 0, NOW)
    with pytest.raises(KafkaError, match="not part of an ongoing transaction"):
        write(2, Origin(guard=guard))


def test_a_marker_takes_the_guard_of_its_own_epoch_only(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    old = log.appender.start_verification(6, 0, 0, epoch_grows=True, now_ms=NOW)
    log.appender.append_marker(TransactionEnd(6, 1, Marker(0, False), 2), 0, NOW)
    with pytest.raises(KafkaError) as caught:
        log.appender.append(
            [batch(b"v", producer=(6, 0, 0), transactional=True)], 0, NOW, Origin(guard=old)
        )
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    # The next transaction has begun before the marker of the last one is repeated.
    new = log.appender.start_verification(6, 0, 1, epoch_grows=True, now_ms=NOW)
    log.appender.append_marker(TransactionEnd(6, 1, Marker(0, False), 2), 0, NOW)
    log.appender.append(
        [batch(b"v", producer=(6, 1, 0), transactional=True)], 0, NOW, Origin(guard=new)
    )


def test_nothing_overtakes_a_batch_that_waits_for_its_verification(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.appender.start_verification(6, 5, 0, epoch_grows=False, now_ms=NOW)
    guard = log.appender.start_verification(6, 8, 0, epoch_grows=False, now_ms=NOW)
    late = batch(b"v", producer=(6, 0, 8), transactional=True)
    with pytest.raises(KafkaError) as caught:
        log.appender.append([late], 0, NOW, Origin(guard=guard))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    first = batch(b"v", producer=(6, 0, 5), transactional=True)
    log.appender.append([first], 0, NOW, Origin(guard=guard))


def test_with_growing_epochs_an_unknown_producer_begins_at_0(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    guard = log.appender.start_verification(6, 3, 0, epoch_grows=True, now_ms=NOW)
    late = batch(b"v", producer=(6, 0, 3), transactional=True)
    with pytest.raises(KafkaError) as caught:
        log.appender.append([late], 0, NOW, Origin(guard=guard))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_not_even_verified(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0, epoch=2)
    with pytest.raises(KafkaError) as caught:
        log.appender.start_verification(6, 0, 1, epoch_grows=True, now_ms=NOW)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_guards_are_bounded_and_expire(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(producer_id_expiration_ms=1000))
    for producer_id in range(TRANSACTION_GUARDS_PER_PARTITION_MAX + 3):
        log.appender.start_verification(producer_id, 0, 0, epoch_grows=True, now_ms=NOW)
    guards = log.producers.verifications._guards
    assert len(guards) == TRANSACTION_GUARDS_PER_PARTITION_MAX
    log.producers.expire(NOW + 1000, log.config.producer_id_expiration_ms)
    assert not guards


def test_coordinators_batches_have_no_sequences(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(3):
        guard = log.appender.start_verification(6, -1, 0, epoch_grows=True, now_ms=NOW)
        sent = batch(b"offset", producer=(6, 0, -1), transactional=True)
        log.appender.append([sent], 0, NOW, Origin(is_client=False, guard=guard))
    assert log.log_end_offset == 3
    with pytest.raises(KafkaError) as caught:
        log.appender.append(
            [batch(b"x", producer=(7, 0, -1), transactional=True)], 0, NOW, COORDINATOR
        )
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


# -- the index of aborted transactions -----------------------------------------------------------


def test_the_index_has_kafkas_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    put(log, 6, 0)
    put(log, 7, 0)
    end_transaction(log, 6, commit=False)
    end_transaction(log, 7, commit=False)
    content = (tmp_path / "00000000000000000000.txnindex").read_bytes()
    assert content[:34].hex() == (
        "00000000000000000006000000000000000000000000000000020000000000000001"
    )  # fmt: skip
    assert decode_aborted(content[34:]) == [AbortedTransaction(1, 7, 3, 4)]


def history(log: Log, count: int) -> None:
    """Transactions of three producers that overlap; every second one of each is aborted."""
    sequences = [0, 0, 0]
    for number in range(count):
        producer = number % 3
        put(log, producer, sequences[producer], value=b"v%d" % number)
        sequences[producer] += 1
        if number >= 2:
            over = (number + 1) % 3
            end_transaction(log, over, commit=number % 2 == 0)
            if number % 5 == 0:
                fill(log, [b"plain"])


def test_a_reader_of_many_segments_gets_what_touches_its_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 60)
    everything = aborted(log, 0, log.log_end_offset)
    assert len(everything) > 20
    assert len(log.segments) > 10
    at = 0
    while at < log.last_stable_offset:
        info = log.reader.read_committed(at, 300, log.last_stable_offset, min_one=True, block=True)
        batches = list(split_batches(info.buffer))
        end = batches[-1].next_offset
        needed = {one for one in everything if one[1] < end and one[2] >= at}
        given = {(one.producer_id, one.first_offset, one.last_offset) for one in info.aborted}
        assert needed <= given <= set(everything)
        # None that ended before, and few that begin after the batches.
        assert all(one[2] >= at for one in given)
        assert all(one[1] < end + 12 for one in given)
        at = end


def test_a_search_looks_at_few_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=20_000))
    for number in range(900):
        put(log, 1, number)
        end_transaction(log, 1, commit=False)
    assert len(log.segments) > 5
    seen = []
    collect = log.segments[0].aborted.__class__.collect

    def counted(self, start, end, found, *, block):  # type: ignore[no-untyped-def]
        seen.append(self.base_offset)
        return collect(self, start, end, found, block=block)

    monkeypatch.setattr(log.segments[0].aborted.__class__, "collect", counted)
    assert aborted(log, 900, 902) == [(1, 900, 901)]
    assert len(seen) <= 2


def test_dropped_memory_is_read_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 40)
    expected = aborted(log, 0, log.log_end_offset)
    log.durability.sync()
    for segment in log.segments[:-1]:
        segment.drop_indexes()
    assert aborted(log, 0, log.log_end_offset) == expected
    again = open_log(tmp_path, SMALL, clean=True)
    assert aborted(again, 0, again.log_end_offset) == expected


def test_retention_takes_the_index_with_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 40)
    before = txn_indexes(tmp_path)
    log.trimming.delete_records_before(log.segments[5].base_offset)
    log.trimming.delete_old_segments(NOW)
    bases = {f"{segment.base_offset:020d}.txnindex" for segment in log.segments}
    after = txn_indexes(tmp_path)
    assert set(after) == set(before) & bases
    assert len(after) < len(before)
    assert all(last >= log.log_start_offset for _, _, last in aborted(log, 0, 10_000))


@pytest.mark.parametrize("restart", ["none", "clean", "crash"])
def test_truncation_takes_back_what_was_aborted(tmp_path: Path, restart: str) -> None:
    whole = open_log(tmp_path / "whole", SMALL)
    history(whole, 40)
    for offset in range(0, whole.log_end_offset, 7):
        directory = tmp_path / f"cut-{offset}"
        log = open_log(directory, SMALL)
        history(log, 40)
        log.truncate_to(offset)
        log.high_watermark = log.log_end_offset
        if restart == "clean":
            log.close()
        if restart != "none":
            log = open_log(directory, SMALL, clean=restart == "clean")
            log.high_watermark = log.log_end_offset
        expected = [one for one in aborted(whole, 0, 10_000) if one[2] < offset]
        assert aborted(log, 0, 10_000) == expected
        open_first = [p.txn_first_offset for p in log.producers if p.txn_first_offset >= 0]
        assert log.last_stable_offset == min([log.log_end_offset, *open_first])


def test_truncating_everything_leaves_no_index(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 20)
    log.truncate_fully_and_start_at(100)
    assert txn_indexes(tmp_path) == {}
    assert (log.last_stable_offset, aborted(log, 0, 1000)) == (100, [])


# -- crashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshots", [True, False])
def test_recovery_rebuilds_every_index_as_it_was(tmp_path: Path, snapshots: bool) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 60)
    expected = txn_indexes(tmp_path)
    states = {p.producer_id: (p.epoch, p.txn_first_offset) for p in log.producers}
    bases = [segment.base_offset for segment in log.segments]
    for point in (0, *bases[1::3], log.log_end_offset):
        for path in tmp_path.glob("*.txnindex"):
            # Everything below the recovery point is durable; the rest may be anything.
            following = [base for base in bases if base > int(path.stem)]
            if not following or following[0] > point:
                path.write_bytes(b"left over" * 20)
        if not snapshots:
            for path in tmp_path.glob("*.snapshot"):
                path.unlink()
        again = open_log(tmp_path, SMALL, recovery_point=point)
        assert txn_indexes(tmp_path) == expected, point
        assert states == {p.producer_id: (p.epoch, p.txn_first_offset) for p in again.producers}
        assert again.log_end_offset == log.log_end_offset


def test_a_snapshot_that_recovery_took_is_synced_once_it_stands_at_a_roll(tmp_path: Path) -> None:
    put(open_log(tmp_path, SMALL), 6, 0)
    files = FaultyFiles()
    log = open_log(tmp_path, SMALL, files=files)
    fill(log, [b"v" * 300] * 2)
    first = log.segments[1].base_offset
    assert first == 1  # where recovery had ended
    files.calls.clear()
    log.durability.sync()
    assert ("fsync", f"{tmp_path}/{first:020d}.snapshot") in files.calls


def test_recovery_takes_the_snapshots_again_that_a_crash_has_spoiled(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    put(log, 6, 0)
    fill(log, [b"v%d" % number for number in range(20)])
    bases = [segment.base_offset for segment in log.segments]
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(b"spoiled")
    log = open_log(tmp_path, SMALL)
    log.high_watermark = log.log_end_offset
    log.trimming.delete_records_before(bases[2])
    log.trimming.delete_old_segments(NOW)
    # Only a snapshot can know of a transaction whose records are gone.
    log.truncate_to(bases[3])
    assert {p.producer_id: p.txn_first_offset for p in log.producers} == {6: 0}


@pytest.mark.parametrize("clean", [True, False])
def test_a_transaction_that_began_in_a_deleted_segment_is_remembered(
    tmp_path: Path, clean: bool
) -> None:
    log = open_log(tmp_path, SMALL)
    put(log, 6, 0)
    fill(log, [b"v%d" % number for number in range(20)])
    log.durability.sync()
    log.trimming.delete_records_before(log.segments[2].base_offset)
    log.trimming.delete_old_segments(NOW)
    start = log.log_start_offset
    assert start == log.segments[0].base_offset > 0

    def again(log: Log) -> Log:
        if clean:
            log.close()
        found = open_log(tmp_path, SMALL, clean=clean, recovery_point=start, log_start_offset=start)
        found.high_watermark = found.log_end_offset
        return found

    log = again(log)
    assert log.last_stable_offset == start
    put(log, 6, 1)
    marker = end_transaction(log, 6, commit=False)
    expected = [(6, 0, marker)]
    assert aborted(log, start, start + 1) == expected
    log = again(again(log))
    assert aborted(log, start, start + 1) == expected
    assert log.last_stable_offset == log.log_end_offset


def test_a_log_cut_at_any_byte_knows_what_it_still_holds(tmp_path: Path) -> None:
    source = tmp_path / "source"
    log = open_log(source)
    history(log, 9)
    path = source / "00000000000000000000.log"
    content = path.read_bytes()
    index = (source / "00000000000000000000.txnindex").read_bytes()
    everything = decode_aborted(index)
    directory = tmp_path / "cut"
    directory.mkdir()
    for size in range(0, len(content), 13):
        (directory / path.name).write_bytes(content[:size])
        (directory / "00000000000000000000.txnindex").write_bytes(index)
        cut = open_log(directory)
        cut.high_watermark = cut.log_end_offset
        left = [one for one in everything if one.last_offset < cut.log_end_offset]
        assert cut.reader.aborted_transactions(0, 1000, block=True) == left
        for one in directory.glob("*.snapshot"):
            one.unlink()


def test_a_broken_index_is_rebuilt_after_a_clean_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 40)
    expected = txn_indexes(tmp_path)
    log.close()
    for number, path in enumerate(sorted(tmp_path.glob("*.txnindex"))):
        if number % 2:
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path.write_bytes(bytes(34))
    again = open_log(tmp_path, SMALL, clean=True)
    assert txn_indexes(tmp_path) == expected
    assert again.log_end_offset == log.log_end_offset


def test_an_index_without_its_segment_goes(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    (tmp_path / "00000000000000000007.txnindex").write_bytes(bytes(34))
    open_log(tmp_path, clean=True)
    assert txn_indexes(tmp_path) == {}


def test_an_index_that_cannot_be_written_waits_in_memory(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    put(log, 6, 0)
    files.fail = lambda call, path: errno.ENOSPC if path.endswith(".txnindex") else None
    end_transaction(log, 6, commit=False)
    assert aborted(log, 0, 10) == [(6, 0, 1)]
    files.fail = lambda call, path: None
    put(log, 6, 1)
    end_transaction(log, 6, commit=False)
    expected = [(6, 0, 1), (6, 2, 3)]
    assert aborted(log, 0, 10) == expected
    log.close()
    assert aborted(open_log(tmp_path, clean=True), 0, 10) == expected


def test_a_lost_index_is_no_empty_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    history(log, 40)
    log.durability.sync()
    for segment in log.segments[:-1]:
        segment.drop_indexes()
    for path in tmp_path.glob("*.txnindex"):
        path.unlink()
    with pytest.raises(KafkaError) as caught:
        log.reader.read_committed(0, 300, log.last_stable_offset, min_one=True, block=True)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_follower_keeps_the_same_index(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader", SMALL)
    history(leader, 40)
    follower = open_log(tmp_path / "follower", SMALL, files=Files(16))
    at = 0
    while at < leader.log_end_offset:
        info = leader.reader.read(at, 250, leader.log_end_offset, min_one=True, block=True)
        batches = list(split_batches(memoryview(bytearray(info.buffer))))
        follower.appender.append_as_follower(batches, NOW)
        at = batches[-1].next_offset
        follower.high_watermark = at
    assert aborted(follower, 0, 10_000) == aborted(leader, 0, 10_000)
    assert follower.last_stable_offset == leader.last_stable_offset
