"""The metrics that nodes have: read from the collectors of a node with every feature enabled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from skylog.testing import Broker

SETTINGS: Final = {
    "http.listener": "127.0.0.1:0",
    "diskless.storage.url": "memory://",
    "diskless.local.segments.enable": "true",
    "remote.log.storage.system.enable": "true",
    "tiered.storage.url": "memory://",
}
# What Prometheus appends to a family's name, by its type.
SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "gauge": ("",),
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
}


class Family(NamedTuple):
    """One metric, with samples of any labels."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str

    @property
    def samples(self) -> tuple[str, ...]:
        return tuple(f"{self.name}{ending}" for ending in SAMPLES[self.type])


@cache
def families() -> Mapping[str, tuple[Family, ...]]:
    """By the name of the collector."""
    with Broker(SETTINGS) as broker:
        http = broker.node.http
        assert http is not None
        return {
            type(collector).__name__: tuple(
                Family(
                    family.name,
                    family.type,
                    tuple(getattr(family, "_labelnames", ())),
                    family.documentation,
                )
                for family in collector.collect()
            )
            for collector in http.metrics.collectors
        }


def samples() -> set[str]:
    """The names of all samples."""
    return {name for found in families().values() for one in found for name in one.samples}
