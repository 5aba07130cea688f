from __future__ import annotations

import contextlib
import errno
import os
import resource
import threading
from pathlib import Path

import pytest

from skylog.log.files import IOV_MAX, Files
from skylog.log.index import OffsetIndex, TimeIndex


def open_descriptors(directory: Path) -> int:
    links = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
    return sum(link.is_relative_to(directory) for link in links)


def test_descriptors_are_bounded_and_close_with_their_last_user(tmp_path: Path) -> None:
    files = Files(2)
    for number in range(5):
        files.create(str(tmp_path / str(number)))
        files.write_all(str(tmp_path / str(number)), [b"%d" % number], 0)
    assert files.open_files == 2
    assert open_descriptors(tmp_path) == 2
    held = files.descriptor(str(tmp_path / "0"))
    files.forget_under(str(tmp_path))
    assert open_descriptors(tmp_path) == 1
    buffer = bytearray(1)
    assert files.preadv(held, buffer, 0, block=True) == 1
    assert buffer == b"0"
    del held
    assert open_descriptors(tmp_path) == 0


@pytest.mark.parametrize(("allowed", "kept"), [(8, 4), (1, 1), (resource.RLIM_INFINITY, 6)])
def test_half_of_the_allowed_descriptors_are_left_for_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int, kept: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    files = Files(6)
    for number in range(9):
        files.create(str(tmp_path / str(number)))
        files.descriptor(str(tmp_path / str(number)))
    assert files.open_files == kept


def test_a_path_that_comes_to_mean_another_file_is_opened_again(tmp_path: Path) -> None:
    files = Files(4)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    for path, content in ((old, b"old"), (new, b"new")):
        files.create(path)
        files.write_all(path, [content], 0)
    files.rename(new, old)
    assert bytes(files.read(old, 0, 10)) == b"new"
    files.remove(old)
    with pytest.raises(FileNotFoundError):
        files.read(old, 0, 10)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_a_thread_opens_while_it_is_renamed_does_not_stay_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    files, directory = Files(4), tmp_path / "log"
    directory.mkdir()
    path = str(directory / "segment")
    files.create(path)
    renamed = path if what == "file" else str(directory)

    def reader() -> None:
        with contextlib.suppress(FileNotFoundError):
            files.descriptor(path)

    thread = threading.Thread(target=reader)
    replace = os.replace

    def replace_beside_a_reader(source: str, target: str) -> None:
        thread.start()
        thread.join(0.2)  # it waits for us, or has the file open
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_beside_a_reader)
    files.rename(renamed, renamed + ".deleted")
    thread.join()
    assert files.open_files == open_descriptors(tmp_path) == 0


def test_more_pieces_than_one_call_takes_are_written_in_order(tmp_path: Path) -> None:
    files, path = Files(4), str(tmp_path / "many")
    files.create(path)
    pieces = [b"%05d" % number for number in range(2 * IOV_MAX + 3)]
    files.write_all(path, list(pieces), 0)
    assert Path(path).read_bytes() == b"".join(pieces)


def test_a_file_is_swapped_in_whole(tmp_path: Path) -> None:
    files, path = Files(4), tmp_path / "checkpoint"
    files.replace(str(path), b"first")
    files.replace(str(path), b"second", sync=False)
    assert path.read_bytes() == b"second"
    assert [found.name for found in tmp_path.iterdir()] == ["checkpoint"]


def test_small_files_have_a_limit(tmp_path: Path) -> None:
    files, path = Files(4), tmp_path / "small"
    assert files.read_small(str(path), 10) is None
    path.write_bytes(b"x" * 10)
    assert files.read_small(str(path), 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes"):
        files.read_small(str(path), 9)


def test_where_the_cache_cannot_be_asked_reads_just_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    genuine = os.preadv

    def preadv(number: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        calls.append(flags)
        if flags:
            raise OSError(errno.EOPNOTSUPP, "not here")
        return genuine(number, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)
    path = tmp_path / "file"
    path.write_bytes(b"content")
    files = Files(4)
    assert bytes(files.read(str(path), 0, 7, block=False)) == b"content"
    assert bytes(files.read(str(path), 3, 7, block=False)) == b"tent"
    assert calls == [os.RWF_NOWAIT, 0, 0]


def test_an_offset_index_finds_the_last_entry_at_or_before(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    files = Files(4)
    files.create(path)
    index = OffsetIndex(files, path, 1000, 80)
    assert index.floor(2000) is None
    for number in range(10):
        assert not index.is_full
        index.append(1010 + 10 * number, 500 * (number + 1))
    assert index.is_full
    assert index.floor(1009) is None
    assert index.floor(1010) == (1010, 500)
    assert index.floor(1029) == (1020, 1000)
    assert index.floor(9999) == (1100, 5000)
    assert index.floor_position(499) is None
    assert index.floor_position(1499) == (1020, 1000)
    index.write()
    index.truncate_to(1050)
    assert len(index) == 4
    again = OffsetIndex(files, path, 1000, 80)
    again.load(block=True)
    assert [again.at(slot) for slot in range(len(again))] == [
        (10 * n, 500 * n) for n in range(1, 5)
    ]
    assert again.is_sane()
    again.append(1001, 9000)
    assert not again.is_sane()


def test_a_time_index_takes_only_news(tmp_path: Path) -> None:
    path = str(tmp_path / "timeindex")
    files = Files(4)
    files.create(path)
    index = TimeIndex(files, path, 1000, 48)
    assert index.last == (-1, 1000)
    assert index.floor(5) == (-1, 1000)
    for timestamp, offset in ((50, 1001), (50, 1005), (40, 1006), (60, 1009)):
        index.maybe_append(timestamp, offset)
    assert len(index) == 2
    assert not index.is_full
    index.maybe_append(70, 1010)
    assert index.is_full
    assert index.floor(59) == (50, 1001)
    assert index.floor(60) == (60, 1009)
    assert index.last == (70, 1010)
    index.write()
    index.truncate_to(1009)
    assert index.last == (50, 1001)
