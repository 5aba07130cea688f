"""Kafka's Java producer on diskless topics: compared with Apache Kafka, and over a slow store.

With its defaults this producer has five requests in flight, of one 16 KiB batch for each partition,
so the latency of acknowledgements limits its throughput.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench import clients
from bench.clusters import Skylog
from bench.diskless import (
    AT_LEAST_KAFKA,
    CPU_GOAL,
    FILES,
    PRODUCE_REQUESTS,
    Pair,
    clusters_of,
    create,
    metrics,
    turns,
)
from bench.measure import GIGABYTE, Figure, spent
from bench.plan import Plan

DEFAULTS: Mapping[str, str] = {}
LARGE: Mapping[str, str] = {"batch.size": "65536"}
BATCH_BYTES = {"defaults": 16_384, "batch.size=65536": 65_536}
IN_FLIGHT = 5
CELLS = (
    ("defaults", DEFAULTS, 1),
    ("defaults", DEFAULTS, 16),
    ("batch.size=65536", LARGE, 1),
    ("batch.size=65536", LARGE, 16),
)
QUICK_CELLS = CELLS[0], CELLS[3]
INTERVAL_MS = 250
ADAPTIVE, FIXED = "adaptive", f"fixed {INTERVAL_MS} ms"
MODES: Mapping[str, Mapping[str, str]] = {
    ADAPTIVE: {},
    FIXED: {"diskless.produce.adaptive": "false"},
}
PUT_MS = (50, 100)
# The least that a round trip takes besides the upload.
OVERHEAD_MS = 10


def java(plan: Plan) -> list[Figure]:
    """Compared with Kafka, then over a slow store."""
    return [*_beside_kafka(plan), *_slow_store(plan)]


def _beside_kafka(plan: Plan) -> list[Figure]:
    rates, cpu = {}, {}
    cells = _cells(plan)
    for cell in cells:
        what = f"Java, {cell[0]}, {_partitions(cell[2])}"
        rates[what] = Pair(f"diskless produce, {what}", "MB/s", AT_LEAST_KAFKA)
        cpu[what] = Pair(f"broker CPU, {what}", "s/GB", CPU_GOAL)
    gigabytes = plan.java_records * clients.RECORD_BYTES / GIGABYTE
    with clusters_of(plan) as clusters:
        for number, side in turns(plan, tuple(clusters)):
            plan.say(f"diskless, Java producer, round {number + 1}, {side}")
            cluster = clusters[side]
            for at, (what, (_, settings, partitions)) in enumerate(zip(rates, cells, strict=True)):
                if number < 0 and at != len(cells) - 1:
                    continue  # one run is enough as a warm-up
                topic = f"java-{at}-{number}"
                create(cluster, topic, partitions)
                os.sync()
                done: list[float] = []
                took = spent(
                    cluster.pid,
                    lambda cluster=cluster, topic=topic, settings=settings, done=done: done.append(  # type: ignore[misc]
                        clients.java_produce(
                            plan.classpath, cluster.bootstrap, topic, plan.java_records, settings
                        )
                    ),
                )
                clients.Topics(cluster.bootstrap).delete([topic])
                if number >= 0:
                    rates[what].add(side, done[0])
                    cpu[what].add(side, took.cpu_seconds / gigabytes)
    pairs = [*rates.values(), *cpu.values()]
    return [figure for pair in pairs for figure in pair.rows()]


@dataclass(slots=True)
class _Cell:
    """One row of a slow store."""

    figure: Figure
    requests: list[float] = field(default_factory=list)
    puts: list[float] = field(default_factory=list)

    def row(self) -> Figure:
        requests, puts = statistics.median(self.requests), statistics.median(self.puts)
        self.figure.note = f"{requests:,.0f} requests/s, {puts:,.1f} PUTs/s"
        return self.figure


def _slow_store(plan: Plan) -> list[Figure]:
    """Throughput, requests and uploads per second when a put takes as long as in a bucket."""
    rows: dict[tuple[int, str, str, int], _Cell] = {}
    cells = _cells(plan)
    for put_ms in PUT_MS[:1] if plan.quick else PUT_MS:
        for name, _, partitions in cells:
            for mode in MODES:
                what = f"Java, {name}, {_partitions(partitions)}, puts of {put_ms} ms, {mode}"
                rows[put_ms, mode, name, partitions] = _Cell(Figure(what, "MB/s", None))
    clusters = {(put_ms, mode): None for put_ms, mode, _, _ in rows}
    for put_ms, mode in clusters:
        with Skylog(MODES[mode], put_ms) as cluster:
            for number in range(plan.rounds):
                plan.say(f"diskless, Java producer, puts of {put_ms} ms, {mode}, {number + 1}")
                for name, settings, partitions in cells:
                    cell = rows[put_ms, mode, name, partitions]
                    wait_ms = put_ms + OVERHEAD_MS + (INTERVAL_MS if mode == FIXED else 0)
                    window = IN_FLIGHT * BATCH_BYTES[name] * partitions
                    size = window * plan.slow_seconds * 1000 / wait_ms
                    topic = f"java-{BATCH_BYTES[name]}-{partitions}-{number}"
                    create(cluster, topic, partitions)
                    count = int(size) // clients.RECORD_BYTES
                    _measure(plan, cluster, topic, count, settings, cell)
    return [cell.row() for cell in rows.values()]


def _measure(
    plan: Plan,
    cluster: Skylog,
    topic: str,
    count: int,
    settings: Mapping[str, str],
    cell: _Cell,
) -> None:
    before, began = metrics(cluster), time.perf_counter()
    rate = clients.java_produce(plan.classpath, cluster.bootstrap, topic, count, settings)
    # The tool is slow to start; it reports the time of sending itself.
    seconds = min(count * clients.RECORD_BYTES / 1e6 / rate, time.perf_counter() - began)
    after = metrics(cluster)
    cell.figure.add("skylog", rate)
    cell.requests.append((after[PRODUCE_REQUESTS] - before.get(PRODUCE_REQUESTS, 0)) / seconds)
    cell.puts.append((after[FILES] - before[FILES]) / seconds)


def _cells(plan: Plan) -> tuple[tuple[str, Mapping[str, str], int], ...]:
    return QUICK_CELLS if plan.quick else CELLS


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
