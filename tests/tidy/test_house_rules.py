"""House rules that no linter checks: sizes, purity, and text that must not be committed."""

from __future__ import annotations

import ast
import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("src", "sim", "bench", "tools")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "messages" not in path.parts
]
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PURE_NAMES = {"machine.py", "layout.py", "plan.py", "placement.py", "rules.py", "epochs.py"}
PURE_PROMISE = re.compile(r"\bPure\b|[:,] pure\b")


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


def is_pure(path: Path) -> bool:
    """By name, or because its docstring says so."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return path.name in PURE_NAMES or PURE_PROMISE.search(docstring) is not None


def test_pure_modules_are_in_the_import_contract() -> None:
    """``lint-imports`` checks those that the contract names, and a package with all its modules."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    checked = set(contracts["importlinter:contract:pure"]["source_modules"].split())
    unchecked = []
    for path in SOURCES:
        if path.is_relative_to(ROOT / "src") and is_pure(path):
            names = path.relative_to(ROOT / "src").with_suffix("").parts
            packages = {".".join(names[: count + 1]) for count in range(len(names))}
            if not packages & checked:
                unchecked.append(relative(path))
    assert not unchecked, "name them in .importlinter under Deciding modules touch nothing"


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
