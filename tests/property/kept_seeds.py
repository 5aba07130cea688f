"""Seeds that once failed: ``seeds.txt``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("seeds.txt")
_LINE = re.compile(r"(?P<what>\S+)\s+(?P<seed>\d+)\s+(?P<why>\S.*)")


class Kept(NamedTuple):
    what: str
    seed: int
    why: str

    def __str__(self) -> str:
        return f"{self.what}-{self.seed}"


def parse(text: str) -> list[Kept]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{FILE.name}:{number}: not `what seed why`: {line}")
        found.append(Kept(match["what"], int(match["seed"]), match["why"]))
    return found


def kept(what: str | None = None) -> list[Kept]:
    """All of them, or those of one simulation or test."""
    return [each for each in parse(FILE.read_text()) if what in (None, each.what)]
