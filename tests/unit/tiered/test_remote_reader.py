"""The reader of remote segments: what it fetches, shares, keeps, doubts and refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import REMOTE_CHUNK_BYTES, REMOTE_READ_AHEAD_SECONDS_MAX
from skylog.log.aborted import AbortedTransaction
from skylog.tiered.reading.indexes import IndexCache
from skylog.tiered.reading.needs import FoundRecord, HoleError, RemoteData, TimeSearch
from skylog.tiered.segments import IndexType
from tests.unit.tiered.reading_world import (
    FIRST_MS,
    Reading,
    Remote,
    bytes_of,
    line,
    stored,
    unavailable,
    wanted,
)
from tests.unit.tiered.remote_records import PARTITION, segment_id
from tests.waiting import eventually

MIB = 1024 * 1024


async def code_of(reading: Reading, **more: object) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await reading.read(wanted(**more))  # type: ignore[arg-type]
    return raised.value.code


async def test_whole_batches_from_the_one_that_has_the_offset(tmp_path: Path) -> None:
    remote = Remote()
    batches = [stored(0, b"a", b"b"), stored(2, b"c" * 100, b"d"), stored(4, b"e")]
    remote.put(batches)
    reading = Reading(tmp_path, remote)
    assert await reading.bytes(wanted(3)) == bytes_of(batches[1:])
    assert await reading.bytes(wanted(3, batches[1].size)) == bytes_of(batches[1:2])
    assert await reading.bytes(wanted(3, 1)) == bytes_of(batches[1:2])
    assert await reading.bytes(wanted(3, 1, min_one=False)) == b""
    assert reading.counts.of("topic1").fetch_requests == 4


async def test_a_read_ends_with_its_segment_and_goes_on_without_an_index(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[500] * 20)
    remote.put(batches[:10])
    remote.put(batches[10:])
    reading = Reading(tmp_path, remote)
    found, offset = b"", 0
    while offset < 20:
        data = await reading.read(wanted(offset, 1200))
        found += b"".join(data.parts)
        offset = data.next_offset
    assert found == bytes_of(batches)
    assert remote.fetched_indexes == []
    await reading.read(wanted(15))
    assert [kind for _, kind in remote.fetched_indexes] == [IndexType.OFFSET]


async def test_concurrent_reads_share_chunks_and_indexes(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[400_000] * 6)
    remote.put(batches)
    remote.open.clear()
    reading = Reading(tmp_path, remote)
    reads = [asyncio.ensure_future(reading.bytes(wanted(offset, 900_000))) for offset in (1, 1, 2)]
    await asyncio.sleep(0)
    remote.open.set()
    first, second, third = await asyncio.gather(*reads)
    assert first == second == bytes_of(batches[1:3])
    assert third == bytes_of(batches[2:4])
    assert len(remote.fetched) == len(set(remote.fetched))
    assert len(remote.fetched_indexes) == 1
    before = len(remote.fetched)
    assert isinstance(reading.reader.read(wanted(2, 900_000)), RemoteData)  # without waiting
    assert len(remote.fetched) == before


async def test_bytes_that_the_store_has_in_memory_are_not_kept_again(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[100] * 10)
    remote.put(batches)
    remote.in_memory = True
    reading = Reading(tmp_path, remote)
    data = reading.reader.read(wanted(0))
    assert isinstance(data, RemoteData)
    assert b"".join(data.parts) == bytes_of(batches)
    assert (remote.fetched, len(reading.reader.chunks)) == ([], 0)


async def test_a_small_answer_keeps_no_chunk_in_memory(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[1000] * 900)
    remote.put(batches)
    reading = Reading(tmp_path, remote)
    (small,) = (await reading.read(wanted(5, 2000))).parts
    assert isinstance(small, bytes)
    (large,) = (await reading.read(wanted(5, 900_000))).parts
    assert isinstance(large, memoryview)
    assert bytes(large[: len(small)]) == small


async def test_the_cache_keeps_to_its_limit(tmp_path: Path) -> None:
    remote = Remote()
    remote.put(line(*[500_000] * 12))
    reading = Reading(tmp_path, remote, cache_bytes_max=2 * MIB, prefetch_bytes_max=0)
    for offset in range(12):
        await reading.read(wanted(offset, 600_000))
        assert reading.reader.chunks.bytes <= 2 * MIB
    assert len(reading.reader.chunks) == 2


async def test_a_reader_that_goes_on_finds_what_comes_next_also_in_the_next_segment(
    tmp_path: Path,
) -> None:
    remote, batches = Remote(), line(*[400_000] * 12)
    first, second = remote.put(batches[:4]), remote.put(batches[4:])
    reading = Reading(tmp_path, remote, prefetch_bytes_max=4 * MIB)
    await reading.read(wanted(0, 500_000))
    assert {key[0] for key in remote.fetched} == {first.id}
    await reading.read(wanted(1, 500_000))
    await eventually(lambda: reading.reader.chunks.bytes >= 4 * MIB)
    assert second.id in {key[0] for key in remote.fetched}
    ahead = reading.reader.ahead.bytes
    assert 0 < ahead <= reading.reader.chunks.bytes_max // 2
    for offset in range(2, 6):
        data = reading.reader.read(wanted(offset, 500_000))
        assert isinstance(data, RemoteData)
        assert b"".join(data.parts) == bytes_of(batches[offset : offset + 1])
    # Each chunk is fetched once, whether ahead or not.
    await eventually(lambda: not reading.reader.chunks._under_way)
    assert len(remote.fetched) == len(set(remote.fetched)) == 6


async def test_what_waits_too_long_for_its_reader_is_dropped(tmp_path: Path) -> None:
    remote = Remote()
    remote.put(line(*[400_000] * 12))
    reading = Reading(tmp_path, remote)
    await reading.read(wanted(0, 500_000))
    await reading.read(wanted(1, 500_000))
    await eventually(lambda: not reading.reader.chunks._under_way)
    assert reading.reader.ahead.bytes > 2 * MIB
    held = reading.reader.chunks.bytes
    reading.clock.advance(int(REMOTE_READ_AHEAD_SECONDS_MAX * 1000) + 1)
    reading.reader.ahead._sweep(reading.reader.chunks)
    assert reading.reader.ahead.bytes == 0
    assert reading.reader.chunks.bytes < held
    await reading.reader.close()


async def test_read_ahead_of_many_readers_stays_below_half_of_the_cache(tmp_path: Path) -> None:
    remote = Remote()
    remote.put(line(*[100_000] * 300))
    reading = Reading(tmp_path, remote, cache_bytes_max=8 * MIB)
    for round_ in range(4):
        for reader in range(5):
            await reading.read(wanted(60 * reader + round_, 100_100))
            assert reading.reader.ahead.bytes <= 4 * MIB
    await eventually(lambda: not reading.reader.chunks._under_way)
    assert reading.reader.chunks.bytes <= 8 * MIB
    assert reading.reader.ahead.bytes > 0


async def test_wrong_bytes_are_asked_for_once_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote, batches = Remote(), line(*[100] * 10)
    one = remote.put(batches)
    good = bytes(remote.logs[one.id])
    remote.logs[one.id][batches[0].size + 80] ^= 1
    reading = Reading(tmp_path, remote)
    # What comes before is sound.
    assert await reading.bytes(wanted(0)) == bytes_of(batches[:1])
    for _ in range(3):
        assert await code_of(reading, offset=1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert reading.counts.corrupt == 3
    (told,) = capsys.readouterr().err.splitlines()
    assert f"0-{one.id} of topic1-0 is damaged: batch at {batches[0].size}" in told
    assert await reading.bytes(wanted(2)) == bytes_of(batches[2:])
    remote.logs[one.id][:] = good
    assert await reading.bytes(wanted(1)) == bytes_of(batches[1:])


async def test_bytes_that_were_wrong_in_transit_only(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[100] * 10)
    remote.put(batches)
    remote.flipped = [80]
    reading = Reading(tmp_path, remote)
    assert await reading.bytes(wanted(0)) == bytes_of(batches)
    assert (len(remote.fetched), reading.counts.corrupt) == (2, 0)


@pytest.mark.parametrize(
    "length", [0, -1, 10, 2**31 - 1, 64 * 1024 * 1024], ids=lambda one: f"length {one}"
)
async def test_a_length_that_cannot_be(tmp_path: Path, length: int) -> None:
    remote, batches = Remote(), line(*[100] * 10)
    one = remote.put(batches)
    remote.logs[one.id][8:12] = (length & 0xFFFFFFFF).to_bytes(4, "big")
    assert await code_of(Reading(tmp_path, remote), offset=0) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert max(end - start for _, start, end in remote.fetched) <= REMOTE_CHUNK_BYTES


async def test_a_segment_that_is_shorter_than_it_should_be(tmp_path: Path) -> None:
    remote = Remote()
    one = remote.put(line(*[100] * 10))
    del remote.logs[one.id][-1:]
    assert await code_of(Reading(tmp_path, remote), offset=0) == ErrorCode.UNKNOWN_SERVER_ERROR


def _shifted(index: bytes, by: int) -> bytes:
    entries = [index[at : at + 8] for at in range(0, len(index), 8)]
    return b"".join(
        one[:4] + (int.from_bytes(one[4:], "big") + by).to_bytes(4, "big") for one in entries
    )


def _later(index: bytes) -> bytes:
    """Each offset with the position of the entry behind it."""
    entries = [index[at : at + 8] for at in range(0, len(index), 8)]
    return b"".join(
        one[:4] + other[4:] for one, other in zip(entries, entries[1:] + entries[-1:], strict=True)
    )


DAMAGE = {
    "cut": lambda index: index[:-3],
    "descending": lambda index: index[8:] + index[:8],
    "beyond the segment": lambda index: index[:-4] + b"\x7f\xff\xff\xff",
    "within a batch": lambda index: _shifted(index, 7),
    "at a later batch": _later,
    "huge": lambda _: b"\1" * (12 * MIB),
}


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_damaged_index_is_rebuilt_from_the_segment(tmp_path: Path, how: str) -> None:
    remote, batches = Remote(), line(*[100] * 30)
    one = remote.put(batches)
    key = (one.id, IndexType.OFFSET)
    remote.indexes[key] = DAMAGE[how](remote.indexes[key])
    reading = Reading(tmp_path, remote)
    for offset in (12, 20, 28):
        assert await reading.bytes(wanted(offset)) == bytes_of(batches[offset:])
    assert reading.counts.corrupt == 0
    fetched = len(remote.fetched)
    assert await reading.bytes(wanted(17)) == bytes_of(batches[17:])
    assert len(remote.fetched) == fetched  # not once more


async def test_a_damaged_list_of_aborted_transactions_is_no_empty_one(tmp_path: Path) -> None:
    remote = Remote()
    one = remote.put(line(*[100] * 10), [AbortedTransaction(1, 7, 3, 4)])
    remote.indexes[one.id, IndexType.TRANSACTION] += b"x"
    reading = Reading(tmp_path, remote)
    assert await code_of(reading, offset=0, read_committed=True) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await reading.read(wanted(0))).aborted == ()


async def test_aborted_transactions_of_this_and_later_segments(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[100] * 40)
    early, late = AbortedTransaction(1, 7, 4, 5), AbortedTransaction(8, 8, 25, 26)
    remote.put(batches[:10], [early])
    remote.put(batches[10:20])
    remote.put(batches[20:30], [late])
    remote.put(batches[30:])
    reading = Reading(tmp_path, remote)
    found = await reading.read(wanted(0, read_committed=True))
    assert list(found.aborted) == [early, late]
    assert found.aborted_from == -1  # the last one says that no later one overlaps
    found = await reading.read(wanted(12, read_committed=True))
    assert (list(found.aborted), found.aborted_from) == ([late], -1)
    found = await reading.read(wanted(26, read_committed=True))
    assert (list(found.aborted), found.aborted_from, found.aborted_to) == ([], 26, 30)
    assert all(kind is not IndexType.TRANSACTION for _, kind in remote.fetched_indexes[-1:])


async def test_errors_of_a_read(tmp_path: Path) -> None:
    remote = Remote()
    remote.put(line(*[100] * 10))
    reading = Reading(tmp_path, remote)
    with pytest.raises(HoleError):
        await reading.read(wanted(10))
    assert reading.counts.holes == 1
    unknown = {"offset": 5, "epochs": ((0, 7),)}
    assert await code_of(reading, **unknown) == ErrorCode.REPLICA_NOT_AVAILABLE
    remote.failures = [unavailable()]
    assert await code_of(reading, offset=0) == ErrorCode.UNKNOWN_SERVER_ERROR
    remote.known.clear()
    assert await code_of(reading, offset=0) == ErrorCode.REPLICA_NOT_AVAILABLE
    remote.known.set()
    assert (await reading.read(wanted(0))).size


async def test_so_many_at_once_and_so_many_more_wait(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[400_000] * 20)
    for at in range(0, 20, 2):
        remote.put(batches[at : at + 2])
    remote.open.clear()
    reading = Reading(tmp_path, remote, readers=2, pending_max=3)
    reads = [asyncio.ensure_future(reading.bytes(wanted(at, 100))) for at in range(0, 10, 2)]
    again = asyncio.ensure_future(reading.bytes(wanted(8, 100)))  # joins the last one
    await eventually(lambda: reading.reader.slots.waiting == 3)
    assert len({key[0] for key in remote.fetched}) == 2
    assert (reading.reader.slots.taken, reading.reader.slots.waiting) == (2, 3)
    assert await code_of(reading, offset=10) == ErrorCode.UNKNOWN_SERVER_ERROR
    remote.open.set()
    assert await asyncio.gather(*reads) == [
        bytes_of(batches[at : at + 1]) for at in range(0, 10, 2)
    ]
    assert await again == bytes_of(batches[8:9])
    assert (reading.reader.slots.taken, reading.reader.slots.waiting) == (0, 0)
    assert await reading.bytes(wanted(10, 100)) == bytes_of(batches[10:11])


async def test_a_read_that_its_request_gave_up_goes_on(tmp_path: Path) -> None:
    remote, batches = Remote(), line(*[100] * 10)
    remote.put(batches)
    remote.open.clear()
    reading = Reading(tmp_path, remote)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await reading.read(wanted(0))
    remote.open.set()
    await eventually(lambda: len(reading.reader.chunks) == 1)
    assert isinstance(reading.reader.read(wanted(0)), RemoteData)


async def test_a_gap_at_the_end_of_a_segment(tmp_path: Path) -> None:
    remote = Remote()
    first, last = stored(0, b"a"), stored(9, b"b", b"c")
    one = remote.put([first, last])
    # Compaction has removed what follows offset 0, and the segment's end.
    remote.logs[one.id] = bytearray(first.buffer)
    remote.history.deleted(one)
    shorter = replace(one, id=segment_id(77), size=first.size, state=one.state)
    remote.logs[shorter.id] = bytearray(first.buffer)
    remote.indexes[shorter.id, IndexType.OFFSET] = b""
    remote.history.copied(shorter)
    reading = Reading(tmp_path, remote)
    found = await reading.read(wanted(3))
    assert (found.size, found.next_offset) == (0, 11)
    following = stored(11, b"d")
    remote.put([following])
    assert await reading.bytes(wanted(3)) == bytes_of([following])


async def test_a_record_by_its_time(tmp_path: Path) -> None:
    remote = Remote()
    remote.put(line(*[100] * 10))
    remote.put([stored(10, b"a" * 5000, b"b", codec=4, timestamp=FIRST_MS + 99_000)])
    reading = Reading(tmp_path, remote)

    async def find(after: int, start: int = 0, local: int = 100) -> FoundRecord | None:
        search = TimeSearch(FIRST_MS + after, start, local, ((0, 0),))
        found = reading.reader.find_timestamp(PARTITION, search)
        return found if found is None or isinstance(found, FoundRecord) else await found

    assert await find(0) == FoundRecord(FIRST_MS, 0, 0)
    assert await find(4500) == FoundRecord(FIRST_MS + 5000, 5, 0)
    assert await find(4500, start=7) == FoundRecord(FIRST_MS + 7000, 7, 0)
    assert await find(9500) == FoundRecord(FIRST_MS + 99_000, 10, 0)
    assert await find(9500, local=10) is None
    assert await find(99_001) is None


async def test_a_damaged_time_index_is_rebuilt(tmp_path: Path) -> None:
    remote = Remote()
    one = remote.put(line(*[100] * 30))
    remote.indexes[one.id, IndexType.TIMESTAMP] = b"\1" * 25
    reading = Reading(tmp_path, remote)
    search = TimeSearch(FIRST_MS + 20_500, 0, 100, ((0, 0),))
    found = reading.reader.find_timestamp(PARTITION, search)
    assert not isinstance(found, FoundRecord)
    assert found is not None
    assert await found == FoundRecord(FIRST_MS + 21_000, 21, 0)


# --- The directory of indexes ---------------------------------------------------------------------


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def cache(reading: Reading, folder: Path, **limits: int) -> IndexCache:
    limits = {"bytes_max": 1 << 20, "idle_ms_max": 900_000} | limits
    return IndexCache(folder, reading.remote, reading.system, **limits)


async def test_indexes_are_in_kafkas_files_and_survive_a_restart(tmp_path: Path) -> None:
    remote = Remote()
    one = remote.put(line(*[100] * 10), [AbortedTransaction(1, 7, 3, 4)])
    (tmp_path / "junk").write_text("x")
    reading = Reading(tmp_path, remote)
    for kind in (IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION):
        assert await reading.indexes.get(one, kind) is not None
    await reading.reader.close()
    assert names(tmp_path) == {
        f"0_{one.id}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")
    }
    assert (tmp_path / f"0_{one.id}.index").read_bytes() == remote.indexes[one.id, IndexType.OFFSET]

    again = cache(reading, tmp_path)
    fetched = len(remote.fetched_indexes)
    assert await again.get(one, IndexType.OFFSET) is not None
    assert len(remote.fetched_indexes) == fetched
    again.forget(one)
    await again.close()
    assert names(tmp_path) == set()


async def test_a_file_in_doubt_is_fetched_again(tmp_path: Path) -> None:
    remote = Remote()
    one = remote.put(line(*[100] * 10))
    reading = Reading(tmp_path, remote)
    (tmp_path / f"0_{one.id}.index").write_bytes(b"\xff" * 80)
    indexes = cache(reading, tmp_path)
    assert await indexes.get(one, IndexType.OFFSET) is not None
    await indexes.close()
    assert (tmp_path / f"0_{one.id}.index").read_bytes() == remote.indexes[one.id, IndexType.OFFSET]


async def test_the_directory_keeps_to_its_limits(tmp_path: Path) -> None:
    remote = Remote()
    segments = [remote.put(line(*[100] * 10, base=at)) for at in range(0, 100, 10)]
    size = len(remote.indexes[segments[0].id, IndexType.OFFSET])
    reading = Reading(tmp_path / "other", remote)
    indexes = cache(reading, tmp_path / "here", bytes_max=3 * size)
    for one in segments:
        await indexes.get(one, IndexType.OFFSET)
        assert indexes.stored_bytes <= 3 * size
    await eventually(lambda: not indexes._writes)
    assert len(names(tmp_path / "here")) == 3
    reading.clock.advance(600_000)
    await indexes.get(segments[-1], IndexType.OFFSET)
    assert indexes.now(segments[-1], IndexType.OFFSET) is not None
    reading.clock.advance(400_000)
    indexes._sweep()
    await indexes.close()
    assert names(tmp_path / "here") == {f"90_{segments[-1].id}.index"}
