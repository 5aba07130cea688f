"""The broker may crash before any step of a swap, and of the next start: nothing is lost."""

from __future__ import annotations

import errno
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.errors import KafkaError
from skylog.log.files import Descriptor, Files
from skylog.wire.batch import split_batches
from skylog.wire.buffers import Buffer
from tests.unit.log.compaction_support import COMPACT, CompactedLog
from tests.unit.log.support import NOW, FaultyFiles


class Died(BaseException):
    """As after kill −9: completed steps stay, nothing else happens."""


class MortalFiles(Files):
    """Crashes before the change of the given number; afterwards nothing can be changed."""

    def __init__(self, changes: int) -> None:
        super().__init__(16)
        self.left = changes

    def _change(self) -> None:
        if self.left <= 0:
            raise Died
        self.left -= 1

    def create(self, path: str) -> None:
        self._change()
        super().create(path)

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        self._change()
        return super().pwritev(descriptor, buffers, position)

    def fsync(self, descriptor: Descriptor) -> None:
        self._change()

    def truncate(self, path: str, size: int) -> None:
        self._change()
        super().truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        self._change()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._change()
        super().set_modified(path, modified_ms)


def filled(directory: Path, files: Files) -> CompactedLog:
    """Three segments, of which two become one."""
    world = CompactedLog(directory, COMPACT, files)
    for number in range(12):
        world.append(
            (b"k%d" % (number % 4), b"%d" % number), (b"a", b"x"), producer=(5, 0, 2 * number)
        )
        if number % 4 == 3:
            world.roll()
    return world


def mortal(world: CompactedLog) -> MortalFiles:
    assert isinstance(world.files, MortalFiles)
    return world.files


async def changes_of_a_pass(directory: Path) -> int:
    world = filled(directory, MortalFiles(10**9))
    before = mortal(world).left
    assert await world.cleaner.run_once() == 1
    return before - mortal(world).left


async def test_the_broker_may_crash_at_every_step_of_a_pass(tmp_path: Path) -> None:
    count = await changes_of_a_pass(tmp_path / "whole")
    assert count > 20
    for step in range(count):
        world = filled(tmp_path / str(step), MortalFiles(10**9))
        mortal(world).left = step
        with pytest.raises(Died):
            await world.cleaner.run_once()
        world.reopen()
        assert world.log.log_end_offset == 24
        world.check()
        assert not [p for p in world.directory.iterdir() if p.suffix in (".cleaned", ".swap")]
        # The next pass does what this one did not.
        world.cleaner.stats.uncleanable.clear()
        await world.compact()
        world.check()
        assert len(world.records()) == 5
        [producer] = world.log.producers
        assert producer.last_sequence == 23


async def test_a_start_may_crash_at_every_step_too(tmp_path: Path) -> None:
    count = await changes_of_a_pass(tmp_path / "whole")
    deaths = 0
    for step in range(count):
        for second in range(20):
            directory = tmp_path / f"{step}-{second}"
            world = filled(directory, MortalFiles(10**9))
            mortal(world).left = step
            with pytest.raises(Died):
                await world.cleaner.run_once()
            if not [p for p in directory.iterdir() if p.suffix in (".cleaned", ".swap")]:
                break
            try:
                CompactedLog(directory, COMPACT, MortalFiles(second))
            except Died:
                deaths += 1
            else:
                break
            world.reopen()
            world.check()
    assert deaths > 50


@pytest.mark.parametrize("policy", ["compact", "delete"])
async def test_a_log_that_was_compacted_survives_an_unclean_start(
    tmp_path: Path, policy: str
) -> None:
    world = filled(tmp_path, Files(16))
    await world.compact()
    world.log.durability.recovery_point = 0
    for path in swap_files(tmp_path, "index"):
        path.unlink()
    world.reopen(config=replace(COMPACT, cleanup_policy=frozenset({policy})))
    world.check()


def swap_files(directory: Path, marker: str) -> list[Path]:
    return sorted(directory.glob(f"*{marker}"))


async def test_files_of_kafka_s_compaction_are_settled_as_kafka_does(tmp_path: Path) -> None:
    """Kafka renames the log first: with parts still named .cleaned it is not complete."""
    world = filled(tmp_path, Files(16))
    first = tmp_path / "00000000000000000000.log"
    content = first.read_bytes()
    for name in ("00000000000000000000.log.swap", "00000000000000000000.index.cleaned"):
        (tmp_path / name).write_bytes(b"half")
    world.reopen()
    assert first.read_bytes() == content
    assert not swap_files(tmp_path, ".swap")
    assert not swap_files(tmp_path, ".cleaned")
    world.check()


@pytest.mark.parametrize("call", ["open", "write", "fsync"])
async def test_a_full_disk_ends_the_pass_and_nothing_else(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    world = filled(tmp_path, files)

    def full(what: str, path: str) -> int | None:
        return errno.ENOSPC if what == call and path.endswith(".cleaned") else None

    files.fail = full
    assert await world.cleaner.run_once() == 0
    assert world.cleaner.stats.failures == 1
    assert not world.cleaner.stats.uncleanable
    assert not swap_files(tmp_path, ".cleaned")
    world.append((b"k", b"goes on"))
    files.fail = lambda what, path: None
    assert await world.cleaner.run_once() == 1
    world.check()


async def test_a_swap_that_fails_half_way_takes_the_log_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    world = filled(tmp_path, files)
    files.fail = lambda what, path: (
        errno.EIO if what == "rename" and path.endswith(".log.swap") else None
    )
    assert await world.cleaner.run_once() == 0
    with pytest.raises(KafkaError):
        world.append((b"k", b"refused"))
    world.reopen()
    world.check()


async def test_a_log_that_is_deleted_meanwhile_is_let_go(tmp_path: Path) -> None:
    files = FaultyFiles()
    world = filled(tmp_path, files)

    def delete(what: str, path: str) -> None:
        if what == "write" and path.endswith(".cleaned"):
            world.log.mark_deleted()

    files.fail = delete
    assert await world.cleaner.run_once() == 0
    assert not world.cleaner.stats.uncleanable
    assert not swap_files(tmp_path, ".cleaned")


@pytest.mark.parametrize("change", ["truncate", "retain"])
async def test_segments_that_change_meanwhile_are_not_replaced(tmp_path: Path, change: str) -> None:
    files = FaultyFiles()
    world = filled(tmp_path, files)
    done: list[str] = []

    def interfere(what: str, path: str) -> None:
        if what == "fsync" and path.endswith(".log.cleaned") and not done:
            done.append(path)
            if change == "truncate":
                world.log.truncate_to(12)
            else:
                world.log.trimming.delete_records_before(10)
                world.log.trimming.delete_old_segments(NOW)

    files.fail = interfere
    assert await world.cleaner.run_once() == 0
    assert done
    assert not world.cleaner.stats.uncleanable
    assert not swap_files(tmp_path, ".cleaned")
    end = world.log.log_end_offset
    assert end == (12 if change == "truncate" else 24)
    assert [r.offset for r in world.records()][-1] == end - 1


async def test_readers_on_other_threads_see_no_other_file(tmp_path: Path) -> None:
    """A segment's name refers to another file after the swap, with batches at other positions."""
    world = filled(tmp_path, Files(16))
    faults: list[str] = []
    enough = threading.Event()

    def read_all() -> None:
        while not enough.is_set():
            at = 0
            while at < 24:
                info = world.log.reader.read(at, 300, 24, min_one=True, block=True)
                batches = list(split_batches(info.buffer))
                if not batches or not all(batch.crc_ok() for batch in batches):
                    faults.append(f"{at}: {batches}")
                    return
                at = batches[-1].next_offset

    threads = [threading.Thread(target=read_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            world.log.clean_offset = 0
            assert await world.cleaner.run_once() == 1
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert not faults
    world.check()
