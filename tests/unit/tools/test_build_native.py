"""Building the walker: with whatever compiler there is, and without any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skylog.wire.walker import load_native

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "skylog" / "wire" / "walker.c"
HAS_COMPILER = any(shutil.which(name) for name in ("cc", "gcc", "clang"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the build looks at, in a place of its own."""
    for path in (SOURCE, ROOT / "tools" / "build_native.py"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    return tmp_path


def build(tree: Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-S", str(tree / "tools" / "build_native.py")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return result.stdout


def library(tree: Path) -> Path:
    return tree / "src" / "skylog" / "wire" / "_walker.so"


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler here")
def test_builds_a_walker_that_loads(tree: Path) -> None:
    assert build(tree) == "built _walker.so\n"
    native = load_native(library(tree))
    assert native is not None
    assert native.walk(b"", 0, 0).error == 0


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler here")
def test_a_bad_cc_does_not_hide_a_good_compiler(tree: Path) -> None:
    assert build(tree, CC="no-such-compiler --flag") == "built _walker.so\n"


def test_without_a_compiler_it_says_so_and_leaves_no_stale_library(tree: Path) -> None:
    library(tree).write_bytes(b"of an older source")
    said = build(tree, PATH="", CC="")
    assert "the one in Python will be used: no C compiler found" in said
    assert not library(tree).exists()


def test_a_failing_compiler_is_quoted(tree: Path) -> None:
    said = build(tree, PATH="", CC=f"{sys.executable} -c 'raise SystemExit(\"cannot\")'")
    assert "cannot" in said
    assert not library(tree).exists()
    assert not [path for path in library(tree).parent.iterdir() if path.name != "walker.c"]
