"""Copying segments to the store: its speed and CPU, and what producers and the tail notice of it.

"Behind" are topics whose segments were rolled while copying was disabled; it is then enabled.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench import clients
from bench.clusters import Cluster
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal, await_idle, usage
from bench.plan import Plan
from bench.three import wait_until
from bench.tiered import (
    COPIED_SECONDS_MAX,
    GONE,
    REMOTE,
    SEGMENT_BYTES,
    TASK_INTERVAL,
    both_tiered,
    fill,
    records_of,
    remote_bytes,
)

BEHIND_PARTITIONS = 16
SPEED_GOAL = Goal(1.0, higher_is_better=True)
CPU_GOAL = Goal(0.7)
PRODUCE_GOAL = Goal(1.2, ratio=False)
TAIL_GOAL = Goal(1.5, ratio=False)
# Small, so that one is rolled and copied every second.
SMALL_SEGMENT = {"segment.bytes": str(16 << 20)}
POLL_SECONDS = 0.01


def copy(plan: Plan) -> list[Figure]:
    """Segments of 16 partitions that wait for being copied."""
    what = f"{BEHIND_PARTITIONS} partitions behind"
    note = ", ".join(f"{key}={value}" for key, value in TASK_INTERVAL.items())
    rate = Figure(f"copy, {what}", "MB/s", SPEED_GOAL, note=f"{note}; from the first byte")
    cpu = Figure(f"broker CPU, copy, {what}", "s/GB", CPU_GOAL)
    with both_tiered(plan) as clusters:
        for number, side in [*((-1, side) for side in clusters), *plan.turns()]:
            plan.say(f"tiered copy, round {number + 1}, {side}")
            seconds, cpu_seconds, size = _copied(plan, clusters[side], f"behind-{number}")
            if number >= 0:
                rate.add(side, size / seconds / MEGABYTE)
                cpu.add(side, cpu_seconds / (size / GIGABYTE))
    return [rate, cpu]


def _copied(plan: Plan, cluster: Cluster, topic: str) -> tuple[float, float, int]:
    """Seconds, CPU and bytes of copying all rolled segments of a topic."""
    topics = clients.Topics(cluster.bootstrap)
    off = {"remote.log.copy.disable": "true"}
    topics.create([topic], BEHIND_PARTITIONS, **REMOTE, **off)
    records = max(plan.tiered_bytes, 5 * BEHIND_PARTITIONS * SEGMENT_BYTES // 4)
    records //= clients.RECORD_BYTES
    clients.librdkafka("produce", cluster.bootstrap, topic, records, BEHIND_PARTITIONS)
    size = _rolled_bytes(cluster, topic)
    os.sync()
    await_idle(cluster.pid)
    alter(cluster, topic, "remote.log.copy.disable", "false")
    wait_until("the first byte", lambda: remote_bytes(cluster, topic) > 0)
    began, before = time.perf_counter(), usage(cluster.pid)
    while remote_bytes(cluster, topic) < size:
        if time.perf_counter() - began > COPIED_SECONDS_MAX:
            raise RuntimeError(f"{cluster.name}: {remote_bytes(cluster, topic)} of {size} bytes")
        time.sleep(POLL_SECONDS)
    done = time.perf_counter() - began, usage(cluster.pid).cpu_seconds - before.cpu_seconds, size
    topics.delete([topic])
    wait_until("the topic's segments are deleted", lambda: remote_bytes(cluster, topic) == 0)
    return done


def _rolled_bytes(cluster: Cluster, topic: str) -> int:
    total = 0
    for index in range(BEHIND_PARTITIONS):
        files = sorted((cluster.directory / "data" / f"{topic}-{index}").glob("*.log"))
        total += sum(path.stat().st_size for path in files[:-1])
    return total


def alter(cluster: Cluster, topic: str, name: str, value: str) -> None:
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def latency(plan: Plan) -> list[Figure]:
    """What others notice: producers while segments are copied, the tail beside a remote reader."""
    note = "librdkafka, linger.ms=0, records of 10 kB"
    produce = {
        True: Figure("p99 of acks at 20 MB/s while copying", "ms", None, note=note),
        False: Figure("p99 of acks at 20 MB/s without tiering", "ms", None, note=note),
    }
    tail = {
        True: Figure("tail p99 at 1,000 records/s beside a remote reader", "ms", None),
        False: Figure("tail p99 at 1,000 records/s alone", "ms", None),
    }
    worse = Figure("p99 of acks, copying by without", "×", PRODUCE_GOAL)
    slower = Figure("tail p99, beside a remote reader by alone", "×", TAIL_GOAL)
    with both_tiered(plan) as clusters:
        for cluster in clusters.values():
            fill(cluster, "remote", plan.tiered_bytes // 4)
        for number, side in [*((-1, side) for side in clusters), *plan.turns()]:
            plan.say(f"tiered latency, round {number + 1}, {side}")
            cluster = clusters[side]
            acks = {kind: _acks(plan, cluster, number, copying=kind) for kind in (False, True)}
            tails = {kind: _tail(plan, cluster, number, beside=kind) for kind in (False, True)}
            if number >= 0:
                for kind in (False, True):
                    produce[kind].add(side, acks[kind])
                    tail[kind].add(side, tails[kind])
                worse.add(side, acks[True] / acks[False])
                slower.add(side, tails[True] / tails[False])
    return [*produce.values(), worse, *tail.values(), slower]


def _acks(plan: Plan, cluster: Cluster, number: int, *, copying: bool) -> float:
    topic = f"acks-{copying}-{number}"
    configs = {**REMOTE, **GONE, **SMALL_SEGMENT} if copying else SMALL_SEGMENT
    clients.Topics(cluster.bootstrap).create([topic], 1, **configs)
    os.sync()
    count = 2 * plan.latency_records
    found = clients.librdkafka("acks-fast", cluster.bootstrap, topic, count, 1)["p99_ms"]
    clients.Topics(cluster.bootstrap).delete([topic])
    return found


def _tail(plan: Plan, cluster: Cluster, number: int, *, beside: bool) -> float:
    topic = f"tail-{beside}-{number}"
    clients.Topics(cluster.bootstrap).create([topic])
    with _reader(plan, cluster) if beside else contextlib.nullcontext():
        found = clients.librdkafka("latency", cluster.bootstrap, topic, plan.latency_records)
    clients.Topics(cluster.bootstrap).delete([topic])
    return found["p99_ms"]


@contextlib.contextmanager
def _reader(plan: Plan, cluster: Cluster) -> Iterator[None]:
    """Reads the remote topic again and again. Its own use of the cores weighs less (nice 19)."""
    over = threading.Event()
    count = records_of(plan.tiered_bytes // 4)

    def loop() -> None:
        while not over.is_set():
            clients.librdkafka("consume-eagerly", cluster.bootstrap, "remote", count, niceness=19)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
