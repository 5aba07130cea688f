"""Metrics for Prometheus: components keep totals, collectors read them on each scrape.

A ``Metrics`` has its own registry, so that several brokers in one process do not share metrics.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one broker: whatever is registered with ``registry``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def exposition(self) -> bytes:
        """All metrics in Prometheus text format."""
        return generate_latest(self.registry)
