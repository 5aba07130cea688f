"""A client that reads everything again and again while nodes fail, and records move."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.history import History, Place
from tests.chaos.load import Worker, read_all


class Looper(Worker):
    """Reads everything from the earliest record to the end, again and again; ``done`` counts."""

    def __init__(
        self, name: str, history: History, bootstrap: str, places: Sequence[Place]
    ) -> None:
        super().__init__(name, history)
        self._servers = bootstrap
        self._places = places

    def work(self) -> None:
        while self.goes_on:
            try:
                found = read_all(self._servers, self._places)
            except (AssertionError, TimeoutError) as failure:
                self.history.complaints.append(f"{self.name}: {failure}")
                return
            for place, log in found.items():
                offsets = [offset for offset, _ in log]
                first = offsets[0] if offsets else 0
                if offsets != list(range(first, first + len(offsets))):
                    self.history.complaints.append(f"V7 {self.name} {place}: a gap")
            self.done += 1
