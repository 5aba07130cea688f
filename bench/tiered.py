"""Reading tiered topics compared with Kafka's own: speed, CPU, memory, the first answer.

Both keep remote segments in a local directory (Kafka with the LocalTieredStorage of its tests), and
nothing is local but the active segments.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench import clients
from bench.clusters import SIDES, Cluster, Kafka, Skylog
from bench.measure import GIGABYTE, MEGABYTE, Figure, Goal, await_idle, spent, usage
from bench.plan import Plan, both_with
from bench.three import wait_until
from skylog.kernel.ids import Uuid
from skylog.wire.apis import (
    ApiKey,
    encode_request_header,
    response_class,
    response_header_version,
)
from skylog.wire.codec import decode, encode
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.schema import Message

SEGMENT_BYTES = 64 << 20
LOCAL_TIERED_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
TASK_INTERVAL = {"remote.log.manager.task.interval.ms": "500"}
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": LOCAL_TIERED_STORAGE,
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.min.isr": "1",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    **TASK_INTERVAL,
}
REMOTE = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "file.delete.delay.ms": "0",
}
GONE = {"local.retention.bytes": "1"}
AT_LEAST_KAFKA = Goal(1.0, higher_is_better=True)
CPU_GOAL = Goal(0.7)
MEMORY_GOAL = Goal(0.25)
FIRST_GOAL = Goal(1.0)
METADATA_VERSION, FETCH_VERSION = 12, 17
COPIED_SECONDS_MAX = 300.0
SAMPLE_SECONDS = 0.2
WARM_UP_BYTES = 1 << 29


def with_tests(classpath: str) -> str:
    """The classpath with Kafka's tests, which bring the remote storage."""
    return f"{classpath}:{Path(classpath).parent.parent / 'test-lib'}/*"


def cluster_of(side: str, plan: Plan, settings: Mapping[str, str] | None = None) -> Cluster:
    """One side with tiered storage; its remote segments are in its own directory."""
    given = {**SETTINGS, **(settings or {})}
    if side == "skylog":
        cluster: Cluster = Skylog(given)
    else:
        cluster = Kafka(with_tests(plan.classpath), given)
    cluster.settings["rsm.config.dir"] = str(cluster.directory / "remote")
    return cluster


@contextlib.contextmanager
def both_tiered(plan: Plan) -> Iterator[dict[str, Cluster]]:
    with both_with(*(cluster_of(side, plan) for side in SIDES)) as clusters:
        yield clusters


def fill(cluster: Cluster, topic: str, size: int, partitions: int = clients.PARTITIONS) -> int:
    """A topic of that size, of which only active segments are local. Returns its records."""
    clients.Topics(cluster.bootstrap).create([topic], partitions, **REMOTE, **GONE)
    records = records_of(size)
    clients.librdkafka("produce", cluster.bootstrap, topic, records, partitions)
    wait_until(
        f"{cluster.name}: all but active segments of {topic} are remote only",
        lambda: all(local_segments(cluster, topic, index) == 1 for index in range(partitions)),
        COPIED_SECONDS_MAX,
    )
    return records


def records_of(size: int) -> int:
    """Whole calls of the client that consumes them: the last one would wait for more."""
    return size // clients.RECORD_BYTES // clients.CONSUMED_AT_ONCE * clients.CONSUMED_AT_ONCE


def local_segments(cluster: Cluster, topic: str, partition: int) -> int:
    return len(list((cluster.directory / "data" / f"{topic}-{partition}").glob("*.log")))


def remote_bytes(cluster: Cluster, topic: str) -> int:
    """Bytes of the topic's segments in the store, without indexes."""
    store = cluster.directory / "remote" / "kafka-tiered-storage"
    total = 0
    for path in store.glob(f"{topic}-*/*.log"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class Peak:
    """The most resident memory of a process tree during ``with``."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, usage(self._pid).resident_bytes)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.bytes = max(self.bytes, usage(self._pid).resident_bytes)


def read(plan: Plan) -> list[Figure]:
    """Consume everything from remote segments, and the first answer of segments never read."""
    size = f"{plan.tiered_bytes / (1 << 30):g} GiB"
    rates, cpu = {}, {}
    for client, note in (("librdkafka", clients.EAGER_NOTE), ("Java", "")):
        what = f"consume from remote, {client}, {size}"
        rates[client] = Figure(what, "MB/s", AT_LEAST_KAFKA, note=note)
        cpu[client] = Figure(f"broker CPU, {what}", "s/GB", CPU_GOAL, note=note)
    memory = Figure("resident memory while consuming from remote", "MB", MEMORY_GOAL)
    memory.note = "the most of a round"
    first = Figure("first answer of a cold remote fetch, p50", "ms", FIRST_GOAL)
    with both_tiered(plan) as clusters:
        records = {}
        for side, cluster in clusters.items():
            plan.say(f"tiered: filling {side}")
            fill(cluster, "warm-up", min(WARM_UP_BYTES, plan.tiered_bytes))
            records[side] = fill(cluster, "remote", plan.tiered_bytes)
            os.sync()
            for client in rates:
                _consume(plan, client, cluster, "warm-up", _records_in(plan))
            await_idle(cluster.pid)
            answers = first_answers(cluster, "remote", records[side])
            first.note = f"{len(answers)} segments, index and data not read before"
            first.add(side, statistics.median(answers))
        for number, side in plan.turns():
            cluster = clusters[side]
            for client, rate in rates.items():
                plan.say(f"tiered read, round {number + 1}, {side}, {client}")
                done: list[float] = []
                load = partial(_consume, plan, client, cluster, "remote", records[side])
                with Peak(cluster.pid) as peak:
                    took = spent(cluster.pid, lambda load=load, done=done: done.append(load()))  # type: ignore[misc]
                rate.add(side, done[0])
                gigabytes = records[side] * clients.RECORD_BYTES / GIGABYTE
                cpu[client].add(side, took.cpu_seconds / gigabytes)
            memory.add(side, peak.bytes / MEGABYTE)
    return [*rates.values(), *cpu.values(), memory, first]


def _records_in(plan: Plan) -> int:
    return records_of(min(WARM_UP_BYTES, plan.tiered_bytes))


def _consume(plan: Plan, client: str, cluster: Cluster, topic: str, records: int) -> float:
    if client == "Java":
        return clients.java_consume(plan.classpath, cluster.bootstrap, topic, records)
    done = clients.librdkafka("consume-eagerly", cluster.bootstrap, topic, records)
    return done["mb_per_second"]


# -- single fetches ----------------------------------------------------------------------------


class Connection:
    """One connection, one request at a time."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, api: ApiKey, version: int, request: Message) -> tuple[Any, float]:
        """The answer, and the milliseconds until its last byte."""
        body = encode_request_header(api, version, 1, "bench") + encode(request, version)
        began = time.perf_counter()
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        data = self._receive(struct.unpack(">i", self._receive(4))[0])
        took = (time.perf_counter() - began) * 1000
        begins = 4 + response_header_version(api, version)
        return decode(response_class(api), data, version, begins), took

    def _receive(self, size: int) -> bytes:
        buffer = bytearray(size)
        view, done = memoryview(buffer), 0
        while done < size:
            count = self._socket.recv_into(view[done:])
            if not count:
                raise RuntimeError("the broker closed the connection")
            done += count
        return bytes(buffer)

    def close(self) -> None:
        self._socket.close()


def topic_id(connection: Connection, topic: str) -> Uuid:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    found, _ = connection.ask(ApiKey.METADATA, METADATA_VERSION, request)
    return Uuid(found.topics[0].topic_id)


def fetch_ms(connection: Connection, topic: Uuid, partition: int, offset: int) -> float:
    """Milliseconds of a fetch, which must bring records."""
    asked = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=5_000, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic("", topic, [asked])]
    )
    answer, took = connection.ask(ApiKey.FETCH, FETCH_VERSION, request)
    part = answer.responses[0].partitions[0]
    if part.error_code or not part.records:
        raise RuntimeError(f"no records at {partition}, {offset}: {part.error_code}")
    return took


def first_answers(cluster: Cluster, topic: str, records: int) -> list[float]:
    """One fetch into the middle of each remote segment."""
    connection = Connection(cluster.bootstrap)
    found = topic_id(connection, topic)
    per_partition = records // clients.PARTITIONS
    per_segment = SEGMENT_BYTES // (clients.RECORD_BYTES + 16)
    took = [
        fetch_ms(connection, found, partition, offset)
        for offset in range(per_segment // 2, per_partition - per_segment, per_segment)
        for partition in range(clients.PARTITIONS)
    ]
    connection.close()
    return took
