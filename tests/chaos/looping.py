"""A client that reads everything again and again while nodes fail, and records move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError

from tests.chaos.history import History, Place
from tests.chaos.load import DEADLY, Worker, reader


class Looper(Worker):
    """Reads from the earliest record to the end, again and again; ``done`` counts records."""

    def __init__(
        self, name: str, history: History, bootstrap: str, places: Sequence[Place]
    ) -> None:
        super().__init__(name, history)
        self._servers = bootstrap
        self._places = places
        self._next: dict[Place, int] = {}
        self._ended: set[Place] = set()
        self.loops = 0

    def work(self) -> None:
        while self.goes_on:
            self._next, self._ended = {}, set()
            consumer = reader(self._servers, self._places, **{"enable.partition.eof": True})
            try:
                while self.goes_on and len(self._ended) < len(self._places):
                    for message in consumer.consume(500, 0.5):
                        self._take(message)
            finally:
                consumer.close()
            self.loops += 1

    def _take(self, message: Any) -> None:
        place, error = (message.topic(), message.partition()), message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(place)
            elif error.code() in DEADLY:
                self.history.complaints.append(f"V7 {self.name} {place}: {error}")
            return
        expected = self._next.get(place, message.offset())
        if message.offset() != expected:
            self.history.complaints.append(
                f"V7 {self.name} {place}: {message.offset()} after {expected - 1}"
            )
        self._next[place] = message.offset() + 1
        self.done += 1

    def where(self) -> str:
        return f"at {self._next}, at the end of {sorted(self._ended)}, after {self.loops} loops"
