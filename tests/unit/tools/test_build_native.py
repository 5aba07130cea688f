"""Building the C libraries: with whatever compiler there is, and without any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skylog.wire.walker import load_native

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "skylog"
SOURCES = [*PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h")]
BUILT = "".join(f"built _{path.stem}.so\n" for path in sorted(SOURCES) if path.suffix == ".c")
HAS_COMPILER = any(shutil.which(name) for name in ("cc", "gcc", "clang"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the build looks at, in a place of its own."""
    for path in (*SOURCES, ROOT / "tools" / "build_native.py"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
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
def test_builds_a_library_of_each_source(tree: Path) -> None:
    assert "_walker.so" in BUILT
    assert build(tree) == BUILT
    native = load_native(library(tree))
    assert native is not None
    assert native.walk(b"", 0, 0).error == 0


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler here")
def test_a_bad_cc_does_not_hide_a_good_compiler(tree: Path) -> None:
    assert build(tree, CC="no-such-compiler --flag") == BUILT


def test_without_a_compiler_it_says_so_and_leaves_no_stale_library(tree: Path) -> None:
    library(tree).write_bytes(b"of an older source")
    said = build(tree, PATH="", CC="")
    assert "walker.c not compiled, Python will do its work: no C compiler found" in said
    assert not library(tree).exists()


def test_a_failing_compiler_is_quoted(tree: Path) -> None:
    said = build(tree, PATH="", CC=f"{sys.executable} -c 'raise SystemExit(\"cannot\")'")
    assert "cannot" in said
    assert not library(tree).exists()
    left = {path for path in (tree / "src").rglob("*") if path.is_file()}
    assert left == {tree / path.relative_to(ROOT) for path in SOURCES}
