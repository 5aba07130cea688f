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


def new_plan(rng: Random) -> Plan:
    return Plan(
        brokers=rng.choice((1, 2, 2, 3, 3)),
        steps=rng.randint(250, 700),
        retention_ms=rng.choice((-1, -1, 2_000, 6_000)),
        lost=rng.choice((0, 5, 25)),
        given_up=rng.choice((0, 5, 25)),
    )
