"""Diskless topics beside Kafka's classic ones: speed, CPU, latency, memory, uploads and reads.

Objects lie in a directory on the same disk as Kafka's logs, so both sides wait for one disk; unlike
Kafka, which answers from the page cache, every acknowledgement here has waited for a sync.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import random
import re
import statistics
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import clients, coordinator
from bench.clusters import Cluster, Kafka, Skylog
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal, spent, usage
from bench.plan import Plan
from skylog.diskless.coordinator import requests as ask

PARTITIONS = 16
DISKLESS = {"diskless.enable": "true"}
FIXED = {"diskless.produce.adaptive": "false"}
# Consumers that read what one producer writes.
GROUPS = 3
AT_LEAST_KAFKA = Goal(1.0, higher_is_better=True)
CPU_GOAL = Goal(1.0)
MEMORY_GOAL = Goal(400, ratio=False)
# An acknowledgement with adaptive closing, and with a fixed interval of 250 ms.
ADAPTIVE_GOAL = Goal(20, ratio=False)
FIXED_GOAL = Goal(300, ratio=False)
# Objects of 4 MiB; what this broker wrote it does not read.
PUTS_GOAL = Goal(0.25, ratio=False)
GETS_GOAL = Goal(0, ratio=False)
BATCHES_GOAL = Goal(20_000, higher_is_better=True, ratio=False)
FIND_GOAL = Goal(5, ratio=False)
# What a bucket is given by default: as many uploads a second as the interval would make.
BUCKET_BUDGET = {"diskless.produce.puts.per.second": "4"}
COMMITTED_FILES = 1_000
FILES = "skylog_diskless_writer_files_total"
GETS = "skylog_diskless_reader_gets_total"
_METRIC = re.compile(r"^(\w+)(?:\{[^}]*\})? ([\d.e+-]+)$", re.MULTILINE)


def metrics(cluster: Skylog) -> Mapping[str, float]:
    """The node's counters; those with labels are added up."""
    with urllib.request.urlopen(cluster.metrics_url, timeout=30) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in _METRIC.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


@contextlib.contextmanager
def both(plan: Plan, settings: Mapping[str, str] | None = None) -> Iterator[dict[str, Cluster]]:
    with Skylog(settings) as skylog, Kafka(plan.classpath) as kafka:
        yield {"skylog": skylog, "kafka": kafka}


def _create(cluster: Cluster, topic: str) -> None:
    configs = DISKLESS if isinstance(cluster, Skylog) else {}
    clients.Topics(cluster.bootstrap).create([topic], PARTITIONS, **configs)


def diskless(plan: Plan) -> list[Figure]:
    """All rows."""
    return [*throughput(plan), *latency(plan), *requests(plan), *commits(plan)]


def throughput(plan: Plan) -> list[Figure]:
    """Produce and consume with both clients."""
    runs: dict[str, Callable[[Cluster, str], float]] = {}
    for client in ("librdkafka", "Java"):
        for role in ("produce", "consume"):
            runs[f"{role}, {client}"] = _run(plan, client, role)
    note = f"{PARTITIONS} partitions; Kafka's topic is a classic one"
    rates = {name: Figure(f"diskless {name}", "MB/s", AT_LEAST_KAFKA, note=note) for name in runs}
    cpu = {name: Figure(f"broker CPU, diskless {name}", "s/GB", CPU_GOAL) for name in runs}
    memory = Figure("resident memory after diskless rounds", "MB", MEMORY_GOAL)
    gigabytes = plan.records * clients.RECORD_BYTES / GIGABYTE
    with both(plan) as clusters:
        for number, side in [(-1, "skylog"), (-1, "kafka"), *plan.turns()]:
            plan.say(f"diskless throughput, round {number + 1}, {side}")
            cluster = clusters[side]
            for client in ("librdkafka", "Java"):
                _create(cluster, f"{client}-{number}")
            for name, run in runs.items():
                rate: list[float] = []
                topic = f"{name.split(', ')[1]}-{number}"
                took = spent(cluster.pid, lambda: rate.append(run(cluster, topic)))  # noqa: B023
                if number >= 0:
                    rates[name].add(side, rate[0])
                    cpu[name].add(side, took.cpu_seconds / gigabytes)
            if number >= 0:
                memory.add(side, usage(cluster.pid).resident_bytes / MEGABYTE)
    return [*rates.values(), *cpu.values(), memory]


def _run(plan: Plan, client: str, role: str) -> Callable[[Cluster, str], float]:
    """MB/s of one run of one client."""

    def librdkafka(cluster: Cluster, topic: str) -> float:
        done = clients.librdkafka(role, cluster.bootstrap, topic, plan.records, PARTITIONS)
        return done["mb_per_second"]

    def java(cluster: Cluster, topic: str) -> float:
        tool = clients.java_produce if role == "produce" else clients.java_consume
        return tool(plan.classpath, cluster.bootstrap, topic, plan.records)

    return librdkafka if client == "librdkafka" else java


def latency(plan: Plan) -> list[Figure]:
    """Acknowledgements at a steady 1,000 records a second, from when a record was due."""
    figures = []
    for name, settings, goal in (
        ("adaptive", {}, ADAPTIVE_GOAL),
        ("fixed 250 ms", FIXED, FIXED_GOAL),
    ):
        p50 = Figure(f"median of diskless acknowledgements, {name}", "ms", goal)
        p99 = Figure(f"p99 of diskless acknowledgements, {name}", "ms", goal)
        with both(plan, settings) as clusters:
            for number, side in [(-1, "skylog"), (-1, "kafka"), *plan.turns()]:
                plan.say(f"diskless latency, {name}, round {number + 1}, {side}")
                topic = f"latency-{number}"
                _create(clusters[side], topic)
                done = clients.librdkafka(
                    "acks", clusters[side].bootstrap, topic, plan.latency_records, PARTITIONS
                )
                if number >= 0:
                    p50.add(side, done["p50_ms"])
                    p99.add(side, done["p99_ms"])
        figures += [p50, p99]
    return figures


def requests(plan: Plan) -> list[Figure]:
    """What the store is asked for when three consumers read what was just written."""
    note = ", ".join(f"{key}={value}" for key, value in BUCKET_BUDGET.items())
    puts = Figure("uploads", "per MiB", PUTS_GOAL, note=note)
    gets = Figure("reads of objects, three consumers", "per object", GETS_GOAL, note=note)
    mebibytes = plan.records * clients.RECORD_BYTES / clients.MEBIBYTE
    with Skylog(BUCKET_BUDGET) as cluster:
        for number in range(plan.rounds):
            plan.say(f"diskless requests, round {number + 1}")
            topic = f"requests-{number}"
            _create(cluster, topic)
            before = metrics(cluster)
            consumers = concurrent.futures.ThreadPoolExecutor(GROUPS)
            arguments = (cluster.bootstrap, topic, plan.records, PARTITIONS)
            with consumers:
                reading = [
                    consumers.submit(clients.librdkafka, "consume", *arguments)
                    for _ in range(GROUPS)
                ]
                clients.librdkafka("produce", *arguments)
            for one in reading:
                one.result()
            after = metrics(cluster)
            files = after[FILES] - before[FILES]
            puts.add("skylog", files / mebibytes)
            gets.add("skylog", (after[GETS] - before[GETS]) / files)
    return [puts, gets]


def commits(plan: Plan) -> list[Figure]:
    """A coordinator alone, over a real log and cache."""
    note = f"{coordinator.IN_FLIGHT} at a time"
    size = coordinator.BATCHES_PER_FILE
    rate = Figure(f"batches committed, {size} in a file", "1/s", BATCHES_GOAL, note=note)
    find = Figure("finding batches, p99", "ms", FIND_GOAL)
    for number in range(plan.rounds):
        plan.say(f"diskless commits, round {number + 1}")
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            per_second, times = asyncio.run(_commit(Path(directory)))
        rate.add("skylog", per_second * size)
        find.add("skylog", statistics.quantiles(times, n=100)[98])
    return [rate, find]


async def _commit(directory: Path) -> tuple[float, list[float]]:
    """Commits per second, and the milliseconds of finds afterwards."""
    rng = random.Random(1)
    broker = coordinator.Broker(directory)
    runtime = await broker.lead()
    partitions = range(coordinator.PARTITIONS)
    await runtime.submit(ask.CreatePartitions([(coordinator.TOPIC, "t", partitions)]))
    seconds = await coordinator.commit_all(runtime, coordinator.files(COMMITTED_FILES, rng))
    times = await coordinator.find_all(runtime, COMMITTED_FILES * 10, rng)
    await broker.resign()
    return COMMITTED_FILES / seconds, times
