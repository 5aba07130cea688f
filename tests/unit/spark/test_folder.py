"""Files of jobs are complete or absent, also with concurrent writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.folder import Folder


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    folder = Folder.of(str(tmp_path / "out"))
    folder.write("a", [b"first"])
    with pytest.raises(RuntimeError), folder.writing("a") as stream:
        stream.write(b"half of the sec")
        raise RuntimeError
    assert folder.read("a") == b"first"
    assert folder.names() == ["a"]


def test_two_attempts_of_a_task_do_not_mix(tmp_path: Path) -> None:
    folder = Folder.of(str(tmp_path))
    with folder.writing("a") as slow:
        slow.write(b"slow, ")
        with folder.writing("a") as fast:
            fast.write(b"fast")
        assert folder.read("a") == b"fast"
        slow.write(b"whole")
    assert folder.read("a") == b"slow, whole"
    assert folder.names() == ["a"]


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    folder = Folder.at(str(tmp_path / "absent"))
    assert folder.read("a") is None
    assert folder.read_json("a") is None
    assert folder.names() == []
    folder.remove("a")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written to"):
        Folder.of(str(tmp_path / "file" / "below"))
