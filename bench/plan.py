"""How much a bench does, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.clusters import SIDES


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done."""

    classpath: str
    rounds: int = 3
    records: int = 500_000
    latency_records: int = 10_000
    many_topics: int = 1_000
    idle_seconds: float = 10.0
    say: Callable[[str], None] = print

    def turns(self) -> Iterator[tuple[int, str]]:
        """Round and side; who went first goes second in the next round."""
        for number in range(self.rounds):
            for side in SIDES if number % 2 == 0 else reversed(SIDES):
                yield number, side
