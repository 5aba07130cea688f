"""Compaction by brokers: one pass of each cleaner over the same batches.

Both sides are observed from outside in the same way: a change of the topic's settings starts the
pass, and the cleaner's checkpoint shows its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench import clients
from bench.clusters import SIDES, Cluster, Kafka, Skylog
from bench.compaction import CASES, Case, PeakMemory, batches
from bench.measure import GIGABYTE, MEGABYTE, Figure, spent
from bench.plan import Plan, both_with
from skylog.client.connection import ClientConnection, open_connection
from skylog.client.settings import ClientSettings, parse_bootstrap
from skylog.kernel.ids import Uuid
from skylog.kernel.system import real_system
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

CHOSEN = (CASES[0], CASES[1], CASES[2], CASES[4])
# How often both cleaners look for work; up to one such pause is part of the measurement.
BACKOFF_MS = 20
LOOK_SECONDS = 0.01
PASS_SECONDS_MAX = 120
MEGABYTES = 256
MEGABYTES_QUICK = 64
SEGMENT_BYTES = 16 << 20
REQUESTS_AT_ONCE = 16
PRODUCE_VERSION_WITH_IDS = 13
CHECKPOINT = "cleaner-offset-checkpoint"


class Pass(NamedTuple):
    """What one took."""

    bytes_before: int
    bytes_after: int
    seconds: float
    cpu_seconds: float
    # Peak resident memory, and how much of it the pass added.
    peak_bytes: int
    added_bytes: int


def compaction(plan: Plan) -> list[Figure]:
    """A log whose segments are all dirty, cleaned once."""
    note = f"log.cleaner.backoff.ms={BACKOFF_MS}"
    speed = {case: Figure(f"compaction, {case.name}", "MB/s", None, note=note) for case in CHOSEN}
    cpu = {case: Figure(f"broker CPU, compaction, {case.name}", "s/GB", None) for case in CHOSEN}
    left = Figure("left by compaction, of all cases", "MB", None)
    peak = Figure("peak memory of the broker while it compacts", "MB", None)
    added = Figure("of which a pass has added, at most", "MB", None)
    total = (MEGABYTES_QUICK if plan.quick else MEGABYTES) * MEGABYTE
    # The second one so that the bench does not wait a minute to see what has been synced.
    settings = {
        "log.cleaner.backoff.ms": str(BACKOFF_MS),
        "log.flush.offset.checkpoint.interval.ms": "1000",
    }
    with both_with(Skylog(settings), Kafka(plan.classpath, settings)) as clusters:
        for side in SIDES:
            plan.say(f"compaction, warm-up of {side}")
            _pass(clusters[side], CHOSEN[0], "warm", MEGABYTES_QUICK * MEGABYTE)
        for number, side in plan.turns():
            done: list[Pass] = []
            for index, case in enumerate(CHOSEN):
                plan.say(f"compaction, round {number + 1}, {side}, {case.name}")
                found = _pass(clusters[side], case, f"compacted-{number}-{index}", total)
                speed[case].add(side, found.bytes_before / found.seconds / MEGABYTE)
                cpu[case].add(side, found.cpu_seconds / found.bytes_before * GIGABYTE)
                done.append(found)
            left.add(side, sum(found.bytes_after for found in done) / MEGABYTE)
            peak.add(side, max(found.peak_bytes for found in done) / MEGABYTE)
            added.add(side, max(found.added_bytes for found in done) / MEGABYTE)
    return [*speed.values(), *cpu.values(), left, peak, added]


def _pass(cluster: Cluster, case: Case, topic: str, total: int) -> Pass:
    """Fill a topic that is not compacted, then have it compacted."""
    topics = clients.Topics(cluster.bootstrap)
    topics.create([topic], partitions=1, **{"segment.bytes": str(SEGMENT_BYTES)})
    asyncio.run(_fill(cluster.bootstrap, topic, batches(case, total)))
    directory = cluster.directory / "data" / f"{topic}-0"
    segments = sorted(directory.glob("*.log"))
    before, active = sum(path.stat().st_size for path in segments[:-1]), int(segments[-1].stem)
    _await_sync(cluster, topic, active)

    def clean() -> None:
        _configure(cluster, topic, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
        deadline = time.monotonic() + PASS_SECONDS_MAX
        while _offset_in(directory.parent / CHECKPOINT, topic) < active:
            cluster.check_alive()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{cluster.name} did not clean {topic}")
            time.sleep(LOOK_SECONDS)

    with PeakMemory(cluster.pid) as memory:
        took = spent(cluster.pid, clean)
    after = sum(p.stat().st_size for p in directory.glob("*.log") if int(p.stem) < active)
    topics.delete([topic])
    added = memory.peak - memory.before
    return Pass(before, after, took.seconds, took.cpu_seconds, memory.peak, added)


def _await_sync(cluster: Cluster, topic: str, offset: int) -> None:
    """Rolled segments are synced in the background; neither pass shall wait for that."""
    deadline = time.monotonic() + PASS_SECONDS_MAX
    path = cluster.directory / "data" / "recovery-point-offset-checkpoint"
    while _offset_in(path, topic) < offset:
        cluster.check_alive()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{cluster.name} did not sync {topic}")
        time.sleep(1)


def _offset_in(path: Path, topic: str) -> int:
    """The offset of the topic's partition in a checkpoint file; -1 without one."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return -1
    found = (line.split() for line in lines[2:])
    return next((int(words[2]) for words in found if words[:2] == [topic, "0"]), -1)


def _configure(cluster: Cluster, topic: str, wanted: dict[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.incremental_alter_configs([resource], request_timeout=60).values():
        future.result()


async def _fill(bootstrap: str, topic: str, wanted: Iterator[bytearray]) -> None:
    """One request for each batch, so that the log keeps them as they are."""
    address = parse_bootstrap(bootstrap)[0]
    connection = await open_connection(address, ClientSettings((address,)), real_system())
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    topic_id: Uuid = (await connection.request(request)).topics[0].topic_id

    async def produce() -> None:
        for data in wanted:
            await _produce(connection, topic_id, data)

    await asyncio.gather(*(produce() for _ in range(REQUESTS_AT_ONCE)))
    await connection.close()


async def _produce(connection: ClientConnection, topic_id: Uuid, data: bytearray) -> None:
    sent = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(0, data)])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[sent])
    answer = await connection.request(request, version_min=PRODUCE_VERSION_WITH_IDS)
    code = answer.responses[0].partition_responses[0].error_code
    if code:
        raise RuntimeError(f"not produced: {code}")
