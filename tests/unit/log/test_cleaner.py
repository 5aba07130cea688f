"""Compaction of one log, by the rules of Kafka's cleaner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.aborted import AbortedTransaction, decode_aborted
from skylog.log.cleaner import CleanerSettings
from skylog.log.offset_map import SLOT_BYTES
from skylog.wire.batch import HEADER_BYTES, Compression, split_batches
from skylog.wire.records import decode_records
from tests.unit.log.compaction_support import COMPACT, CompactedLog
from tests.unit.log.support import NOW


@pytest.fixture
def world(tmp_path: Path) -> CompactedLog:
    return CompactedLog(tmp_path / "topic-0")


@pytest.mark.parametrize("codec", list(Compression))
async def test_the_newest_record_of_each_key_stays_at_its_offset(
    world: CompactedLog, codec: Compression
) -> None:
    for number in range(60):
        world.append((b"a", b"%d" % number), (b"k%d" % (number % 7), b"%d" % number), codec=codec)
    world.roll()
    assert await world.compact() == 1
    world.check()
    assert len(world.records()) == 8
    assert {record.key for record in world.records()} == {b"a", *(b"k%d" % n for n in range(7))}


async def test_what_is_being_written_is_not_touched(world: CompactedLog) -> None:
    for number in range(200):
        world.append((b"k", b"%d" % number))
    active = world.log.segments[-1].base_offset
    await world.compact()
    assert [record.offset for record in world.records()] == list(range(active - 1, 200))


async def test_what_is_not_on_the_disk_yet_drops_nothing(world: CompactedLog) -> None:
    world.append((b"k", b"old"))
    world.roll()
    world.append((b"k", b"new"))
    world.log.appender.roll(world.log.log_end_offset, NOW)
    # A power failure may lose the new record: then only the old one is left.
    assert await world.cleaner.run_once() == 1
    assert world.pairs() == [(b"k", b"old"), (b"k", b"new")]
    world.log.durability.sync()
    assert await world.cleaner.run_once() == 1
    assert world.pairs() == [(b"k", b"new")]


async def test_small_segments_become_one(world: CompactedLog) -> None:
    for number in range(100):
        world.append((b"k%d" % (number % 3), b"%d" % number))
    world.roll()
    many = len(world.log.segments)
    await world.compact()
    world.append((b"other", b"x"))
    world.roll()
    await world.compact()
    world.check()
    assert len(world.log.segments) == 2 < many


async def test_a_pass_without_anything_new_is_none(world: CompactedLog) -> None:
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    assert await world.compact() == 1
    assert world.log.clean_offset == 2
    assert await world.compact() == 0


async def test_only_a_log_that_is_dirty_enough_is_compacted(tmp_path: Path) -> None:
    world = CompactedLog(tmp_path, replace(COMPACT, min_cleanable_dirty_ratio=0.5))
    for number in range(40):
        world.append((b"%d" % number, b"x"))
    world.roll()
    assert await world.compact() == 1  # all of it is new
    world.append((b"1", b"y"))
    world.roll()
    assert await world.compact() == 0
    for number in range(60):
        world.append((b"%d" % number, b"z"))
    world.roll()
    assert await world.compact() == 1
    world.check()


async def test_records_stay_for_as_long_as_they_are_young(tmp_path: Path) -> None:
    world = CompactedLog(tmp_path, replace(COMPACT, min_compaction_lag_ms=1000))
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    world.clock.advance(600)
    world.append((b"k", b"3"), (b"k", b"4"))
    world.roll()
    assert await world.compact() == 0
    world.clock.advance(600)
    await world.compact()
    assert [value for _, value in world.pairs()] == [b"2", b"3", b"4"]
    world.clock.advance(600)
    await world.compact()
    assert world.pairs() == [(b"k", b"4")]


async def test_what_has_waited_too_long_is_compacted_however_little_it_is(tmp_path: Path) -> None:
    lag = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    world = CompactedLog(tmp_path, lag)
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    assert await world.compact() == 0
    world.clock.advance(5001)
    assert await world.compact() == 1
    assert world.pairs() == [(b"k", b"2")]
    assert await world.compact() == 0


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
async def test_a_tombstone_stays_until_its_horizon(world: CompactedLog, codec: Compression) -> None:
    times = [NOW - 5, NOW - 3]
    world.append((b"k", b"1"))
    world.append((b"k", None), (b"other", b"x"), codec=codec, timestamps=times)
    world.roll()
    await world.compact()
    assert world.pairs() == [(b"k", None), (b"other", b"x")]
    [held] = [batch for batch in world.batches() if batch.record_count]
    assert held.delete_horizon_ms == NOW + 10_000
    assert [record.timestamp for record in decode_records(held)] == times
    assert held.max_timestamp == NOW - 3
    assert (held.base_offset, held.last_offset) == (1, 2)

    # A later pass before the horizon leaves it as it is.
    world.clock.advance(9_999)
    world.append((b"third", b"x"))
    world.roll()
    await world.compact()
    assert (b"k", None) in world.pairs()
    assert next(b for b in world.batches() if b.record_count).delete_horizon_ms == NOW + 10_000

    world.clock.advance(1)
    world.append((b"third", b"y"))
    world.roll()
    await world.compact()
    assert world.pairs() == [(b"other", b"x"), (b"third", b"y")]
    assert world.records()[0].timestamp == NOW - 3
    world.check()


async def test_records_without_a_key_go(world: CompactedLog) -> None:
    world.append((None, b"from before the topic was compacted"), (b"k", b"v"))
    world.roll()
    await world.compact()
    assert world.pairs() == [(b"k", b"v")]


# -- batches without records -----------------------------------------------------------------


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
async def test_the_last_batch_of_a_producer_stays_without_records(
    world: CompactedLog, codec: Compression
) -> None:
    world.append((b"k", b"1"), producer=(7, 0, 0), codec=codec)
    world.append((b"k", b"2"), (b"k", b"3"), producer=(7, 0, 1), codec=codec)
    world.append((b"k", b"4"))
    world.roll()
    await world.compact()
    kept = [(b.base_offset, b.last_offset, b.record_count) for b in world.batches()]
    assert kept == [(1, 2, 0), (3, 3, 1)]
    [empty, _] = world.batches()
    assert (empty.producer_id, empty.base_sequence, empty.last_sequence) == (7, 1, 2)
    world.check()

    # Without producer snapshots, there are only the batches.
    for snapshot in world.directory.glob("*.snapshot"):
        snapshot.unlink()
    world.reopen()
    [producer] = world.log.producers
    assert producer.last_sequence == 2
    world.append((b"k", b"5"), producer=(7, 0, 3))
    with pytest.raises(KafkaError) as refused:
        world.append((b"k", b"6"), producer=(7, 0, 9))
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_a_segment_never_loses_its_end(world: CompactedLog) -> None:
    """Otherwise a start after a crash would treat the gap as a loss."""
    for number in range(100):
        world.append((b"k", b"%d" % number))
    world.roll()
    await world.compact()
    world.check()
    for policy in ("compact", "delete"):
        world.log.durability.recovery_point = 0
        world.reopen(config=replace(COMPACT, cleanup_policy=frozenset({policy})))
        assert world.log.log_end_offset == 100
        assert world.pairs() == [(b"k", b"99")]
        world.check()


# -- readers ---------------------------------------------------------------------------------


async def test_readers_find_what_follows_a_vanished_offset(world: CompactedLog) -> None:
    for number in range(80):
        world.append((b"k%d" % (number % 40), b"%d" % number))
        world.clock.advance(1)
    world.roll()
    await world.compact()
    for offset in range(80):
        info = world.log.reader.read(offset, 1 << 20, 80, min_one=True, block=True)
        assert info.buffer, offset
    found = world.log.reader.offset_for_timestamp(NOW, block=True)
    assert found is not None
    assert found[:2] == (NOW + 40, 40)
    assert world.log.reader.offset_for_timestamp(NOW + 77, block=True) == (NOW + 77, 77, 0)
    assert world.log.reader.max_timestamp_offset(block=True) == (NOW + 79, 79, 0)
    world.reopen()
    assert world.log.reader.max_timestamp_offset(block=True) == (NOW + 79, 79, 0)
    assert world.log.reader.offset_for_timestamp(NOW, block=True) == found


async def test_the_time_of_dropped_records_is_not_found(world: CompactedLog) -> None:
    late = NOW + 1_000_000
    world.append((b"k", b"1"), timestamps=[late])
    world.append((b"k", b"2"), (b"j", b"1"), timestamps=[NOW, NOW + 1])
    world.roll()
    await world.compact()
    assert world.log.reader.max_timestamp_offset(block=True) == (NOW + 1, 2, 0)
    assert world.log.reader.offset_for_timestamp(late, block=True) is None


async def test_the_log_start_is_respected(world: CompactedLog) -> None:
    for number in range(60):
        world.append((b"k%d" % number, b"x"))
    world.roll()
    world.log.trimming.delete_records_before(30)
    await world.compact()
    assert world.log.log_start_offset == 30
    assert [record.offset for record in world.records()][-1] == 59


# -- transactions ----------------------------------------------------------------------------


def aborted_in_index(world: CompactedLog) -> list[AbortedTransaction]:
    return decode_aborted(Path(world.log.segments[0].prefix + ".txnindex").read_bytes())


async def test_an_aborted_record_goes_and_drops_nothing(world: CompactedLog) -> None:
    world.append((b"k", b"committed"))
    world.append((b"k", b"aborted"), producer=(7, 0, 0), transactional=True)
    marker = world.end_transaction(7, 0, commit=False)
    world.append((b"other", b"x"))
    world.roll()
    del world.given[1]

    await world.compact()
    assert world.pairs() == [(b"k", b"committed"), (b"other", b"x")]
    # The last batch of its producer stays, so does the marker, and with it what the index says.
    assert aborted_in_index(world) == [AbortedTransaction(1, 7, marker, marker + 1)]
    assert [b.base_offset for b in world.batches() if b.is_control] == [marker]
    world.reopen()
    world.check()


async def test_a_marker_goes_after_its_records_and_its_horizon(world: CompactedLog) -> None:
    world.append((b"k", b"1"), producer=(7, 0, 0), transactional=True)
    marker = world.end_transaction(7, 0, commit=True)
    world.append((b"k", b"2"), producer=(7, 1, 0))
    world.roll()

    def markers() -> list[tuple[int, int | None]]:
        return [(b.base_offset, b.delete_horizon_ms) for b in world.batches() if b.is_control]

    async def again() -> None:
        world.append((b"k", b"%d" % world.log.log_end_offset))
        world.roll()
        await world.compact()

    await world.compact()
    assert markers() == [(marker, None)]  # a batch of it was there
    await again()
    assert markers() == [(marker, NOW + 10_000)]
    world.clock.advance(9_999)
    await again()
    assert markers() == [(marker, NOW + 10_000)]
    world.clock.advance(1)
    await again()
    assert markers() == []
    world.check()


async def test_open_transactions_are_waited_for(world: CompactedLog) -> None:
    world.append((b"k", b"1"))
    world.roll()
    world.append((b"k", b"2"), producer=(7, 0, 0), transactional=True)
    world.roll()
    world.append((b"k", b"3"))
    world.roll()
    await world.compact()
    assert [value for _, value in world.pairs()] == [b"1", b"2", b"3"]
    world.end_transaction(7, 0, commit=True)
    await world.compact()
    assert [value for _, value in world.pairs()] == [b"3"]


# -- limits and failures ---------------------------------------------------------------------


async def test_a_map_that_is_full_leaves_the_rest_for_the_next_pass(world: CompactedLog) -> None:
    world.settings = CleanerSettings(dedupe_buffer_bytes=20 * SLOT_BYTES, load_factor=0.5)
    for number in range(100):
        world.append((b"%d" % (number % 50), b"%d" % number))
    world.roll()
    passes = 0
    while await world.compact():
        passes += 1
        world.check()
        assert passes < 20
    assert passes > 5
    assert world.log.clean_offset == 100
    assert len(world.records()) == 50


async def test_a_batch_that_no_map_can_hold_is_told(world: CompactedLog) -> None:
    world.settings = CleanerSettings(dedupe_buffer_bytes=4 * SLOT_BYTES)
    pairs = [(b"%d" % number, b"x") for number in range(20)]
    world.append(*pairs)
    world.append(*pairs)
    world.roll()
    assert await world.compact() == 0
    [why] = world.cleaner.stats.uncleanable.values()
    assert "log.cleaner.dedupe.buffer.size" in why
    world.check()


def damage(path: Path) -> bytes:
    data = bytearray(path.read_bytes())
    data[45] ^= 1  # of the producer's id
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
async def test_a_damaged_batch_is_left_as_it_is(world: CompactedLog, codec: Compression) -> None:
    """Rewriting it with a new checksum would hide the damage from readers."""
    world.append((b"k", b"1"), (b"j", b"2" * 30), codec=codec)
    world.append((b"k", b"3"))
    world.roll()
    damaged = damage(Path(world.log.segments[0].log_path))
    assert await world.compact() == 0
    assert ("topic", 0) in world.cleaner.stats.uncleanable
    assert (world.directory / "00000000000000000000.log").read_bytes() == damaged
    assert not list(world.directory.glob("*.cleaned"))


async def test_only_as_many_logs_as_allowed_are_compacted(world: CompactedLog) -> None:
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    world.settings = CleanerSettings(threads=0)
    assert await world.compact() == 0
    world.settings = CleanerSettings(enable=False)
    assert await world.compact() == 0
    world.settings = CleanerSettings(threads=4)
    assert await world.compact() == 1


async def test_a_log_of_another_policy_is_left_alone(tmp_path: Path) -> None:
    world = CompactedLog(tmp_path, replace(COMPACT, cleanup_policy=frozenset({"delete"})))
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    assert await world.compact() == 0
    assert len(world.records()) == 2


async def test_compact_and_delete_does_both(tmp_path: Path) -> None:
    both = replace(COMPACT, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=5000)
    world = CompactedLog(tmp_path, both)
    world.append((b"k", b"1"), (b"k", b"2"))
    world.roll()
    world.clock.advance(3000)
    world.append((b"j", b"1"), (b"j", b"2"))
    world.roll()
    await world.compact()
    assert world.pairs() == [(b"k", b"2"), (b"j", b"2")]
    world.clock.advance(5001)
    assert world.log.trimming.delete_old_segments(world.clock.now_ms()) == 1
    assert world.pairs() == []


async def test_a_truncated_log_is_compacted_again_from_there(world: CompactedLog) -> None:
    for number in range(60):
        world.append((b"k%d" % (number % 5), b"%d" % number))
    world.roll()
    await world.compact()
    assert world.log.clean_offset == 60
    world.log.truncate_to(30)
    assert world.log.clean_offset == world.log.log_end_offset <= 30


async def test_batches_without_records_come_with_some_that_have_them(world: CompactedLog) -> None:
    """A client that gets only empty batches may conclude that its buffer is too small."""
    for number in range(150):
        world.append((b"k", b"%d" % number))
    world.roll()
    end = world.log.log_end_offset
    await world.compact()
    hollow = [one for one in world.log.segments if one.size == HEADER_BYTES]
    assert len(hollow) > 5
    info = world.log.reader.read(0, 1 << 20, end, min_one=True, block=True)
    found = list(split_batches(info.buffer))
    assert [batch.record_count for batch in found] == [0] * len(hollow) + [1]
    # As many as fit, and nothing that may not be read yet.
    info = world.log.reader.read(0, 3 * HEADER_BYTES, end, min_one=True, block=True)
    assert len(info.buffer) >= 3 * HEADER_BYTES
    limit = hollow[2].base_offset
    info = world.log.reader.read(0, 1 << 20, limit, min_one=True, block=True)
    assert len(info.buffer) == 2 * HEADER_BYTES
