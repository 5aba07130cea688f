"""Spark on skylog's topics compared with Spark's Kafka source on Apache Kafka.

python -m bench --only spark [--quick]; its parts are spark-scan, spark-partition, spark-sink and
spark-s3 (``spark_s3.py``)

Diskless topics against classic ones, with the same records at the same offsets: the results of both
sides must be equal. Objects are stored in a directory on the same disk as Kafka's logs. Each round
has a new session, so that its first query includes everything that Spark does only once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench import clients
from bench.clusters import Cluster, Kafka, Skylog
from bench.measure import MEGABYTE, Figure, Goal, spent, usage
from bench.plan import Plan
from bench.spark_load import load
from bench.spark_session import Spark, kafka_source, spark

PARTITIONS = 4
# Records have their own old timestamps, which both sides keep.
KEPT = {"retention.ms": "-1"}
DISKLESS = {"diskless.enable": "true"}
# Spark's Kafka source is also run on skylog's brokers.
SIDES = ("skylog", "kafka", "brokers")
MILLION = 1_000_000
SCAN_GOALS = {1024: Goal(2.0, higher_is_better=True), 100: Goal(4.0, higher_is_better=True)}
SINK_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Data:
    """The records of a topic."""

    record_bytes: int
    codec: str
    records: int
    partitions: int = PARTITIONS

    @property
    def topic(self) -> str:
        return f"scan-{self.record_bytes}-{self.codec}-{self.partitions}"

    def __str__(self) -> str:
        size = "1 KiB" if self.record_bytes == 1024 else f"{self.record_bytes} B"
        return f"{size}, {'uncompressed' if self.codec == 'none' else self.codec}"


def data_of(plan: Plan, record_bytes: int, codec: str = "none", partitions: int = 4) -> Data:
    return Data(record_bytes, codec, plan.spark_bytes // record_bytes, partitions)


def fill(cluster: Cluster, data: Data) -> None:
    """A diskless topic on skylog, a classic one on Kafka."""
    configs = KEPT | (DISKLESS if isinstance(cluster, Skylog) else {})
    clients.Topics(cluster.bootstrap).create([data.topic], data.partitions, **configs)
    load(
        cluster.bootstrap,
        data.topic,
        data.records,
        data.record_bytes,
        data.codec,
        data.partitions,
    )


@contextlib.contextmanager
def both(plan: Plan) -> Iterator[dict[str, Cluster]]:
    kafka_source()  # fetched before anything is measured
    with Skylog() as skylog, Kafka(plan.classpath) as kafka:
        yield {"skylog": skylog, "kafka": kafka, "brokers": skylog}


@dataclass(frozen=True, slots=True)
class Run:
    """What one query took."""

    seconds: float
    cpu_seconds: float
    answer: list[str]


def run(
    session: Spark,
    side: str,
    cluster: Cluster,
    data: Data,
    query: str,
    options: Mapping[str, str] | None = None,
) -> Run:
    """One query, planned anew; CPU is that of Spark and of the broker."""
    asked = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": data.topic}
    broker = usage(cluster.pid).cpu_seconds
    answers: list[dict[str, Any]] = []
    took = spent(
        session.pid,
        lambda: answers.append(
            session.ask(
                do="read",
                format="skylog" if side == "skylog" else "kafka",
                query=query,
                options={**asked, **(options or {})},
            )
        ),
    )
    cpu = took.cpu_seconds + usage(cluster.pid).cpu_seconds - broker
    return Run(answers[0]["seconds"], cpu, answers[0]["answer"])


# -- full scans ------------------------------------------------------------------------------


class _Scans:
    """The rows of one topic, and the results that all sides must return."""

    def __init__(self, data: Data) -> None:
        goal = SCAN_GOALS[data.record_bytes]
        self.data = data
        self.first = Figure(f"Spark scan, {data}, first run", "M rows/s", None)
        self.second = Figure(f"Spark scan, {data}, second run", "M rows/s", goal)
        self.hash = Figure(f"Spark hash of every column, {data}", "M rows/s", goal)
        self.cpu = Figure(f"CPU of Spark and broker, scan, {data}", "s per M rows", None)
        note = "Spark's Kafka source on both sides; skylog's topic is diskless"
        self.brokers = Figure(
            f"Kafka source, scan, {data}, second run", "M rows/s", None, note=note
        )
        self._answers: dict[str, list[str]] = {}

    def measure(self, side: str, cluster: Cluster) -> None:
        data = self.data
        with spark(side) as session:

            def rate(query: str) -> tuple[float, Run]:
                done = run(session, side, cluster, data, query)
                self._check(query, done.answer)
                return data.records / done.seconds / MILLION, done

            first, _ = rate("scan")
            second, done = rate("scan")
            if side != "skylog":
                self.brokers.add("skylog" if side == "brokers" else "kafka", second)
            if side == "brokers":
                return
            self.first.add(side, first)
            self.second.add(side, second)
            self.cpu.add(side, done.cpu_seconds / data.records * MILLION)
            self.hash.add(side, rate("hash")[0])

    def _check(self, query: str, answer: list[str]) -> None:
        expected = self._answers.setdefault(query, answer)
        if answer != expected or (query == "scan" and answer[0] != str(self.data.records)):
            raise RuntimeError(f"{query} of {self.data}: {answer}, elsewhere {expected}")

    @property
    def figures(self) -> list[Figure]:
        rows = [self.first, self.second, self.hash, self.cpu]
        return [*rows, self.brokers] if self.brokers.skylog else rows


def scan(plan: Plan) -> list[Figure]:
    """Count, sum of lengths and largest offset; a hash over all columns."""
    codecs = ("none", "zstd")
    every = [_Scans(data_of(plan, size, codec)) for size in SCAN_GOALS for codec in codecs]
    with both(plan) as clusters:
        for one in every:
            _scan(plan, clusters, one)
    return [figure for one in every for figure in one.figures]


def _scan(plan: Plan, clusters: Mapping[str, Cluster], one: _Scans) -> None:
    for side in ("skylog", "kafka"):
        plan.say(f"Spark: filling {side} with {one.data}")
        fill(clusters[side], one.data)
    for number, side in plan.turns(SIDES):
        if side == "brokers" and one.data.codec != "none":
            continue
        plan.say(f"Spark scan of {one.data}, round {number + 1}, {side}")
        one.measure(side, clusters[side])
    for side in ("skylog", "kafka"):
        clients.Topics(clusters[side].bootstrap).delete([one.data.topic])


# -- one partition -----------------------------------------------------------------------------


def partition(plan: Plan) -> list[Figure]:
    """One partition that holds everything: read by one task, and as it is planned."""
    data = data_of(plan, 1024, partitions=1)
    goal = Goal(1.8, higher_is_better=True, ratio=False)
    one = Figure("Spark scan of one partition, one task", "M rows/s", None)
    many = Figure("Spark scan of one partition, as planned", "M rows/s", None)
    gain = Figure("  gained by tasks of a partition", "×", goal, note="on two cores")
    # Reading, decoding and Spark's own work overlap in one task already.
    busy = {way: Figure(f"  cores kept busy by {way}", "cores", None) for way in ("one", "many")}
    alone = Figure("Spark scan of one partition, one task on one core", "M rows/s", None)
    ways = {"one": {"read.split.bytes": str(2**31 - 1)}, "many": {}}
    one.note = "read.split.bytes=2147483647"
    with (
        Skylog() as cluster,
        spark("skylog") as session,
        spark("skylog", one_core=True) as on_one_core,
    ):
        plan.say("Spark: filling one partition")
        fill(cluster, data)
        for each in (session, on_one_core):
            run(each, "skylog", cluster, data, "scan")
        for number, way in plan.turns(tuple(ways)):
            plan.say(f"Spark scan of one partition, round {number + 1}, {way} tasks")
            done = run(session, "skylog", cluster, data, "scan", ways[way])
            figure = one if way == "one" else many
            figure.add("skylog", data.records / done.seconds / MILLION)
            busy[way].add("skylog", done.cpu_seconds / done.seconds)
            if way == "one":
                done = run(on_one_core, "skylog", cluster, data, "scan", ways[way])
                alone.add("skylog", data.records / done.seconds / MILLION)
    pairs = zip(many.skylog, one.skylog, strict=True)
    gain.skylog = [fast / slow for fast, slow in pairs]
    return [one, many, gain, *busy.values(), alone]


# -- sinks -------------------------------------------------------------------------------------


def sink(plan: Plan) -> list[Figure]:
    """Rows of 1 KiB into a topic: exactly once on skylog, at least once on Kafka."""
    goal = Goal(1.0, higher_is_better=True)
    rate = Figure("Spark sink, 1 KiB", "MB/s", goal, note="exactly once; Kafka's at least once")
    cpu = Figure("CPU of Spark and broker, sink, 1 KiB", "s/GB", None)
    records = plan.spark_bytes // 2 // SINK_BYTES
    with contextlib.ExitStack() as stack:
        clusters = stack.enter_context(both(plan))
        sessions = {side: stack.enter_context(spark(side)) for side in SIDES[:2]}
        for number, side in [(-1, "skylog"), (-1, "kafka"), *plan.turns()]:
            plan.say(f"Spark sink, round {number + 1}, {side}")
            done = _write(clusters[side], sessions[side], side, f"sink-{number + 1}", records)
            if number >= 0:
                size = records * SINK_BYTES / MEGABYTE
                rate.add(side, size / done.seconds)
                cpu.add(side, done.cpu_seconds / size * 1000)
    return [rate, cpu]


def _write(cluster: Cluster, session: Spark, side: str, topic: str, records: int) -> Run:
    configs = DISKLESS if side == "skylog" else {}
    clients.Topics(cluster.bootstrap).create([topic], PARTITIONS, **configs)
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": topic}
    broker = usage(cluster.pid).cpu_seconds
    answers: list[dict[str, Any]] = []
    took = spent(
        session.pid,
        lambda: answers.append(
            session.ask(
                do="write",
                format=side,
                records=records,
                record_bytes=SINK_BYTES,
                options=options,
            )
        ),
    )
    cpu = took.cpu_seconds + usage(cluster.pid).cpu_seconds - broker
    return Run(answers[0]["seconds"], cpu, [])
