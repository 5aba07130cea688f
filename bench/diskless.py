"""Diskless topics compared with Kafka's classic ones: speed, CPU, memory, uploads, reads, commits.

Objects are stored in a directory on the same disk as Kafka's logs. Both are measured without syncs
and with them: without, as Kafka is shipped, records are acknowledged from the page cache (skylog
still syncs commits); with, as skylog is shipped, only once they are on disk.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import random
import re
import statistics
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import clients, coordinator
from bench.clusters import Cluster, Kafka, Skylog
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal, spent, usage
from bench.plan import Plan
from skylog.diskless.coordinator import requests as ask

PARTITIONS = 16
DISKLESS = {"diskless.enable": "true"}
SYNCED = {"log.flush.interval.messages": "1"}
# The settings of each kind of row.
UNSYNCED = {"diskless.storage.file.sync": "false"}
SHIPPED_NOTE = "Kafka as shipped; diskless.storage.file.sync=false"
SYNCED_NOTE = "skylog as shipped; log.flush.interval.messages=1"
# Consumers that read the records of one producer.
GROUPS = 3
AT_LEAST_KAFKA = Goal(1.0, higher_is_better=True)
CPU_GOAL = Goal(0.8)
MEMORY_GOAL = Goal(400, ratio=False)
# Objects of 4 MiB. A broker reads none that it wrote, and others once.
PUTS_GOAL = Goal(0.25, ratio=False)
OWN_GETS_GOAL = Goal(0, ratio=False)
OTHER_GETS_GOAL = Goal(1, ratio=False)
BATCHES_GOAL = Goal(20_000, higher_is_better=True, ratio=False)
FIND_GOAL = Goal(5, ratio=False)
# The default for buckets: as many uploads a second as the interval would make.
BUCKET_BUDGET = {"diskless.produce.puts.per.second": "4"}
# As many records as the broker's cache of 128 MiB holds.
CACHED_RECORDS = 100_000
COMMITTED_FILES = 1_000
FILES = "skylog_diskless_writer_files_total"
GETS = "skylog_diskless_reader_gets_total"
PRODUCE_REQUESTS = 'skylog_requests_total{api="PRODUCE"}'
_METRIC = re.compile(r"^(\w+)(\{[^}]*\})? ([\d.e+-]+)$", re.MULTILINE)


def metrics(cluster: Skylog) -> Mapping[str, float]:
    """The node's counters; those with labels singly and as a sum."""
    with urllib.request.urlopen(cluster.metrics_url, timeout=30) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, labels, value in _METRIC.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
        if labels:
            found[name + labels] = float(value)
    return found


@contextlib.contextmanager
def clusters_of(plan: Plan) -> Iterator[dict[str, Cluster]]:
    """skylog and Kafka, without syncs and with them; with ``--quick`` only without."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Cluster] = {
            "skylog": stack.enter_context(Skylog(UNSYNCED)),
            "kafka": stack.enter_context(Kafka(plan.classpath)),
        }
        if not plan.quick:
            found["synced skylog"] = stack.enter_context(Skylog())
            found["synced kafka"] = stack.enter_context(Kafka(plan.classpath, SYNCED))
        yield found


class Pair:
    """One row without syncs and one with them."""

    def __init__(self, what: str, unit: str, goal: Goal, note: str = "") -> None:
        more = f"; {note}" if note else ""
        self._shipped = Figure(what, unit, goal, note=SHIPPED_NOTE + more)
        self._synced = Figure(what, unit, goal, note=SYNCED_NOTE + more)

    def add(self, side: str, value: float) -> None:
        figure = self._synced if side.startswith("synced ") else self._shipped
        figure.add(side.removeprefix("synced "), value)

    def rows(self) -> list[Figure]:
        return [figure for figure in (self._shipped, self._synced) if figure.kafka]


def create(cluster: Cluster, topic: str, partitions: int = PARTITIONS) -> None:
    """A diskless topic on skylog, a classic one on Kafka."""
    configs = DISKLESS if isinstance(cluster, Skylog) else {}
    clients.Topics(cluster.bootstrap).create([topic], partitions, **configs)


def turns(plan: Plan, sides: Sequence[str]) -> list[tuple[int, str]]:
    """Round and side; each side has a warm-up round, which ``--quick`` leaves out."""
    warm_up = [] if plan.quick else [(-1, side) for side in sides]
    return [*warm_up, *plan.turns(sides)]


def throughput(plan: Plan) -> list[Figure]:
    """Produce and consume with librdkafka: speed, CPU and memory."""
    rates, cpu = {}, {}
    for role in ("produce", "consume-eagerly"):
        what = f"diskless {role.partition('-')[0]}, librdkafka, {PARTITIONS} partitions"
        note = clients.EAGER_NOTE if "-" in role else ""
        rates[role] = Pair(what, "MB/s", AT_LEAST_KAFKA, note)
        cpu[role] = Pair(f"broker CPU, {what}", "s/GB", CPU_GOAL, note)
    memory = Figure("resident memory after diskless rounds", "MB", MEMORY_GOAL)
    gigabytes = plan.records * clients.RECORD_BYTES / GIGABYTE
    with clusters_of(plan) as clusters:
        for number, side in turns(plan, tuple(clusters)):
            plan.say(f"diskless throughput, round {number + 1}, {side}")
            cluster, topic = clusters[side], f"round-{number}"
            create(cluster, topic)
            os.sync()  # neither side pays for the other's dirty pages
            for role, rate in rates.items():
                done: list[float] = []
                took = spent(
                    cluster.pid,
                    lambda role=role, done=done, cluster=cluster, topic=topic: done.append(  # type: ignore[misc]
                        _mb_per_second(plan, role, cluster, topic)
                    ),
                )
                if number >= 0:
                    rate.add(side, done[0])
                    cpu[role].add(side, took.cpu_seconds / gigabytes)
            if number >= 0 and not side.startswith("synced "):
                memory.add(side, usage(cluster.pid).resident_bytes / MEGABYTE)
            clients.Topics(cluster.bootstrap).delete([topic])
    pairs = [*rates.values(), *cpu.values()]
    return [*(figure for pair in pairs for figure in pair.rows()), memory]


def _mb_per_second(plan: Plan, role: str, cluster: Cluster, topic: str) -> float:
    done = clients.librdkafka(role, cluster.bootstrap, topic, plan.records, PARTITIONS)
    return done["mb_per_second"]


def requests(plan: Plan) -> list[Figure]:
    """Requests to the store: by a producer at full speed, and by consumers of records just written,
    from the broker that wrote them and from another."""
    note = ", ".join(f"{key}={value}" for key, value in BUCKET_BUDGET.items())
    puts = Figure("uploads at saturation", "per MiB", PUTS_GOAL, note=note)
    gigabyte = Figure("uploads at saturation", "per GB", None, note=note)
    size = plan.records * clients.RECORD_BYTES
    reads = [_Reads(plan, records) for records in sorted({CACHED_RECORDS, plan.records})]
    with Skylog(BUCKET_BUDGET, put_ms=0) as cluster:
        for number in range(plan.rounds):
            plan.say(f"diskless requests, round {number + 1}")
            topic = f"saturated-{number}"
            create(cluster, topic)
            before = metrics(cluster)[FILES]
            clients.librdkafka("produce", cluster.bootstrap, topic, plan.records, PARTITIONS)
            files = metrics(cluster)[FILES] - before
            puts.add("skylog", files / (size / clients.MEBIBYTE))
            gigabyte.add("skylog", files / (size / GIGABYTE))
            for one in reads:
                one.measure(cluster, f"read-{one.records}-{number}")
    return [puts, gigabyte, *(figure for one in reads for figure in (one.own, one.other))]


class _Reads:
    """Rows of reading records while they are written, and after a restart."""

    def __init__(self, plan: Plan, records: int) -> None:
        self.records = records
        cached = records <= CACHED_RECORDS
        size = f"{records * clients.RECORD_BYTES / MEGABYTE:.0f} MB by {GROUPS} consumers"
        note = "" if cached else "more than the cache holds"
        self.own = Figure(
            f"reads of objects, {size}, broker that wrote them",
            "per object",
            OWN_GETS_GOAL if cached else None,
            note=note,
        )
        self.other = Figure(
            f"reads of objects, {size}, other broker",
            "per object",
            OTHER_GETS_GOAL if cached else None,
            note=", ".join(filter(None, ["the same one after a restart", note])),
        )

    def measure(self, cluster: Skylog, topic: str) -> None:
        create(cluster, topic)
        before = metrics(cluster)
        self._consume(cluster, topic, produce=True)
        after = metrics(cluster)
        files = after[FILES] - before[FILES]
        self.own.add("skylog", (after[GETS] - before[GETS]) / files)
        cluster.restart()
        self._consume(cluster, topic, produce=False)
        self.other.add("skylog", metrics(cluster)[GETS] / files)

    def _consume(self, cluster: Cluster, topic: str, *, produce: bool) -> None:
        arguments = (cluster.bootstrap, topic, self.records, PARTITIONS)
        with concurrent.futures.ThreadPoolExecutor(GROUPS) as consumers:
            reading = [
                consumers.submit(clients.librdkafka, "consume-eagerly", *arguments)
                for _ in range(GROUPS)
            ]
            if produce:
                clients.librdkafka("produce", *arguments)
        for one in reading:
            one.result()


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
    producers = coordinator.Producers(random.Random(1))
    broker = coordinator.Broker(directory)
    runtime = await broker.lead()
    partitions = range(coordinator.PARTITIONS)
    await runtime.submit(ask.CreatePartitions([(coordinator.TOPIC, "t", partitions)]))
    wanted = producers.files(COMMITTED_FILES)
    gc.freeze()  # a broker does not hold the requests that it will get
    seconds = await coordinator.commit_all(runtime, wanted)
    gc.unfreeze()
    times = await coordinator.find_each(runtime, producers.end_offset, producers.rng)
    await broker.resign()
    return COMMITTED_FILES / seconds, times
