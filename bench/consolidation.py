"""Diskless topics that are consolidated into tiered segments: what it costs, and what stays level.

python -m bench --only consolidation [--quick]; its parts are consolidation-load,
consolidation-level and, with Spark, consolidation-scan and consolidation-job
(``consolidation_spark.py``)

Only skylog is measured, consolidating and not, in turns. Nothing is at hand, as with a bucket, and
for the rows of reads the cache of objects is off, as on a broker that has written none of them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench import clients
from bench.clusters import Skylog
from bench.diskless import DISKLESS, FILES, GETS, metrics
from bench.measure import GIGABYTE, Figure, Goal, await_idle, usage
from bench.plan import Plan
from bench.tiered_copy import alter
from skylog.client.admin import Admin
from skylog.client.cluster import Cluster as Client
from skylog.client.settings import ClientSettings

COUNTS = (16, 1_000)
GETS_GOAL = Goal(1.1, ratio=False)
CPU_GOAL = Goal(0.7, ratio=False)
ACKS_GOAL = Goal(1.1, ratio=False)
# What it is at the end by what it was after a quarter of the time.
LEVEL_GOAL = Goal(1.25, ratio=False)
WAL = "diskless-objects/wal"
ON = {"remote.storage.enable": "true"}
OFF = {"remote.storage.enable": "false"}
LATER = {**ON, "remote.log.copy.disable": "true"}
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "diskless.tiering.default": "false",
}
# As short as a run: what is finished is pruned and deleted at once.
SHORT = {
    "diskless.tiering.prune.interval.ms": "1000",
    "diskless.tiering.prune.delay.ms": "1000",
    "diskless.metadata.backup.interval.ms": "500",
    "diskless.commit.age.max.ms": "2000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "5000",
    "diskless.file.cleaner.interval.ms": "1000",
}
NO_CACHE = {"diskless.fetch.cache.max.bytes": "0"}
SAMPLE_SECONDS = 1.0


def segment_bytes(plan: Plan, partitions: int) -> int:
    """Two segments of each partition during a run, of at most 64 MiB."""
    produced = plan.consolidation_seconds * clients.FASTER_RATE * clients.FAST_RECORD_BYTES
    return min(64 << 20, int(produced / partitions / 2.5))


def load(plan: Plan) -> list[Figure]:
    """50 MB/s into 16 and into 1,000 partitions: reads, CPU, acknowledgements."""
    rows: list[Figure] = []
    for partitions in COUNTS:
        size = f"{partitions:,} partitions"
        note = f"segments of {segment_bytes(plan, partitions):,} bytes"
        gets = Figure(f"reads by WAL object, {size}", "", GETS_GOAL, note="no cache; " + note)
        cpu = Figure(f"broker CPU of consolidation, {size}", "s/GB", CPU_GOAL)
        cpu.note = f"of what was produced before, not in memory; {note}"
        worse = Figure(f"p99 of acks, consolidating by not, {size}", "×", ACKS_GOAL, note=note)
        acks = {
            state: Figure(f"p99 of acks at 50 MB/s, {state}, {size}", "ms", None)
            for state in ("not consolidating", "consolidating")
        }
        rows += [gets, cpu, *acks.values(), worse]
        for number in range(plan.rounds):
            done: dict[str, Run] = {}
            for state in sorted(acks, reverse=number % 2 == 0):
                plan.say(f"{state}, {size}, round {number + 1}")
                configs = ON if state == "consolidating" else OFF
                done[state] = _run(plan, partitions, configs)
                acks[state].add("skylog", done[state].p99_ms)
            worse.add("skylog", done["consolidating"].p99_ms / done["not consolidating"].p99_ms)
            plan.say(f"consolidating what was produced before, {size}, round {number + 1}")
            later = _run(plan, partitions, LATER, NO_CACHE)
            gets.add("skylog", later.gets_per_object)
            cpu.add("skylog", later.cpu_per_gigabyte)
    return rows


@dataclass(frozen=True, slots=True)
class Run:
    """CPU and reads are those of what was consolidated after all was produced, if it was."""

    p99_ms: float
    cpu_per_gigabyte: float
    gets_per_object: float


def _run(
    plan: Plan,
    partitions: int,
    configs: Mapping[str, str],
    settings: Mapping[str, str] | None = None,
) -> Run:
    """A node of its own, so that no run consolidates what another one left."""
    with Skylog({**SETTINGS, **(settings or {})}, put_ms=0) as cluster:
        # segment.bytes is at least 1 MiB.
        size = {"internal.segment.bytes": str(segment_bytes(plan, partitions))}
        given = {**DISKLESS, **configs, **size}
        clients.Topics(cluster.bootstrap).create(["load"], partitions, **given)
        os.sync()
        await_idle(cluster.pid)
        count = int(plan.consolidation_seconds * clients.FASTER_RATE)
        acks = clients.librdkafka("acks-faster", cluster.bootstrap, "load", count, partitions)
        if configs is not LATER:
            return Run(acks["p99_ms"], 0.0, 0.0)
        await_idle(cluster.pid)
        before, cpu = metrics(cluster), usage(cluster.pid).cpu_seconds
        alter(cluster, "load", "remote.log.copy.disable", "false")
        consolidated(cluster, "load")
        after = metrics(cluster)
        cpu = usage(cluster.pid).cpu_seconds - cpu
    gigabytes = count * clients.FAST_RECORD_BYTES / GIGABYTE
    gets = after.get(GETS, 0) - before.get(GETS, 0)
    return Run(acks["p99_ms"], cpu / gigabytes, gets / before[FILES])


@dataclass(slots=True)
class Levels:
    """What is sampled while records are produced."""

    rows: list[int] = field(default_factory=list)
    wal_bytes: list[int] = field(default_factory=list)

    @staticmethod
    def grown(samples: list[int]) -> float:
        """The last quarter by the second one: the first is filling up."""
        quarter = max(len(samples) // 4, 1)
        second = statistics.median(samples[quarter : 2 * quarter] or samples)
        return statistics.median(samples[-quarter:]) / max(second, 1)


def level(plan: Plan) -> list[Figure]:
    """A long run: the coordinators' batches and the bytes of WAL objects do not grow."""
    minutes = f"{plan.consolidation_level_seconds / 60:g} min at 50 MB/s"
    partitions = COUNTS[0]
    note = f"last quarter by second one; {partitions} partitions, segment.bytes=16777216"
    rows = Figure(f"coordinator rows after {minutes}", "×", LEVEL_GOAL, note=note)
    wal = Figure(f"bytes of WAL objects after {minutes}", "×", LEVEL_GOAL, note=note)
    rows_most = Figure(f"most coordinator rows, {minutes}", "", None)
    wal_most = Figure(f"most bytes of WAL objects, {minutes}", "MB", None)
    plan.say(f"consolidation, level, {minutes}")
    with Skylog({**SETTINGS, **SHORT}) as cluster:
        configs = {
            **DISKLESS,
            **ON,
            "segment.bytes": str(16 << 20),
            # The disk of the machine is not endless; WAL objects hold far less than this.
            "retention.bytes": str(256 << 20),
        }
        clients.Topics(cluster.bootstrap).create(["level"], partitions, **configs)
        found = Levels()
        over = threading.Event()
        sampler = threading.Thread(target=_sample, args=(cluster, found, over))
        sampler.start()
        try:
            count = int(plan.consolidation_level_seconds * clients.FASTER_RATE)
            clients.librdkafka(
                *("acks-faster", cluster.bootstrap, "level", count, partitions),
                seconds_max=2 * plan.consolidation_level_seconds + 600,
            )
        finally:
            over.set()
            sampler.join()
    rows.add("skylog", Levels.grown(found.rows))
    wal.add("skylog", Levels.grown(found.wal_bytes))
    rows_most.add("skylog", max(found.rows))
    wal_most.add("skylog", max(found.wal_bytes) / 1_000_000)
    return [rows, wal, rows_most, wal_most]


def _sample(cluster: Skylog, found: Levels, over: threading.Event) -> None:
    directory = cluster.directory / "data" / WAL
    while not over.wait(SAMPLE_SECONDS):
        found.rows.append(coordinator_rows(cluster.bootstrap))
        found.wal_bytes.append(bytes_below(directory))


def coordinator_rows(bootstrap: str) -> int:
    """Batches that the coordinators know."""

    async def ask() -> int:
        client = Client(ClientSettings.of({"bootstrap.servers": bootstrap}))
        try:
            answer = await Admin(client).diskless.describe_any()
        finally:
            await client.close()
        return sum(one.batches for one in answer.coordinators)

    return asyncio.run(ask())


def bytes_below(directory: Path) -> int:
    total = 0
    for path in directory.glob("*/*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # deleted meanwhile
            continue
    return total


def consolidated(cluster: Skylog, topic: str, seconds_max: float = 300.0) -> None:
    """Wait until no more segments of a topic become tiered."""
    name = f'kafka_server_brokertopicmetrics_remotelogsizebytes{{topic="{topic}"}}'
    deadline, before = time.monotonic() + seconds_max, -1.0
    while time.monotonic() < deadline:
        now = metrics(cluster).get(name, 0.0)
        if now and now == before:
            return
        before = now
        time.sleep(3)
    raise RuntimeError(f"{topic} is still being consolidated after {seconds_max:.0f} s")
