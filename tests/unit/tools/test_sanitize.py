"""The run under sanitizers: some rounds, and a compiler without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "sanitize.py"


def sanitize(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_compiler_without_sanitizers_fails_the_run() -> None:
    done = sanitize("--rounds", "1", CC="false")
    assert done.returncode != 0
    assert "false with its sanitizers is needed" in done.stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_some_rounds_find_nothing() -> None:
    done = sanitize("--first", "1", "--rounds", "20", CC="gcc")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 rounds\n"
