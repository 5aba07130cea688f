"""Metrics for Prometheus: counters, gauges and histograms, made once and cheap to move.

A ``Metrics`` has a registry of its own, so that several brokers in one process do not meet. A
metric with labels is asked for its child once (``labels``), and the child is kept by who moves it:
no name is looked up on the way of a request. ``gauge_of`` makes a gauge that is read only when
somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

PREFIX: Final = "skylog"
# Requests take from microseconds (answered at once) to seconds (long polls).
LATENCY_SECONDS: Final = (
    *(0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one broker. Asking twice for a name gives the same metric."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._known: dict[str, Counter | Gauge | Histogram] = {}

    def counter(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Counter:
        """Something that only grows; Prometheus adds ``_total`` to the name."""
        found = self._known.get(name)
        if not isinstance(found, Counter):
            found = Counter(_full(name), help_text, labels, registry=self.registry)
            self._known[name] = found
        return found

    def gauge(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Gauge:
        """Something that goes up and down."""
        found = self._known.get(name)
        if not isinstance(found, Gauge):
            found = Gauge(_full(name), help_text, labels, registry=self.registry)
            self._known[name] = found
        return found

    def gauge_of(self, name: str, help_text: str, read: Callable[[], float]) -> Gauge:
        """A gauge that is read when somebody looks."""
        gauge = self.gauge(name, help_text)
        gauge.set_function(read)
        return gauge

    def histogram(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = LATENCY_SECONDS,
    ) -> Histogram:
        """How something is distributed, durations in seconds unless the buckets say otherwise."""
        found = self._known.get(name)
        if not isinstance(found, Histogram):
            found = Histogram(
                _full(name), help_text, labels, registry=self.registry, buckets=buckets
            )
            self._known[name] = found
        return found

    def exposition(self) -> bytes:
        """All metrics as the text that Prometheus reads."""
        return generate_latest(self.registry)


def _full(name: str) -> str:
    return f"{PREFIX}_{name}"
