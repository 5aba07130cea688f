"""Latency of acknowledgements on diskless topics, and the effect of a lagging reader."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping

from bench import clients
from bench.clusters import Cluster, Kafka, Skylog
from bench.diskless import PARTITIONS, create
from bench.diskless_java import ADAPTIVE, FIXED, INTERVAL_MS, MODES
from bench.measure import GIGABYTE, Figure, Goal
from bench.plan import Plan

PUT_MS = (0, 50, 200)
# For the local store: adaptive, and a fifth more than the fixed interval.
GOALS: Mapping[str, Goal] = {
    ADAPTIVE: Goal(20, ratio=False),
    FIXED: Goal(1.2 * INTERVAL_MS, ratio=False),
}
LAG_GOAL = Goal(1.5, ratio=False)
# The lagging client yields to all others: the broker is measured, not the scheduler.
LAGGING_NICENESS = 19


def latency(plan: Plan) -> list[Figure]:
    """Acknowledgements at a steady 1,000 records a second, from the time when a record was due."""
    figures: list[Figure] = []
    with contextlib.ExitStack() as stack:
        kafka = None if plan.quick else stack.enter_context(Kafka(plan.classpath))
        for put_ms in PUT_MS:
            for mode, settings in MODES.items():
                goal = None if put_ms else GOALS[mode]
                name = f"diskless acknowledgements, puts of {put_ms} ms, {mode}"
                rows = Figure(f"median of {name}", "ms", goal), Figure(f"p99 of {name}", "ms", goal)
                with Skylog(settings, put_ms or None) as skylog:
                    sides: dict[str, Cluster] = {"skylog": skylog}
                    if kafka is not None and mode == ADAPTIVE and not put_ms:
                        sides["kafka"] = kafka
                    _acknowledgements(plan, f"{put_ms} ms, {mode}", sides, rows)
                figures += rows
    return figures


def _acknowledgements(
    plan: Plan, name: str, sides: Mapping[str, Cluster], rows: tuple[Figure, Figure]
) -> None:
    for number, side in plan.turns(tuple(sides)):
        plan.say(f"diskless acknowledgements, {name}, round {number + 1}, {side}")
        topic, cluster = f"latency-{number}", sides[side]
        create(cluster, topic)
        # The first fifth is a warm-up and not counted.
        count = plan.latency_records // 2
        done = clients.librdkafka("acks", cluster.bootstrap, topic, count, PARTITIONS)
        rows[0].add(side, done["p50_ms"])
        rows[1].add(side, done["p99_ms"])


def lagging(plan: Plan) -> list[Figure]:
    """End-to-end latency of the tail, alone and beside a lagging reader."""
    behind = f"{plan.lag_records * clients.RECORD_BYTES / GIGABYTE:.1f} GB"
    alone = Figure("p99 end to end, diskless", "ms", None)
    beside = Figure(f"p99 end to end, diskless, beside a reader {behind} behind", "ms", None)
    ratio = Figure(f"p99 beside a reader {behind} behind by p99 alone", "×", LAG_GOAL)
    note = f"the lagging client runs with nice {LAGGING_NICENESS}"
    beside.note = ratio.note = note
    with Skylog() as cluster:
        plan.say(f"diskless, {behind} for a lagging reader")
        create(cluster, "old")
        clients.librdkafka("produce", cluster.bootstrap, "old", plan.lag_records, PARTITIONS)
        for number in range(plan.rounds):
            plan.say(f"diskless, lagging reader, round {number + 1}")
            values = {}
            for lag in (False, True):
                topic = f"tail-{number}-{lag}"
                create(cluster, topic)
                values[lag] = _tail(plan, cluster, topic, lag=lag)
            alone.add("skylog", values[False])
            beside.add("skylog", values[True])
            ratio.add("skylog", values[True] / values[False])
    return [alone, beside, ratio]


def _tail(plan: Plan, cluster: Cluster, topic: str, *, lag: bool) -> float:
    """p99 of the tail's reader, while the lagging one reads the old data again and again."""
    over = threading.Event()

    def read_old() -> None:
        while not over.is_set():
            clients.librdkafka(
                "consume-eagerly", cluster.bootstrap, "old", plan.lag_records, PARTITIONS,
                niceness=LAGGING_NICENESS,
            )  # fmt: skip

    reader = threading.Thread(target=read_old)
    if lag:
        reader.start()
    try:
        count = plan.latency_records // 2
        return clients.librdkafka("latency", cluster.bootstrap, topic, count, PARTITIONS)["p99_ms"]
    finally:
        over.set()
        if lag:
            reader.join()
