"""The size of a bench, and the order of its rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.clusters import SIDES, Cluster, new_cluster


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a bench."""

    classpath: str
    rounds: int = 3
    records: int = 500_000
    latency_records: int = 10_000
    java_records: int = 150_000
    # How far a lagging reader is behind, and how long a row of a slow store is measured.
    lag_records: int = 5_000_000
    slow_seconds: float = 3.0
    # The size of a topic that Spark reads.
    spark_bytes: int = 1 << 30
    # The size of a tiered topic.
    tiered_bytes: int = 1 << 32
    # How long a consolidating topic is written to, for its costs and for what must not grow.
    consolidation_seconds: float = 60.0
    consolidation_level_seconds: float = 1800.0
    many_topics: int = 1_000
    idle_seconds: float = 10.0
    say: Callable[[str], None] = print
    # ``--quick``: fewer rows.
    quick: bool = False

    def turns(self, sides: Sequence[str] = SIDES) -> Iterator[tuple[int, str]]:
        """Round and side; the side that was first is last in the next round."""
        for number in range(self.rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                yield number, side


@contextlib.contextmanager
def both(plan: Plan) -> Iterator[dict[str, Cluster]]:
    """Both sides are up; one is idle while the other is measured."""
    with both_with(*(new_cluster(side, plan.classpath) for side in SIDES)) as clusters:
        yield clusters


@contextlib.contextmanager
def both_with(*clusters: Cluster) -> Iterator[dict[str, Cluster]]:
    """The same, for clusters with other settings."""
    with contextlib.ExitStack() as stack:
        yield {cluster.name: stack.enter_context(cluster) for cluster in clusters}
