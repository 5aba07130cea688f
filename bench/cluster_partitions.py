"""10,000 diskless partitions on three nodes of skylog: the cost of creating and of having them.

Kafka is left out: 10,000 classic partitions with three replicas are 30,000 logs here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bench import clients
from bench.clusters import Cluster
from bench.diskless import DISKLESS
from bench.measure import MEGABYTE, Figure, Goal
from bench.plan import Plan
from bench.three import Three, wait_until

TOPICS, QUICK_TOPICS = 10, 2
PARTITIONS_PER_TOPIC = 1_000
IDLE_GOAL = Goal(5, ratio=False)
SETTLE_SECONDS_MAX = 60.0
QUIET_CPU_SECONDS = 0.15
SNAPSHOT_AFTER_MS = "1000"
LOG_DIRECTORY = "__cluster_metadata-0"


def partitions(plan: Plan) -> list[Figure]:
    """Creation, size of metadata, CPU and memory when idle, and a restart; one round."""
    names = [f"topic-{number:02}" for number in range(QUICK_TOPICS if plan.quick else TOPICS)]
    count = f"{len(names) * PARTITIONS_PER_TOPIC:,} diskless partitions"
    created = Figure(f"creating {count}", "s", None, note="until all three nodes show them all")
    with Three("skylog") as cluster:
        _create(cluster, ["first"], 1)
        before = _idle(plan, cluster)
        log_before = _size(cluster.nodes, "log")
        plan.say(f"{count} on three nodes")
        started = time.perf_counter()
        _create(cluster, names, PARTITIONS_PER_TOPIC)
        created.add("skylog", time.perf_counter() - started)
        for name in names:
            _produce(cluster, name, PARTITIONS_PER_TOPIC - 1)
        idle = _idle_figures(count, before, _idle(plan, cluster))
        memory = Figure(f"resident memory of a broker, {count}", "MB", None)
        memory.add("skylog", max(each.resident_bytes for each in cluster.usages()) / MEGABYTE)
        log = Figure(f"metadata log, {count}", "MB", None)
        log.add("skylog", (_size(cluster.nodes, "log") - log_before) / MEGABYTE)
        restarted = Figure(f"restart of a broker, {count}", "s", None, note="until it serves them")
        snapshot = Figure(f"metadata snapshot, {count}", "MB", None)
        restarted.add("skylog", _restart_with_snapshots(cluster))
        snapshot.add("skylog", _size(cluster.nodes[:1], "checkpoint") / MEGABYTE)
    return [created, log, snapshot, *idle, memory, restarted]


def _create(cluster: Three, names: Sequence[str], count: int) -> None:
    """Create one topic after the other, and wait until every node knows all leaders."""
    topics = clients.Topics(cluster.bootstrap)
    for name in names:
        topics.create([name], count, **DISKLESS)
    for node in cluster.nodes:
        _wait_shown(node, names, count)


def _wait_shown(node: Cluster, names: Sequence[str], count: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})

    def shown() -> bool:
        found = admin.list_topics(timeout=60).topics
        return all(
            name in found
            and len(found[name].partitions) == count
            and all(each.leader > 0 for each in found[name].partitions.values())
            for name in names
        )

    wait_until(f"{node.name} shows {len(names)} topics", shown)


def _produce(cluster: Three, topic: str, partition: int) -> None:
    """Check that one of them takes a record."""
    outcome: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    producer.produce(
        topic, b"first", partition=partition, on_delivery=lambda error, _: outcome.append(error)
    )
    producer.flush(60)
    if outcome != [None]:
        raise RuntimeError(f"{topic}-{partition} did not take a record: {outcome}")


def _idle(plan: Plan, cluster: Three) -> list[float]:
    """Percent of a core for each node, once earlier work is done."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while time.monotonic() < deadline:
        before = cluster.cpu_seconds()
        time.sleep(1)
        if cluster.cpu_seconds() - before < QUIET_CPU_SECONDS:
            break
    befores, started = cluster.usages(), time.perf_counter()
    time.sleep(2 * plan.idle_seconds)
    seconds = time.perf_counter() - started
    return [
        (after.cpu_seconds - before.cpu_seconds) / seconds * 100
        for before, after in zip(befores, cluster.usages(), strict=True)
    ]


def _idle_figures(count: str, before: Sequence[float], after: Sequence[float]) -> list[Figure]:
    """Of the busiest node, usually the active controller, and what the partitions added."""
    unit = "% of a core"
    empty = Figure("idle CPU of the busiest of three nodes, one topic", unit, None)
    full = Figure(f"idle CPU of the busiest of three nodes, {count}", unit, None)
    added = Figure(f"idle CPU that {count} add, by node", unit, IDLE_GOAL)
    empty.add("skylog", max(before))
    full.add("skylog", max(after))
    for less, more in zip(before, after, strict=True):
        added.add("skylog", max(more - less, 0.0))
    return [empty, full, added]


def _restart_with_snapshots(cluster: Three) -> float:
    """Seconds until a restarted node serves; it then writes a snapshot."""
    node = cluster.nodes[0]
    node.end()
    node.settings["metadata.log.max.snapshot.interval.ms"] = SNAPSHOT_AFTER_MS
    known = _newest_size(node, "checkpoint")
    started = time.perf_counter()
    cluster.start([node])
    seconds = time.perf_counter() - started
    wait_until("a snapshot", lambda: _newest_size(node, "checkpoint") > known)
    return seconds


def _size(nodes: Sequence[Cluster], kind: str) -> int:
    return max(_newest_size(node, kind) for node in nodes)


def _newest_size(node: Cluster, kind: str) -> int:
    """Bytes of the newest file of its kind in a node's metadata log."""
    found = sorted(Path(node.directory, "data", LOG_DIRECTORY).glob(f"*.{kind}"))
    return found[-1].stat().st_size if found else 0
