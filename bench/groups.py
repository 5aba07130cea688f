"""Consumer groups: what heartbeats cost a broker, and how long rebalances take."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from bench import clients
from bench.clusters import SIDES, Cluster
from bench.group_load import Phase
from bench.group_members import PARTITIONS, TOPIC
from bench.measure import Figure
from bench.plan import Plan, both

MEMBERS = 10
# Classic members need one connection each, so there are fewer.
GROUPS = {"consumer": 1_000, "classic": 100}
QUICK_SHARE = 10
INTERVALS = 3


def groups(plan: Plan) -> list[Figure]:
    """Both protocols, with heartbeats as often as those of Kafka's clients."""
    rows = {protocol: _rows(protocol, _count(plan, protocol)) for protocol in GROUPS}
    with both(plan) as clusters:
        for side in SIDES:
            clients.Topics(clusters[side].bootstrap).create([TOPIC], partitions=PARTITIONS)
            for protocol, count in GROUPS.items():
                plan.say(f"groups, warm-up of {side}, {protocol}")
                _play(clusters[side], protocol, f"warm-{protocol}", max(count // QUICK_SHARE, 1), 1)
        for number, side in plan.turns():
            for protocol, figures in rows.items():
                plan.say(f"groups, round {number + 1}, {side}, {protocol}")
                count = _count(plan, protocol)
                intervals = 1 if plan.quick else INTERVALS
                name = f"{protocol}-{number}"
                phases = _play(clusters[side], protocol, name, count, intervals)
                for figure, value in zip(figures, _values(phases, count), strict=True):
                    figure.add(side, value)
    return [figure for figures in rows.values() for figure in figures]


def _count(plan: Plan, protocol: str) -> int:
    return GROUPS[protocol] // (QUICK_SHARE if plan.quick else 1)


def _rows(protocol: str, count: int) -> list[Figure]:
    size = f"{count:,} groups of {MEMBERS}, {protocol} protocol"
    note = "members keep the default interval of heartbeats"
    return [
        Figure(f"{size}: broker CPU of heartbeats", "% of a core", None),
        Figure(f"{size}: broker CPU of heartbeats", "ms per 1,000", None),
        Figure(f"{size}: formed", "s", None, note=note),
        Figure(f"{size}: one more joins each", "s until all have settled", None, note=note),
        Figure(f"{size}: one leaves each", "s until all have settled", None, note=note),
        Figure(
            f"{size}: broker CPU of a rebalance",
            "ms",
            None,
            note="one joins; with the heartbeats until its group has settled",
        ),
    ]


def _values(phases: Mapping[str, Phase], count: int) -> list[float]:
    """In the order of the rows."""
    steady, joined = phases["steady"], phases["join"]
    return [
        steady.cpu_seconds / steady.seconds * 100,
        steady.cpu_seconds / steady.heartbeats * 1_000_000,
        phases["form"].seconds,
        joined.seconds,
        phases["leave"].seconds,
        joined.cpu_seconds / count * 1000,
    ]


def _play(
    cluster: Cluster, protocol: str, prefix: str, count: int, intervals: int
) -> dict[str, Phase]:
    command = [sys.executable, "-m", "bench.group_load", protocol, cluster.bootstrap]
    command += [str(cluster.pid), prefix, "--groups", str(count), "--members", str(MEMBERS)]
    command += ["--intervals", str(intervals)]
    found = json.loads(clients.output_of(command, protocol).splitlines()[-1])
    return {name: Phase(**phase) for name, phase in found.items()}
