"""The page on security matches the code."""

from __future__ import annotations

import re
from pathlib import Path

from skylog.kernel import limits

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def test_documented_limits_match_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    assert len(rows) > 20
    for name, value in rows:
        assert getattr(limits, name) == int(value.replace(",", "")), name


def test_named_tests_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    assert named
    for path in named:
        assert (ROOT / path).exists(), path


def test_named_settings_exist() -> None:
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    section = PAGE[PAGE.index("## Limits") : PAGE.index("The others are in")]
    for name in re.findall(r"`([a-z.]+\.[a-z.]+)`", section):
        assert f"`{name}`" in reference, name
