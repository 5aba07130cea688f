"""The local filler: committed records are copied and read from the copy, but never depend on it."""

from __future__ import annotations

import asyncio
import errno
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skylog.diskless.local import fetch as local_fetch
from skylog.diskless.local import filler
from skylog.diskless.local import partitions as local_partitions
from skylog.diskless.local import round as local_round
from skylog.diskless.local.plan import LocalLimits
from skylog.diskless.plane import LogInfo
from skylog.diskless.reader import ReadRequest
from skylog.diskless.regions import Region
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.rng import random_uuid
from skylog.log.files import Descriptor, Files
from skylog.wire.buffers import Buffer
from tests.unit.diskless.engine import RNG, TOPIC_ID, Engine, item, records
from tests.unit.diskless.local_world import Waiter, World, filler_of, world
from tests.unit.diskless.test_reader import CountingStore
from tests.waiting import eventually

NEVER = 3600.0
SMALL = LocalLimits(partition_bytes=64 * 1024, bytes_max=1 << 30)


def forget_objects(engine: Engine) -> None:
    """Drop everything from memory."""
    for key in list(engine.cache._objects):
        engine.cache.forget(key)


async def test_copied_records_are_read_without_asking_plane_or_bucket(tmp_path: Path) -> None:
    # ENG-36, ENG-41
    async with world(tmp_path) as local:
        await local.append(b"a", b"b", b"c")
        await local.caught_up(3)
        forget_objects(local.engine)
        local.finds.clear()
        for offset, values in ((0, b"abc"), (1, b"bc"), (2, b"c")):
            found = await local.fetch(offset)
            expected = [(offset + n, bytes([v])) for n, v in enumerate(values)]
            assert records(found.records) == expected
            assert (found.error, found.log_start_offset, found.high_watermark) == (0, 0, 3)
        assert (local.finds, local.gets) == ([], [])
        assert local.partitions.stats.reads == 3


async def test_the_copy_is_byte_for_byte_what_objects_answer(tmp_path: Path) -> None:
    async with world(tmp_path) as local:
        await local.engine.writer.append(
            1, [item(b"x", timestamp_type=1), item(b"y", count=5, producer=(7, 0, 0))]
        )
        await local.caught_up(6)
        request = ReadRequest(TOPIC_ID, 0, 0, 1 << 20)
        remote = (await local.engine.reader.fetch([request], 1 << 20))[0]
        assert bytes((await local.fetch(0)).records) == bytes(remote.records)


async def test_a_fetch_at_the_tail_waits_for_the_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ENG-37
    monkeypatch.setattr(local_partitions, "TAIL_WAIT_SECONDS", NEVER)
    monkeypatch.setattr(local_round, "INLINE_BYTES_MAX", 0)
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        waiter = Waiter()
        seen = local.engine.partitions.get(TOPIC_ID, 0)
        assert seen is not None
        seen.watch(waiter)
        held = hold_appends(local)
        await local.append(b"b")
        await eventually(lambda: local.one().behind == 1)
        local.finds.clear()
        found = await local.fetch(1)
        assert (bytes(found.records), found.error, found.high_watermark) == (b"", 0, 2)
        assert (local.finds, local.gets, waiter.moves) == ([], [], 0)
        held.set()
        await eventually(lambda: waiter.moves)
        assert records((await local.fetch(1)).records) == [(1, b"b")]
        assert local.gets == []


def hold_appends(local: World) -> asyncio.Event:
    """The threads of appends wait until the event is set."""
    threads = local.copies.threads
    run, held = threads.run, asyncio.Event()

    async def late(work: Any) -> Any:
        await held.wait()
        return await run(work)

    threads.run = late  # type: ignore[method-assign]
    return held


async def test_a_fetch_that_waits_too_long_is_answered_from_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_partitions, "TAIL_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(local_round, "INLINE_BYTES_MAX", 0)
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        waiter = Waiter()
        seen = local.engine.partitions.get(TOPIC_ID, 0)
        assert seen is not None
        seen.watch(waiter)
        held = hold_appends(local)
        await local.append(b"b")
        await eventually(lambda: waiter.moves)
        assert not local.one().following
        assert records((await local.fetch(1)).records) == [(1, b"b")]
        held.set()
        await local.caught_up(2)


async def test_neither_copied_nor_tail_is_read_from_objects(tmp_path: Path) -> None:
    # ENG-39, ENG-42 partly: below the copy, in it, at its end, beyond
    async with world(tmp_path, limits=SMALL) as local:
        value = bytes(10_000)
        for _ in range(30):
            await local.append(value)
        await local.caught_up(30)
        region = local.region()
        assert region is not None
        assert 0 < region.start < region.end == 30
        files = local.segments()
        forget_objects(local.engine)
        local.finds.clear()
        inside = await local.fetch(region.start)
        assert records(inside.records)[0] == (region.start, value)
        assert inside.log_start_offset == 0
        assert bytes((await local.fetch(30)).records) == b""
        assert (local.finds, local.gets) == ([], [])

        below = await local.fetch(region.start - 1, max_bytes=1)
        assert records(below.records) == [(region.start - 1, value)]
        assert len(local.gets) == 1
        assert (await local.fetch(31)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(local.finds) == 2
        assert local.segments() == files


async def test_each_partition_has_its_own_source_and_the_answer_is_one(tmp_path: Path) -> None:
    # ENG-40 partly: without tiered storage
    engine = await Engine(CountingStore).start(4)
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"copied")
        await local.append(b"tail", index=1)
        await local.append(b"not hosted", index=2)
        await local.caught_up(1)
        await local.caught_up(1, 1)
        requests = [
            ReadRequest(TOPIC_ID, index, offset, 1 << 20)
            for index, offset in ((0, 0), (1, 1), (2, 0), (3, 7))
        ]
        for order in (requests, requests[::-1]):
            found = await local.fetcher.fetch(order, 1 << 20)
            by_index = {r.partition: f for r, f in zip(order, found, strict=True)}
            assert [records(by_index[n].records) for n in range(4)] == [
                [(0, b"copied")],
                [],
                [(0, b"not hosted")],
                [],
            ]
            assert by_index[3].error is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_the_budget_is_spent_on_the_first_source_first(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start(4)
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"x" * 1000)
        await local.append(b"y" * 1000, index=2)
        await local.caught_up(1)
        copied = ReadRequest(TOPIC_ID, 0, 0, 1 << 20)
        remote = ReadRequest(TOPIC_ID, 2, 0, 1 << 20)
        for order in ([copied, remote], [remote, copied]):
            first, second = await local.fetcher.fetch(order, 500)
            assert len(first.records) > 1000  # the first batch is returned all the same
            assert bytes(second.records) == b""
            assert (second.error, second.high_watermark) == (ErrorCode.NONE, 1)


async def test_deleted_records_are_out_of_range_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as local:
        await local.append(b"a", b"b", b"c")
        await local.caught_up(3)
        await local.engine.plane.delete_records([(TOPIC_ID, 0, 2)])
        local.partitions.log_started((TOPIC_ID, 0), 2)
        assert (await local.fetch(1)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        found = await local.fetch(2)
        assert records(found.records) == [(2, b"c")]
        assert found.log_start_offset == 2


async def test_deletions_through_other_brokers_are_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filler, "REFRESH_SECONDS", 0.05)
    async with world(tmp_path) as local:
        await local.append(b"a", b"b", b"c")
        await local.caught_up(3)
        await local.engine.plane.delete_records([(TOPIC_ID, 0, -1)])
        await eventually(lambda: local.region() == Region(3, 3))
        assert (await local.fetch(0)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        await local.append(b"d")
        await local.caught_up(4)
        assert records((await local.fetch(3)).records) == [(3, b"d")]


async def test_a_deleted_topic_takes_its_files_along(tmp_path: Path) -> None:
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        local.partitions.delete_topic(TOPIC_ID)
        # A topic of the same name is created at once: it must not get the old files.
        again = random_uuid(RNG)
        await local.engine.plane.create_partitions([(again, "t", 1)])
        local.partitions.host("t", again, 0)
        await eventually(lambda: not local.path(1).exists())
        await local.engine.writer.append(1, [item(b"new", topic_id=again)])
        one = local.partitions.get((again, 0))
        assert one is not None
        await eventually(lambda: one.following and one.end == 1)
        found = (await local.fetcher.fetch([ReadRequest(again, 0, 0, 100)], 100))[0]
        assert records(found.records) == [(0, b"new")]


async def test_a_restart_goes_on_with_what_is_there(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start()
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"a", b"b")
        await local.caught_up(2)
    await engine.writer.append(1, [item(b"c")])
    (tmp_path / "left-over-0").mkdir()
    forget_objects(engine)
    async with filler_of(engine, tmp_path) as local:
        await local.caught_up(3)
        assert local.region() == Region(0, 3)
        # One batch to verify the copy, and the missing one.
        assert len(engine.store.gets) <= 2
        assert (await local.fetch(0)).error is ErrorCode.NONE
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert local.partitions.stats.rebuilds == 0
        assert not (tmp_path / "left-over-0").exists()


async def test_a_crash_in_the_middle_of_an_append(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start()
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"a", b"b")
        await local.caught_up(2)
        await local.kill()
        path = local.segments()[0]
    path.write_bytes(path.read_bytes()[:-3])
    async with filler_of(engine, tmp_path) as local:
        await local.caught_up(2)
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b")]


async def test_a_copy_of_another_history_is_not_believed(tmp_path: Path) -> None:
    """The plane was restored and gave the same offsets to other records."""
    engine = await Engine(CountingStore).start()
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"a", b"b")
        await local.caught_up(2)
    other = await Engine(CountingStore).start()
    for value in (b"a", b"other", b"c"):
        await other.writer.append(1, [item(value)])
    async with filler_of(other, tmp_path) as local:
        await local.caught_up(3)
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"other"), (2, b"c")]
        assert local.partitions.stats.rebuilds == 1
    shorter = await Engine(CountingStore).start()
    await shorter.writer.append(1, [item(b"only")])
    async with filler_of(shorter, tmp_path) as local:
        await local.caught_up(1)
        assert records((await local.fetch(0)).records) == [(0, b"only")]


def _lose(local: World) -> None:
    shutil.rmtree(local.directory)


def _turn_a_bit(local: World) -> None:
    path = local.segments()[0]
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def _cut(local: World) -> None:
    path = local.segments()[0]
    path.write_bytes(path.read_bytes()[:40])


def _misplace(local: World) -> None:
    """The checksum does not cover the base offset."""
    path = local.segments()[0]
    data = bytearray(path.read_bytes())
    data[7] = 9
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_lose, _turn_a_bit, _cut, _misplace])
@pytest.mark.parametrize("running", [True, False])
async def test_a_copy_that_is_lost_or_damaged_is_made_anew(
    tmp_path: Path, damage: Any, running: bool
) -> None:
    directory = tmp_path / "local"
    engine = await Engine(CountingStore).start()
    values = [(0, b"a"), (1, b"b"), (2, b"c")]
    async with filler_of(engine, directory) as local:
        await local.append(b"a", b"b", b"c")
        await local.caught_up(3)
        if running:
            damage(local)
            # The response is right in any case.
            assert records((await local.fetch(0)).records) == values
            assert local.partitions.stats.spoiled == (damage is not _lose)
            await local.caught_up(3)
            assert records((await local.fetch(0)).records) == values
    if not running:
        damage(local)
        forget_objects(engine)
        async with filler_of(engine, directory) as local:
            await local.caught_up(3)
            assert records((await local.fetch(0)).records) == values
            await local.caught_up(3)
            reads = local.partitions.stats.reads
            assert records((await local.fetch(0)).records) == values
            assert local.partitions.stats.reads == reads + 1


class FailingFiles(Files):
    """A disk that becomes full."""

    full = False

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left on device")
        return super().pwritev(descriptor, buffers, position)


async def test_a_full_disk_costs_the_copy_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_partitions, "DISK_RETRY_SECONDS", 0.1)
    files = FailingFiles(100)
    async with world(tmp_path, files=files) as local:
        await local.append(b"a")
        await local.caught_up(1)
        files.full = True
        await local.append(b"b")
        await eventually(lambda: local.partitions.stats.disk_errors)
        await eventually(lambda: local.region() is None)
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b")]
        files.full = False
        await local.caught_up(2)
        assert local.region() == Region(0, 2)
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b")]


class ColdFiles(Files):
    """The page cache is empty, and the disk may hang."""

    def __init__(self) -> None:
        super().__init__(100)
        self.cold = False
        self.waited = 0
        self.answers = threading.Event()
        self.answers.set()

    def preadv(self, descriptor: Descriptor, buffer: Buffer, position: int, *, block: bool) -> int:
        if self.cold and not block:
            raise BlockingIOError
        if self.cold:
            self.waited += 1
            assert self.answers.wait(60)
        return super().preadv(descriptor, buffer, position, block=block)


async def test_what_is_not_in_memory_is_read_on_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_fetch, "READ_SECONDS_MAX", NEVER)
    files = ColdFiles()
    async with world(tmp_path, files=files) as local:
        await local.append(b"a", b"b")
        await local.caught_up(2)
        files.cold = True
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b")]
        assert files.waited > 0
        assert local.partitions.stats.reads == 1


async def test_a_disk_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_fetch, "READ_SECONDS_MAX", 0.05)
    files = ColdFiles()
    async with world(tmp_path, files=files) as local:
        await local.append(b"a", b"b")
        await local.caught_up(2)
        files.cold = True
        files.answers.clear()
        assert records((await local.fetch(0)).records) == [(0, b"a"), (1, b"b")]
        assert local.partitions.stats.reads == 0
        assert local.partitions.stats.disk_errors == 1
        files.answers.set()


async def test_an_object_that_cannot_be_had_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_partitions, "RETRY_SECONDS", 0.05)
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"lost")])
    forget_objects(engine)
    (key,) = [str(info.key) async for info in engine.memory.list("wal/")]
    engine.store.missing.add(key)
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"fine", index=1)
        await local.caught_up(1, 1)
        assert (await local.fetch(0)).error is ErrorCode.KAFKA_STORAGE_ERROR
        engine.store.missing.clear()
        await local.caught_up(1)
        assert records((await local.fetch(0)).records) == [(0, b"lost")]


async def test_a_copy_far_behind_begins_again_near_the_end(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start()
    async with filler_of(engine, tmp_path, limits=SMALL) as local:
        await local.append(b"old")
        await local.caught_up(1)
    for _ in range(40):
        await engine.writer.append(1, [item(bytes(10_000))])
    forget_objects(engine)
    async with filler_of(engine, tmp_path, limits=SMALL) as local:
        await local.caught_up(41)
        region = local.region()
        assert region is not None
        assert region.start > 20
        assert len(engine.store.gets) < 20
        size = sum(path.stat().st_size for path in local.segments())
        assert size <= SMALL.partition_bytes


async def test_what_only_tiered_storage_has_is_not_copied(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start()
    for value in (b"a", b"b", b"c"):
        await engine.writer.append(1, [item(value)])
    await engine.plane.prune_to([(TOPIC_ID, 0, 2)])
    async with filler_of(engine, tmp_path) as local:
        await local.caught_up(3)
        await local.append(b"d")
        await local.caught_up(4)
        assert local.region() == Region(2, 4)
        assert records((await local.fetch(2)).records) == [(2, b"c"), (3, b"d")]
        assert (await local.fetch(1)).error is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


async def test_a_copy_behind_a_prune_begins_again_at_the_wal_start(tmp_path: Path) -> None:
    """The records after it went to tiered storage meanwhile; a copy has no gap."""
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        plane = local.engine.plane
        find = plane.find_batches

        async def late(requests: Any, *limits: Any) -> Any:
            """The prune overtakes the filler's find."""
            if requests[0].offset == 1:
                await plane.prune_to([(TOPIC_ID, 0, 2)])
            return await find(requests, *limits)

        plane.find_batches = late  # type: ignore[method-assign, assignment]
        await local.engine.writer.append(1, [item(b"b"), item(b"c")])
        await local.append(b"d")
        await local.caught_up(4)
        assert local.region() == Region(2, 4)
        assert records((await local.fetch(2)).records) == [(2, b"c"), (3, b"d")]


async def test_batches_larger_than_a_segment(tmp_path: Path) -> None:
    async with world(tmp_path, limits=SMALL) as local:
        large = bytes(300_000)
        await local.append(b"a", large, b"b", large)
        await local.caught_up(4)
        assert records((await local.fetch(3)).records) == [(3, large)]


async def test_a_plane_that_fails_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_partitions, "RETRY_SECONDS", 0.05)
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        find, failures = local.engine.plane.find_batches, [KafkaError(ErrorCode.NOT_COORDINATOR)]
        failures.append(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

        async def failing(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return await find(*arguments)

        local.engine.plane.find_batches = failing  # type: ignore[method-assign, assignment]
        await local.append(b"b")
        await local.caught_up(2)
        assert failures == []


async def test_a_partition_that_is_not_known_yet_is_waited_for(tmp_path: Path) -> None:
    engine = await Engine(CountingStore).start(1)
    info = (await engine.plane.log_info([(TOPIC_ID, 1)]))[0]
    assert info == LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    async with filler_of(engine, tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        await engine.plane.create_partitions([(TOPIC_ID, "t", 2)])
        await local.append(b"b", index=1)
        await local.caught_up(1, 1)
        assert local.partitions.stats.disk_errors == 0


async def test_no_longer_hosted(tmp_path: Path) -> None:
    async with world(tmp_path) as local:
        await local.append(b"a")
        await local.caught_up(1)
        local.partitions.unhost(TOPIC_ID, 0)
        await eventually(lambda: not local.path().exists())
        assert records((await local.fetch(0)).records) == [(0, b"a")]
