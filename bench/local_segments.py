"""Diskless topics with local segments on and off: what copying costs, and what reading gains.

The cache of objects is off in both cases, as on a broker that did not write the objects: a fetch
reads from the store what it does not find on disk.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping

from bench import clients
from bench.clusters import Skylog
from bench.diskless import DISKLESS, FILES, GETS, GROUPS, PARTITIONS, metrics
from bench.measure import GIGABYTE, Figure, spent
from bench.plan import Plan

SETTINGS: Mapping[str, Mapping[str, str]] = {
    state: {
        "diskless.local.segments.enable": "true" if state == "on" else "false",
        "diskless.fetch.cache.max.bytes": "0",
    }
    for state in ("off", "on")
}
NOTE = "without a cache of objects"


def local_segments(plan: Plan) -> list[Figure]:
    """All rows; with and without local segments in turns."""
    rows = {state: _Rows(state) for state in SETTINGS}
    for number in range(plan.rounds):
        for state in sorted(SETTINGS, reverse=number % 2 == 0):
            plan.say(f"local segments {state}, round {number + 1}")
            with Skylog(SETTINGS[state], put_ms=0) as cluster:
                rows[state].measure(plan, cluster)
    return [figure for one in rows.values() for figure in one.all]


class _Rows:
    """The figures of one state."""

    def __init__(self, state: str) -> None:
        def row(what: str, unit: str) -> Figure:
            return Figure(f"{what}, local segments {state}", unit, None, note=NOTE)

        self.tail = row(f"tail read by {GROUPS} consumers", "MB/s")
        self.tail_cpu = row(f"broker CPU, produce and {GROUPS} tail consumers", "s/GB")
        self.gets = row(f"reads of objects, {GROUPS} tail consumers", "per object")
        self.consume = row("consume again", "MB/s")
        self.consume_cpu = row("broker CPU, consume again", "s/GB")
        self.p50 = row("end to end, median", "ms")
        self.p99 = row("end to end, p99", "ms")

    @property
    def all(self) -> list[Figure]:
        return [figure for figure in vars(self).values() if isinstance(figure, Figure)]

    def measure(self, plan: Plan, cluster: Skylog) -> None:
        topics = clients.Topics(cluster.bootstrap)
        topics.create(["tail", "latency"], PARTITIONS, **DISKLESS)
        arguments = (cluster.bootstrap, "tail", plan.records, PARTITIONS)
        gigabytes = plan.records * clients.RECORD_BYTES / GIGABYTE
        rates: list[float] = []

        def tail() -> None:
            with concurrent.futures.ThreadPoolExecutor(GROUPS) as consumers:
                reading = [
                    consumers.submit(clients.librdkafka, "consume", *arguments)
                    for _ in range(GROUPS)
                ]
                clients.librdkafka("produce", *arguments)
            rates.extend(one.result()["mb_per_second"] for one in reading)

        def again() -> None:
            rates.append(clients.librdkafka("consume", *arguments)["mb_per_second"])

        before = metrics(cluster)
        took = spent(cluster.pid, tail)
        after = metrics(cluster)
        self.tail.add("skylog", sum(rates))
        self.tail_cpu.add("skylog", took.cpu_seconds / gigabytes)
        self.gets.add("skylog", (after[GETS] - before[GETS]) / (after[FILES] - before[FILES]))
        took = spent(cluster.pid, again)
        self.consume.add("skylog", rates[-1])
        self.consume_cpu.add("skylog", took.cpu_seconds / gigabytes)
        delays = clients.librdkafka(
            "latency", cluster.bootstrap, "latency", plan.latency_records, PARTITIONS
        )
        self.p50.add("skylog", delays["p50_ms"])
        self.p99.add("skylog", delays["p99_ms"])
