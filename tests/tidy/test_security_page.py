"""The page on security says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from skylog.kernel import limits

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def test_limits_have_the_values_that_they_have() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    assert len(rows) > 20
    for name, value in rows:
        assert getattr(limits, name) == int(value.replace(",", "")), name


def test_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    assert named
    for path in named:
        assert (ROOT / path).exists(), path


def test_settings_that_are_named_exist() -> None:
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    section = PAGE[PAGE.index("## Limits") : PAGE.index("The others are in")]
    for name in re.findall(r"`([a-z.]+\.[a-z.]+)`", section):
        assert f"`{name}`" in reference, name
