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
    # Out of a hundred requests, how many are lost, and how many senders give up.
    lost: int
    given_up: int
    # How often leaders change, and how often brokers hear of it; how often one is killed.
    elections: int
    learning: int
    kills: int


def new_plan(rng: Random) -> Plan:
    # Where they change often, two that both believe to lead copy the same records.
    elections = rng.choice((2, 2, 8))
    return Plan(
        brokers=rng.choice((1, 2, 2, 3, 3) if elections < 8 else (2, 3)),
        steps=rng.randint(250, 700),
        retention_ms=rng.choice((-1, -1, 2_000, 6_000)),
        lost=rng.choice((0, 5, 25)),
        given_up=rng.choice((0, 5, 25)),
        elections=elections,
        learning=rng.choice((3, 8)),
        kills=rng.choice((0, 1, 1)),
    )
