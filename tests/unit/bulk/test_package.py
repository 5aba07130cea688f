"""``import skylog`` stays cheap, and says what is missing where Arrow is."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skylog


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_arrow_is_loaded_only_when_it_is_used() -> None:
    heavy = "[name for name in ('pyarrow', 'numpy', 'pandas', 'asyncio') if name in sys.modules]"
    assert run(f"import sys, skylog; print({heavy})") == "[]\n"


def test_without_arrow_the_error_says_what_to_install() -> None:
    said = run("import sys; sys.modules['pyarrow'] = None; import skylog; skylog.read('t')")
    assert "skylog.read needs pyarrow: pip install 'skylog[frames]'" in said


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'write_all'"):
        _ = skylog.write_all
