"""Building the extension modules: with any compiler, and without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

from skylog.kernel import native
from skylog.wire.walker_reference import walk_python

ROOT = Path(__file__).parents[3]
SOURCES = [*(ROOT / "src").rglob("*.c"), *(ROOT / "src").rglob("*.h")]
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler here"
)
MODULES = {f"_{path.stem}.abi3.so" for path in SOURCES if path.suffix == ".c"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the build's inputs, with a module that an older source left."""
    for path in (*SOURCES, ROOT / "setup.py", ROOT / "pyproject.toml", ROOT / "README.md"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    (tmp_path / "src/skylog/wire/_walker.abi3.so").write_bytes(b"of an older source")
    return tmp_path


def build(tree: Path, **environment: str) -> set[str]:
    subprocess.run(
        [sys.executable, "-Wignore", "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tree,
        capture_output=True,
        check=True,
        env={**os.environ, **environment},
    )
    return {path.name for path in (tree / "src").rglob("*.so")}


WALK = """
import _walker
print(_walker.VERSION)
print(_walker.walk(memoryview(bytearray(7)), 1, 5, 0, 0, 0))
for arguments in ((), ("", 0, 0, 0, 0), (b"", 0, 2**63, 0, 0)):
    try:
        _walker.is_plain(*arguments)
    except Exception as error:
        print(type(error).__name__)
"""


@needs_compiler
@pytest.mark.parametrize("flags", ["-Werror", "-Werror -DWITHOUT_PYTHON_H"])
def test_every_source_becomes_a_module_that_works(tree: Path, flags: str) -> None:
    assert "_walker.abi3.so" in MODULES
    assert build(tree, CC="", CFLAGS=flags) == MODULES
    where = tree / "src/skylog/wire"
    said = subprocess.run([sys.executable, "-c", WALK], cwd=where, check=True, capture_output=True)
    version, walked, *errors = said.stdout.decode().splitlines()
    assert int(version) == native.VERSION
    assert walked == str(tuple(map(int, walk_python(bytes(7), 1, 5, 0, 0, dense=False))))
    assert errors == ["TypeError", "TypeError", "OverflowError"]


@pytest.mark.parametrize("name", ["gcc", "clang", "zig"])
def test_every_compiler_builds_all(tree: Path, name: str) -> None:
    if not (find_spec("ziglang") if name == "zig" else shutil.which(name)):
        pytest.skip("not installed here")
    command = f"{sys.executable} -m ziglang cc" if name == "zig" else name
    assert build(tree, CC=command) == MODULES


@needs_compiler
def test_modules_are_hardened_and_name_no_folder_of_the_builder(tree: Path) -> None:
    build(tree, CC="")
    for module in (tree / "src").rglob("*.so"):
        built = module.read_bytes()
        assert str(tree).encode() not in built
        assert sysconfig.get_config_var("prefix").encode() not in built
    if readelf := shutil.which("readelf"):
        command = [readelf, "-Wdl", str(module)]
        said = subprocess.run(command, check=True, capture_output=True).stdout
        assert b"GNU_RELRO" in said
        assert b"BIND_NOW" in said or b"Flags: NOW" in said
        assert b"RUNPATH" not in said
        assert b"RPATH" not in said


@pytest.mark.parametrize("compiler", ["no-such-compiler --flag", "false"])
def test_without_a_compiler_it_succeeds_and_leaves_no_stale_module(
    tree: Path, compiler: str
) -> None:
    assert build(tree, CC=compiler) == set()
