"""Scenarios for both sides in alternating rounds; each returns rows of the table."""

from __future__ import annotations

import itertools
import os
import socket
import statistics
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import Producer

from bench import (
    cleaners,
    clients,
    cluster_failover,
    cluster_partitions,
    cluster_throughput,
    consolidation,
    consolidation_spark,
    diskless,
    diskless_java,
    diskless_latency,
    groups,
    spark,
    spark_s3,
    tiered,
    tiered_copy,
    tiered_more,
    transactions,
)
from bench.clusters import SIDES, Cluster, Skylog, new_cluster
from bench.local_segments import local_segments
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal, await_idle, spent, usage
from bench.plan import Plan, both
from skylog.wire.apis import ApiKey, encode_request_header
from skylog.wire.codec import encode
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

AT_LEAST_KAFKA = Goal(1.0, higher_is_better=True)
CPU_GOAL = Goal(0.7)
MEMORY_GOAL = Goal(0.35)
START_GOAL = Goal(0.25)
LATENCY_GOAL = Goal(1.5)
METADATA_VERSION = 12
START_SECONDS_MAX = 120
RUNS = (
    ("librdkafka", "produce"),
    ("librdkafka", "consume"),
    ("librdkafka", "consume-eagerly"),
    ("Java", "produce"),
    ("Java", "consume"),
)


def _load(client: str, role: str, plan: Plan, cluster: Cluster, topic: str) -> float:
    """MB/s of one run of one client."""
    if client == "librdkafka":
        done = clients.librdkafka(role, cluster.bootstrap, topic, plan.records)
        return done["mb_per_second"]
    tool = clients.java_produce if role == "produce" else clients.java_consume
    return tool(plan.classpath, cluster.bootstrap, topic, plan.records)


def throughput(plan: Plan) -> list[Figure]:
    """Produce and consume with both clients: speed, CPU and memory."""
    rates: dict[tuple[str, str], Figure] = {}
    cpu: dict[tuple[str, str], Figure] = {}
    for client, role in RUNS:
        verb, note = role.partition("-")[0], clients.EAGER_NOTE if "-" in role else ""
        rates[client, role] = Figure(f"{verb}, {client}", "MB/s", AT_LEAST_KAFKA, note=note)
        cpu[client, role] = Figure(f"broker CPU, {verb}, {client}", "s/GB", CPU_GOAL, note=note)
    total = Figure("broker CPU, all of the above together", "s/GB", CPU_GOAL)
    memory = Figure("resident memory after a round", "MB", MEMORY_GOAL)
    with both(plan) as clusters:
        for side in SIDES:
            plan.say(f"warm-up of {side}")
            _round(plan, clusters[side], "warmup")
        for number, side in plan.turns():
            plan.say(f"throughput, round {number + 1}, {side}")
            done = _round(plan, clusters[side], f"round-{number}")
            for key, (rate, cpu_seconds) in done.items():
                rates[key].add(side, rate)
                cpu[key].add(side, cpu_seconds)
            total.add(side, statistics.mean(seconds for _, seconds in done.values()))
            memory.add(side, usage(clusters[side].pid).resident_bytes / MEGABYTE)
    return [*rates.values(), *cpu.values(), total, memory]


def _round(plan: Plan, cluster: Cluster, name: str) -> dict[tuple[str, str], tuple[float, float]]:
    """(MB/s, CPU-seconds per GB) by client and role."""
    os.sync()  # neither side pays for the other's dirty pages
    topics = clients.Topics(cluster.bootstrap)
    gigabytes = plan.records * clients.RECORD_BYTES / GIGABYTE
    results = {}
    for client, runs in itertools.groupby(RUNS, key=lambda run: run[0]):
        topic = f"{client}-{name}"
        topics.create([topic])
        for key in runs:
            rates: list[float] = []
            load = partial(_load, *key, plan, cluster, topic)
            took = spent(cluster.pid, lambda load=load, rates=rates: rates.append(load()))  # type: ignore[misc]
            results[key] = rates[0], took.cpu_seconds / gigabytes
        topics.delete([topic])
    return results


def latency(plan: Plan) -> list[Figure]:
    """End to end at a steady 1,000 records a second."""
    note = "librdkafka, linger.ms=0"
    p99 = Figure("p99 end to end at 1,000 records/s", "ms", LATENCY_GOAL, note=note)
    p50 = Figure("median end to end at 1,000 records/s", "ms", None, note=note)
    cpu = Figure("broker CPU at 1,000 records/s", "% of a core", None, note=note)
    with both(plan) as clusters:
        for side in SIDES:
            plan.say(f"warm-up of {side}")
            _latency_round(plan, clusters[side], "warmup")
        for number, side in plan.turns():
            plan.say(f"latency, round {number + 1}, {side}")
            done, share = _latency_round(plan, clusters[side], f"round-{number}")
            p99.add(side, done["p99_ms"])
            p50.add(side, done["p50_ms"])
            cpu.add(side, share)
    return [p99, p50, cpu]


def _latency_round(plan: Plan, cluster: Cluster, name: str) -> tuple[dict[str, float], float]:
    clients.Topics(cluster.bootstrap).create([name])
    results: list[dict[str, float]] = []
    took = spent(
        cluster.pid,
        lambda: results.append(
            clients.librdkafka("latency", cluster.bootstrap, name, plan.latency_records)
        ),
    )
    return results[0], took.cpu_seconds / took.seconds * 100


def start(plan: Plan) -> list[Figure]:
    """From the start of the process to the first acknowledged record, in a new topic."""
    note = "new directory; Kafka's was formatted beforehand"
    figure = Figure("start to first acknowledged record", "s", START_GOAL, note=note)
    memory = Figure("resident memory after the first record", "MB", MEMORY_GOAL)
    for side in SIDES:
        plan.say(f"warm-up of {side}")
        _start_once(plan, side)
    for number, side in plan.turns():
        plan.say(f"start, round {number + 1}, {side}")
        seconds, resident = _start_once(plan, side)
        figure.add(side, seconds)
        memory.add(side, resident / MEGABYTE)
    return [figure, memory]


def _start_once(plan: Plan, side: str) -> tuple[float, int]:
    """Seconds to the first record, and the memory after it."""
    cluster = new_cluster(side, plan.classpath)
    try:
        cluster.prepare()
        began = time.perf_counter()
        cluster.spawn()
        _first_record(cluster)
        return time.perf_counter() - began, usage(cluster.pid).resident_bytes
    finally:
        cluster.stop()


def _first_record(cluster: Cluster) -> None:
    """A producer with short backoffs, so that its pauses do not count as the broker's."""
    outcome: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 10,
            "retry.backoff.ms": 5,
            "topic.metadata.refresh.fast.interval.ms": 5,
            "log_level": 0,
        }
    )
    producer.produce("first", b"record", on_delivery=lambda error, _: outcome.append(error))
    deadline = time.monotonic() + START_SECONDS_MAX
    while not outcome and time.monotonic() < deadline:
        cluster.check_alive()
        producer.poll(0.1)
    if outcome != [None]:
        raise RuntimeError(f"{cluster.name} did not take the first record: {outcome}")


def partitions(plan: Plan) -> list[Figure]:
    """1,000 topics of 10 partitions on skylog alone: their cost when idle."""
    count = plan.many_topics
    size = f"{count:,} topics × 10"
    everything = Figure(f"Metadata of all, {size}", "ms", Goal(300, ratio=False))
    single = Figure(f"Metadata of one, {size}", "ms", Goal(5, ratio=False))
    idle = Figure(f"idle CPU, {size}", "% of a core", Goal(3, ratio=False))
    plan.say(f"{size} partitions")
    with Skylog() as cluster:
        names = [f"topic-{number:04}" for number in range(count)]
        topics = clients.Topics(cluster.bootstrap)
        for at in range(0, count, 100):
            topics.create(names[at : at + 100], partitions=10)
        del topics
        await_idle(cluster.pid)
        for _ in range(plan.rounds):
            with _connect(cluster) as connection:
                everything.add("skylog", _metadata_ms(connection, None, 5))
                single.add("skylog", _metadata_ms(connection, names[count // 2], 50))
            before, started = usage(cluster.pid), time.perf_counter()
            time.sleep(plan.idle_seconds)
            cpu = usage(cluster.pid).cpu_seconds - before.cpu_seconds
            idle.add("skylog", cpu / (time.perf_counter() - started) * 100)
        memory = usage(cluster.pid).resident_bytes / MEGABYTE
    idle.note = f"then {memory:.0f} MB resident"
    return [everything, single, idle]


def _connect(cluster: Cluster) -> socket.socket:
    host, _, port = cluster.bootstrap.partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def _metadata_ms(connection: socket.socket, topic: str | None, times: int) -> float:
    """Median milliseconds from a request to the last byte of its answer."""
    wanted = None if topic is None else [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    body = encode_request_header(ApiKey.METADATA, METADATA_VERSION, 1, "bench")
    body += encode(request, METADATA_VERSION)
    frame = len(body).to_bytes(4, "big") + body
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        connection.sendall(frame)
        _receive(connection, int.from_bytes(_receive(connection, 4), "big"))
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def _receive(connection: socket.socket, size: int) -> bytes:
    buffer = bytearray(size)
    view, done = memoryview(buffer), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            raise RuntimeError("the broker closed the connection")
        done += count
    return bytes(buffer)


SCENARIOS: dict[str, Callable[[Plan], list[Figure]]] = {
    "start": start,
    "throughput": throughput,
    "latency": latency,
    "partitions": partitions,
    "transactions": transactions.transactions,
    "groups": groups.groups,
    "compaction": cleaners.compaction,
    "diskless-throughput": diskless.throughput,
    "diskless-java": diskless_java.java,
    "diskless-latency": diskless_latency.latency,
    "diskless-requests": diskless.requests,
    "diskless-lagging": diskless_latency.lagging,
    "diskless-commits": diskless.commits,
    "local-segments": local_segments,
    "cluster-throughput": cluster_throughput.throughput,
    "cluster-failover": cluster_failover.failovers,
    "cluster-partitions": cluster_partitions.partitions,
    "tiered-read": tiered.read,
    "tiered-copy": tiered_copy.copy,
    "tiered-latency": tiered_copy.latency,
    "tiered-slow-store": tiered_more.slow_store,
    "tiered-new-replica": tiered_more.new_replica,
    "tiered-idle": tiered_more.idle,
    "tiered-metadata": tiered_more.metadata,
    "consolidation-load": consolidation.load,
    "consolidation-level": consolidation.level,
    "consolidation-scan": consolidation_spark.scan,
    "consolidation-job": consolidation_spark.job,
    "spark-scan": spark.scan,
    "spark-partition": spark.partition,
    "spark-s3": spark_s3.s3,
    "spark-sink": spark.sink,
}
