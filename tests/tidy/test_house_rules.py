"""The house rules that no linter knows: sizes, purity, and what must not stand in the tree."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("src", "sim", "bench", "tools")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "messages" not in path.parts
]
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PURE_NAMES = {"machine.py", "layout.py", "plan.py", "placement.py", "image.py"}
IMPURE_IMPORTS = {"asyncio", "time", "random", "os", "socket", "uuid"}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_modules_are_short() -> None:
    long = {relative(p): n for p in SOURCES if (n := p.read_text().count("\n")) > MODULE_LINES_MAX}
    assert not long


def test_functions_are_short() -> None:
    long = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long[f"{relative(path)}:{node.name}"] = lines
    assert not long


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def is_pure(path: Path) -> bool:
    """By name, or by the promise in its docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return path.name in PURE_NAMES or "Pure:" in docstring


@pytest.mark.parametrize("path", [p for p in SOURCES if is_pure(p)], ids=relative)
def test_deciding_modules_touch_nothing(path: Path) -> None:
    assert not imported(path) & IMPURE_IMPORTS


def test_no_machine_paths_or_registry_hosts() -> None:
    found = subprocess.run(
        ["git", "grep", "-nIE", r"(^|[^A-Za-z0-9_./])/(work|root|farm)/|index-url|find-links"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    own = ("tests/tidy/", "tools/lock.sh")
    assert [line for line in found if not line.startswith(own)] == []


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    found = [relative(p) for p in SOURCES if marks.search(p.read_text())]
    assert not found
