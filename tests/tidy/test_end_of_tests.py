"""The suite's output does not end with reports of other libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = """
import gc

def test_freezes():
    import duckdb
    gc.freeze()  # as readers do, wherever they run
    assert duckdb.sql("select 1").fetchall() == [(1,)]
"""


def test_no_library_reports_leaks(tmp_path: Path) -> None:
    test = tmp_path / "test_freezes.py"
    test.write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "tests.conftest"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(test)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "leaked" not in done.stdout
