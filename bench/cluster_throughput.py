"""Three nodes of skylog and three of Apache Kafka: producing, and the traffic between brokers.

A classic topic has three replicas on both sides, and every record is acknowledged when all have it.
A diskless topic is not replicated; it is compared with Kafka's three replicas for the same bytes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench import clients
from bench.diskless import DISKLESS, SHIPPED_NOTE, SYNCED, SYNCED_NOTE, UNSYNCED
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal
from bench.plan import Plan
from bench.three import NODES, Between, Three

PARTITIONS = 12
# Each of three JVMs gets a third of the load, so JIT compilation takes longer.
WARM_UPS = 3
CLASSIC_GOAL = Goal(0.7, higher_is_better=True)
DISKLESS_GOAL = Goal(1.5, higher_is_better=True)
# For the replicated coordinates of batches, and the fetches of followers.
BETWEEN_GOAL = Goal(0.02, ratio=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a producer."""

    mb_per_second: float
    cpu_seconds: float
    # For each byte produced.
    between: float


class Rows:
    """The figures of one kind of topic, and of Kafka's classic one."""

    def __init__(self, kind: str, rate: Goal, between: Goal | None, note: str) -> None:
        what = f"{kind}, {NODES} nodes"
        self._rate = Figure(f"produce, {what}", "MB/s", rate, note=note)
        self._cpu = Figure(f"CPU of all brokers, produce, {what}", "s/GB", None, note=note)
        self._between = Figure(
            f"bytes between brokers, {what}", "for each produced", between, note=note
        )

    def add(self, side: str, run: Run) -> None:
        self._rate.add(side, run.mb_per_second)
        self._cpu.add(side, run.cpu_seconds)
        self._between.add(side, run.between)

    def rows(self) -> list[Figure]:
        return [self._rate, self._cpu, self._between]


def throughput(plan: Plan) -> list[Figure]:
    """Without syncs and with them; with ``--quick`` only without."""
    classic = Rows("classic, 3 replicas", CLASSIC_GOAL, None, "both as shipped: no syncs")
    diskless = _diskless_rows(SHIPPED_NOTE)
    memory = Figure("resident memory of three brokers after a round", "MB", None)
    with _clusters(plan, UNSYNCED, {}) as clusters:
        for number, what in _turns(plan, ("classic", "kafka", "diskless")):
            plan.say(f"three nodes, round {number + 1}, {what}")
            cluster = clusters["kafka" if what == "kafka" else "skylog"]
            run = _produce(plan, cluster, f"{what}-{number}", diskless=what == "diskless")
            if number < 0:
                continue
            for rows, ours in ((classic, "classic"), (diskless, "diskless")):
                if what in ("kafka", ours):
                    rows.add(cluster.side, run)
            if what != "classic":
                resident = sum(each.resident_bytes for each in cluster.usages())
                memory.add(cluster.side, resident / MEGABYTE)
    found = [*classic.rows(), *diskless.rows(), memory]
    return found if plan.quick else [*found, *_synced(plan)]


def _turns(plan: Plan, sides: Sequence[str]) -> list[tuple[int, str]]:
    """Round and side; rounds below 0 are the warm-up, which ``--quick`` leaves out."""
    warm_ups = 0 if plan.quick else WARM_UPS
    return [*((-left, side) for left in range(warm_ups, 0, -1) for side in sides),
            *plan.turns(sides)]  # fmt: skip


def _diskless_rows(note: str) -> Rows:
    kind = "diskless here, 3 replicas there"
    return Rows(kind, DISKLESS_GOAL, BETWEEN_GOAL, note)


def _synced(plan: Plan) -> Sequence[Figure]:
    """Nothing is acknowledged before it is on disk."""
    rows = _diskless_rows(SYNCED_NOTE)
    with _clusters(plan, {}, SYNCED) as clusters:
        for number, side in _turns(plan, tuple(clusters)):
            plan.say(f"three nodes with syncs, round {number + 1}, {side}")
            run = _produce(plan, clusters[side], f"{side}-{number}", diskless=side == "skylog")
            if number >= 0:
                rows.add(side, run)
    return rows.rows()


@contextlib.contextmanager
def _clusters(
    plan: Plan, ours: Mapping[str, str], theirs: Mapping[str, str]
) -> Iterator[dict[str, Three]]:
    with Three("skylog", settings=ours) as skylog, Three("kafka", plan.classpath, theirs) as kafka:
        yield {"skylog": skylog, "kafka": kafka}


def _produce(plan: Plan, cluster: Three, topic: str, *, diskless: bool) -> Run:
    topics = clients.Topics(cluster.bootstrap)
    if diskless:
        topics.create([topic], PARTITIONS, **DISKLESS)
    else:
        topics.create([topic], PARTITIONS, NODES)
    cluster.wait_in_sync()
    os.sync()  # neither side pays for the other's dirty pages
    before = cluster.cpu_seconds()
    with Between(cluster.peer_ports) as between:
        done = clients.librdkafka("produce", cluster.bootstrap, topic, plan.records, PARTITIONS)
    cpu_seconds = cluster.cpu_seconds() - before
    topics.delete([topic])
    size = plan.records * clients.RECORD_BYTES
    return Run(done["mb_per_second"], cpu_seconds / (size / GIGABYTE), between.total / size)
