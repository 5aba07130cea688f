"""The local store: no path leads out of its directory, and a put is atomic."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import StorageError
from skylog.kernel.executor import InlineExecutor, ThreadExecutor
from skylog.objects.files import Files, UnsyncedFiles
from skylog.objects.keys import BadKey, ObjectKey
from skylog.objects.local import TEMPORARY, LocalStore
from skylog.objects.store import Exists, NotFound, ObjectError, Outcome
from tests.unit.objects.test_keys import HOSTILE, mutated

KEY = ObjectKey.named("backup", "a", "b", "c")
T = TypeVar("T")


class FaultyFiles(Files):
    """Records each changing step, and fails the one with number ``fail_at``."""

    def __init__(self, fail_at: int = -1, code: int = errno.EIO) -> None:
        self.steps: list[str] = []
        self._fail_at = fail_at
        self._code = code

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) - 1 == self._fail_at:
            raise OSError(self._code, os.strerror(self._code))

    def make_folder(self, folder: int, name: str) -> None:
        self._step(f"mkdir {name}")
        super().make_folder(folder, name)

    def write(self, file: int, parts: list[memoryview]) -> None:
        self._step("write")
        super().write(file, parts)

    def copy_file(self, source: Path, target: int) -> None:
        self._step("write")
        super().copy_file(source, target)

    def sync(self, file: int) -> None:
        self._step("sync")
        super().sync(file)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        self._step("rename")
        super().rename(source, name, target, new_name)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        self._step("link")
        super().link(source, name, target, new_name)


def opened(root: Path, files: Files | None = None) -> LocalStore:
    return LocalStore(root, InlineExecutor(), files=files)


def open_folders(root: Path) -> int:
    """Only of this directory: files of earlier tests may be closed at any moment."""
    links = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
    return sum(link.is_relative_to(root) for link in links)


async def keys_of(store: LocalStore) -> list[str]:
    return [info.key.text async for info in store.list("")]


@pytest.mark.parametrize("if_absent", [False, True])
async def test_a_put_is_synced_before_it_has_a_name_and_its_name_after(
    tmp_path: Path, if_absent: bool
) -> None:
    store = opened(tmp_path, files := FaultyFiles())
    files.steps.clear()
    name = "link" if if_absent else "rename"
    await store.put(KEY, b"data", if_absent=if_absent)
    folders = [step for part in ("backup", "a", "b") for step in (f"mkdir {part}", "sync")]
    assert files.steps == ["sync", *folders, "write", "sync", name, "sync"]
    files.steps.clear()
    await store.put(ObjectKey.named("backup", "a", "b", "d"), b"data", if_absent=if_absent)
    assert files.steps == ["write", "sync", name, "sync"]
    await store.close()


async def test_small_puts_without_syncs_are_done_at_once(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = LocalStore(tmp_path, InlineExecutor(), files=files, inline_bytes_max=5)
    assert store.at_hand.put_now(KEY, b"data")
    assert store.at_hand.put_now(KEY, [b"mo", b"re"])
    assert await store.get(KEY) == b"more"
    steps = len(files.steps)
    assert not store.at_hand.put_now(KEY, b"large")
    assert len(files.steps) == steps
    files._fail_at = steps
    assert not store.at_hand.put_now(KEY, b"none")
    assert await store.get(KEY) == b"more"
    await store.put(KEY, b"none")
    assert await store.get(KEY) == b"none"
    await store.close()
    assert not store.at_hand.put_now(KEY, b"late")


async def test_a_removed_folder_is_created_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.put(KEY, b"data")
    for folder in ("backup", TEMPORARY):
        shutil.rmtree(tmp_path / folder)
    for _ in range(2):
        await store.put(KEY, b"again")
        assert await store.get(KEY) == b"again"
    await store.close()


async def test_a_root_that_was_removed_is_found_again(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    store = opened(root)
    first, second = (ObjectKey.named("staging", "a", name) for name in ("1", "2"))
    await store.put(first, b"first")
    shutil.copytree(root, copy)
    shutil.rmtree(root)
    with pytest.raises(ObjectError):
        await store.put(second, b"second")
    assert not root.exists()  # perhaps it is only not mounted
    copy.rename(root)
    await store.put(second, b"second")
    assert [await store.get(key) for key in (first, second)] == [b"first", b"second"]
    assert (root / second.text).read_bytes() == b"second"
    assert {info.key async for info in store.list("staging/")} == {first, second}
    await store.close()


async def test_what_was_put_is_read_without_a_walk(tmp_path: Path) -> None:
    walked: list[str] = []

    class Walking(Files):
        def open_folder(self, folder: int, name: str) -> int:
            walked.append(name)
            return super().open_folder(folder, name)

    store = LocalStore(tmp_path, InlineExecutor(), files=Walking())
    await store.put(KEY, b"data")
    walked.clear()
    assert await store.get(KEY) == b"data"
    assert walked == []
    with pytest.raises(NotFound):
        await store.get(ObjectKey.named("backup", "a", "b", "other"))
    shutil.rmtree(tmp_path / "backup")
    other = opened(tmp_path)
    await other.put(KEY, b"theirs")
    assert await store.get(KEY) == b"theirs"
    await other.close()
    await store.close()


async def test_few_folders_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skylog.objects.local.OBJECT_FOLDERS_KEPT_MAX", 3)
    store = opened(tmp_path)
    for number in range(10):
        await store.put(ObjectKey.named("backup", str(number), "a"), b"data")
        await store.put(ObjectKey.named("backup", str(number), "b"), b"data")
    assert open_folders(tmp_path) == 1 + 3
    await store.close()
    assert open_folders(tmp_path) == 0


@pytest.mark.parametrize("how", ["put", "if absent", "file"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
async def test_a_put_that_fails_at_any_step_is_whole_or_absent_and_says_so(
    tmp_path: Path, code: int, how: str
) -> None:
    data = random.Random(1).randbytes(10_000)
    source = tmp_path / "source"
    source.write_bytes(data)

    async def put(store: LocalStore) -> None:
        if how == "file":
            await store.put_file(KEY, [source], len(data))
        else:
            await store.put(KEY, data, if_absent=how == "if absent")

    kinds = set()
    for step in range(11):
        root = tmp_path / str(step)
        opened(root)
        store = opened(root, files := FaultyFiles(step, code))
        with pytest.raises(ObjectError) as raised:
            await put(store)
        kinds.add(raised.value.kind)
        assert len(files.steps) == step + 1
        again = opened(root)
        found = await keys_of(again)
        assert found in ([], [KEY.text])
        if found:
            assert await again.get(KEY) == data
            assert raised.value.kind is Outcome.AMBIGUOUS
        assert not list((root / TEMPORARY).iterdir())
        await put(again)  # a retry settles it
        assert await again.get(KEY) == data
    assert Outcome.AMBIGUOUS in kinds
    assert len(kinds) == 2


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EOPNOTSUPP])
async def test_a_file_that_the_kernel_cannot_copy_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    calls = []

    def refused(*arguments: object) -> int:
        calls.append(arguments)
        if len(calls) == 1:
            return copy(arguments[0], arguments[1], 1000)  # some of it, then no more
        raise OSError(code, os.strerror(code))

    copy = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", refused)
    data = random.Random(1).randbytes(600_000)
    source = tmp_path / "source"
    source.write_bytes(data)
    store = opened(tmp_path / "objects")
    await store.put_file(KEY, [b"head", source, b"tail"], len(data) + 8)
    assert await store.get(KEY) == b"head" + data + b"tail"
    assert len(calls) > 1
    await store.close()


async def test_a_directory_made_by_another_process_is_synced_too(tmp_path: Path) -> None:
    """Its writer may not have reached that step yet."""
    store = opened(tmp_path, files := FaultyFiles())
    (tmp_path / "backup" / "a" / "b").mkdir(parents=True)
    files.steps.clear()
    await store.put(KEY, b"data")
    names = ["sync"] * 4  # of the folder for what is being written, and of the three
    assert files.steps == [*names, "write", "sync", "rename", "sync"]


WRITER = """
import asyncio, random, sys
from pathlib import Path
from skylog.kernel.executor import InlineExecutor, ThreadExecutor
from skylog.objects.keys import ObjectKey
from skylog.objects.local import LocalStore

async def main():
    store = LocalStore(Path(sys.argv[1]), InlineExecutor())
    rng = random.Random(5)
    for n in range(1_000_000):
        key = ObjectKey.named("backup", f"{n:07}")
        data = [bytes([n % 251]) * 50_000, b"end"]
        if n % 2:
            await store.put(key, data)
        else:
            await store.put_file(key, data, 50_003)
        print(key, flush=True)

asyncio.run(main())
"""


def test_kill_9_leaves_whole_objects(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, env=environment
    )
    assert writer.stdout
    acknowledged = [writer.stdout.readline().decode().strip() for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().decode().splitlines()
    writer.stdout.close()
    writer.wait()
    stored = {str(path.relative_to(root)): path for path in (root / "backup").iterdir()}
    whole_lines = [line for line in rest if len(line) == len(acknowledged[0])]
    assert set(acknowledged) | set(whole_lines) <= set(stored)
    assert len(stored) <= len(acknowledged) + len(rest) + 1
    for text, path in stored.items():
        number = int(text.rpartition("/")[2])
        assert path.read_bytes() == bytes([number % 251]) * 50_000 + b"end"


def snapshot(folder: Path, but: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and but not in path.parents
    }


def forged(text: str) -> ObjectKey:
    """A key that our constructors would not create."""
    return ObjectKey(text, None)


async def test_hostile_keys_do_not_leave_the_root(tmp_path: Path) -> None:
    """Even keys that bypassed ``parse``."""
    root = tmp_path / "outer" / "root"
    store = opened(root, UnsyncedFiles())
    (tmp_path / "outer" / "victim").write_bytes(b"secret")
    before = snapshot(tmp_path, but=root)
    rng = random.Random(3)
    texts = [*HOSTILE, "../victim", "backup/../../victim", *(mutated(rng) for _ in range(1200))]
    harmless = 0
    for text in texts:
        key = forged(text)
        for work in (
            lambda key=key: store.put(key, b"evil"),
            lambda key=key: store.put(key, b"evil", if_absent=True),
            lambda key=key: store.get(key),
            lambda key=key: store.delete_many([key]),
        ):
            try:
                data = await work()
                harmless += 1
                assert data in (None, b"evil")
            except (BadKey, ObjectError):
                pass
    assert harmless > 100
    assert snapshot(tmp_path, but=root) == before


@pytest.mark.parametrize("where", ["object", "folder", "top"])
async def test_links_are_not_followed(tmp_path: Path, where: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    store = opened(root)
    (outside / "a" / "b").mkdir(parents=True)
    victim = outside / "a" / "b" / "c"
    victim.write_bytes(b"secret")
    link, target = {
        "object": (root / "backup/a/b/c", victim),
        "folder": (root / "backup/a/b", outside / "a" / "b"),
        "top": (root / "backup", outside),
    }[where]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    for work in (lambda: store.get(KEY), lambda: store.head(KEY)):
        with pytest.raises(ObjectError) as raised:
            await work()
        assert raised.value.kind is Outcome.REFUSED
    with pytest.raises(ObjectError):
        await store.put(KEY, b"evil", if_absent=True)
    if where == "object":
        await store.put(KEY, b"mine")  # replaces the link
        assert await store.get(KEY) == b"mine"
    else:
        with pytest.raises(ObjectError):
            await store.put(KEY, b"evil")
        with pytest.raises(ObjectError):
            await store.delete_many([KEY])
        assert await keys_of(store) == []
    assert victim.read_bytes() == b"secret"


async def test_paths_that_are_not_files_are_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / "backup/a/b").mkdir(parents=True)
    os.mkfifo(tmp_path / "backup/a/b/c")
    with pytest.raises(ObjectError, match="not a file"):
        await store.get(KEY)
    (tmp_path / "backup/a/b/d").mkdir()
    with pytest.raises(ObjectError):
        await store.get(ObjectKey.named("backup", "a", "b", "d"))


async def test_files_of_others_are_not_listed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.put(KEY, b"data")
    (tmp_path / "README").write_text("x")
    (tmp_path / "backup" / "Upper").write_text("x")
    (tmp_path / "wal").mkdir()
    (tmp_path / "wal" / "junk").write_text("x")
    assert await keys_of(store) == [KEY.text]


async def test_old_leftovers_are_removed_and_young_ones_kept(tmp_path: Path) -> None:
    opened(tmp_path)
    for name, age in (("old", 7200), ("young", 60)):
        path = tmp_path / TEMPORARY / name
        path.write_text("half")
        now = ManualClock().now_ms() // 1000
        os.utime(path, (now - age, now - age))
    LocalStore(tmp_path, InlineExecutor(), clock=ManualClock())
    assert [path.name for path in (tmp_path / TEMPORARY).iterdir()] == ["young"]


async def test_two_stores_on_one_directory(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    await first.put(KEY, b"first", if_absent=True)
    with pytest.raises(Exists):
        await second.put(KEY, b"second", if_absent=True)
    assert await second.get(KEY) == b"first"
    await second.delete_many([KEY])
    with pytest.raises(NotFound):
        await first.get(KEY)


async def test_a_closed_store_refuses_and_closes_twice(tmp_path: Path) -> None:
    closed: list[str] = []
    store = LocalStore(tmp_path, InlineExecutor(), on_close=lambda: closed.append("once"))
    await store.put(KEY, b"data")
    await store.close()
    await store.close()
    assert closed == ["once"]
    with pytest.raises(ObjectError):
        await store.get(KEY)


def test_a_root_that_cannot_be_used_says_which(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file/below"):
        opened(tmp_path / "file" / "below")


def test_many_parts_are_written_in_full(tmp_path: Path) -> None:
    parts: Sequence[memoryview] = [memoryview(bytes([n % 256])) for n in range(5000)]
    folder = os.open(tmp_path, os.O_RDONLY)
    Files().write_new(folder, "x", parts)
    os.close(folder)
    assert (tmp_path / "x").read_bytes() == b"".join(parts)


async def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    class Short(Files):
        def read(self, file: int, start: int, size: int) -> bytes:
            return super().read(file, start, size)[:-1]

    store = opened(tmp_path, Short())
    await store.put(KEY, b"data")
    with pytest.raises(ObjectError) as raised:
        await store.get(KEY)
    assert raised.value.kind is Outcome.NOT_DONE


@pytest.fixture
def all_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is in the page cache, on a file system that supports RWF_NOWAIT."""
    preadv = os.preadv

    def unflagged(file: int, buffers: list[bytearray], position: int, flags: int) -> int:
        assert flags == os.RWF_NOWAIT
        return preadv(file, buffers, position)

    monkeypatch.setattr(os, "preadv", unflagged)


@pytest.mark.usefixtures("all_cached")
async def test_what_is_in_memory_is_read_without_a_thread(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.put(KEY, b"0123456789")
    before = open_folders(tmp_path)
    assert store.at_hand.get_now(KEY, 2, 6) == b"2345"
    assert store.at_hand.get_now(KEY, 2, 11) is None
    assert open_folders(tmp_path) == before
    await store.close()
    assert store.at_hand.get_now(KEY, 2, 6) is None


@pytest.mark.usefixtures("all_cached")
async def test_paths_that_are_not_files_are_never_at_hand(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.put(KEY, b"secret")
    (tmp_path / "backup/a/b/link").symlink_to(tmp_path / "backup/a/b/c")
    os.mkfifo(tmp_path / "backup/a/b/pipe")
    (tmp_path / "backup/a/b/folder").mkdir()
    for name in ("link", "pipe", "folder"):
        assert store.at_hand.get_now(ObjectKey.named("backup", "a", "b", name), 0, 1) is None
    with pytest.raises(BadKey):
        store.at_hand.get_now(ObjectKey("backup/../../etc", None), 0, 1)
    await store.close()


@pytest.mark.parametrize(
    "outcome",
    [BlockingIOError(), OSError(errno.EIO, "I/O error"), 3],
    ids=["disk", "error", "part"],
)
async def test_what_is_not_all_in_memory_is_left_to_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Exception | int
) -> None:
    store = opened(tmp_path)
    await store.put(KEY, b"0123456789")

    def preadv(*_: object) -> int:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", preadv)
        assert store.at_hand.get_now(KEY, 0, 5) is None
    assert store.at_hand.get_now(KEY, 0, 5) == b"01234"
    await store.close()


async def test_a_file_system_that_cannot_say_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens: list[str] = []

    class Counting(Files):
        def open_file(self, folder: int, name: str) -> int:
            opens.append(name)
            return super().open_file(folder, name)

    def preadv(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    store = opened(tmp_path, Counting())
    await store.put(KEY, b"data")
    monkeypatch.setattr(os, "preadv", preadv)
    assert [store.at_hand.get_now(KEY, 0, 4) for _ in range(3)] == [None] * 3
    assert len(opens) == 1
    assert await store.get(KEY) == b"data"
    await store.close()


async def test_reads_do_not_wait_for_copies(tmp_path: Path) -> None:
    """A segment takes long to copy; all threads may be busy with others."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Files):
        def copy_file(self, source: Path, target: int) -> None:
            begun.set()
            assert go_on.wait(60)
            super().copy_file(source, target)

    threads, copies = ThreadExecutor(1, "reads"), ThreadExecutor(1, "copies")
    store = LocalStore(tmp_path / "objects", threads, files=Slow())
    store.copies = copies
    source = tmp_path / "source"
    source.write_bytes(b"a segment")
    await store.put(KEY, b"data")
    copying = asyncio.ensure_future(store.put_file(ObjectKey.named("backup", "x"), [source], 9))
    await asyncio.to_thread(begun.wait, 60)
    assert await store.get(KEY) == b"data"
    assert not copying.done()
    go_on.set()
    await copying
    await store.close()
    threads.close()
    copies.close()
