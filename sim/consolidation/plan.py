"""What the history of a seed is like."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed's history is like."""

    brokers: int
    steps: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    prune_delay_ms: int
    # For all that is put together.
    disk_bytes: int
    # Out of a hundred requests, how many are lost, and how many senders give up.
    lost: int
    given_up: int
    # How often leaders change, and how often brokers hear of it; how often one is killed.
    elections: int
    learning: int
    kills: int
    # How often bytes on a disk are damaged.
    damages: int
    # How often a disk becomes full, or has room again.
    fills: int
    # How often the store spoils a segment.
    rots: int


def new_plan(rng: Random) -> Plan:
    # Where they change often, two that both believe to lead copy the same records.
    elections = rng.choice((1, 2, 8))
    return Plan(
        brokers=rng.choice((1, 2, 2, 3) if elections < 8 else (2, 3)),
        steps=rng.randint(300, 900),
        retention_ms=rng.choice((-1, -1, 6_000, 20_000)),
        retention_bytes=rng.choice((-1, -1, -1, 1_000)),
        segment_bytes=rng.choice((250, 400, 900)),
        segment_ms=rng.choice((3_000, 60_000)),
        disk_bytes=rng.choice((600, 1_000_000)),
        prune_delay_ms=rng.choice((0, 0, 500, 2_000)),
        lost=rng.choice((0, 5, 20)),
        given_up=rng.choice((0, 5, 20)),
        elections=elections,
        learning=rng.choice((3, 8)),
        kills=rng.choice((0, 1, 1)),
        damages=rng.choice((0, 0, 4)),
        fills=rng.choice((0, 0, 0, 3)),
        rots=rng.choice((0, 0, 0, 12)),
    )


# A history in which nothing happens by itself.
CALM = Plan(
    brokers=2,
    steps=0,
    retention_ms=-1,
    retention_bytes=-1,
    segment_bytes=300,
    segment_ms=5_000,
    prune_delay_ms=500,
    disk_bytes=1_000_000,
    lost=0,
    given_up=0,
    elections=0,
    learning=0,
    kills=0,
    damages=0,
    fills=0,
    rots=0,
)
