"""Metrics for Prometheus: components keep totals, collectors read them on each scrape.

A ``Metrics`` has its own registry, so that several brokers in one process do not share metrics.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one node, in the order in which their collectors came."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        self._registry.register(collector)
        self.collectors.append(collector)

    def exposition(self) -> bytes:
        """All metrics in Prometheus text format."""
        return generate_latest(self._registry)
