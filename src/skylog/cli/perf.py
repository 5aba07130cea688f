"""``skylog perf``."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call, offsets_at, require_topic
from skylog.cli.errors import CommandError
from skylog.cli.measure import latencies, throughput
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName
from skylog.cli.output import print_json, print_table
from skylog.cli.produce import (
    Acknowledged,
    Acks,
    BatchBytes,
    Codec,
    Compressed,
    Idempotent,
    Linger,
    producer_settings,
)
from skylog.cli.sending import Sender
from skylog.client.cluster import Cluster
from skylog.client.consumer import Consumer, ConsumerSettings
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.client.producer import Producer, ProducerSettings, RecordMetadata
from skylog.kernel.clock import SystemClock
from skylog.kernel.progress import Progress

app = new_app(
    group=True,
    help="Measure throughput and latency of a cluster from this machine.",
    epilog=examples(
        "skylog perf produce load --records 100000 --size 1000",
        "skylog perf consume load --records 100000",
        "skylog perf latency load",
    ),
)

Records = Annotated[int, typer.Option("--records", "-n", min=1, help="Number of records.")]
Size = Annotated[int, typer.Option("--size", "-s", min=1, help="Bytes per record value.")]

# Values of equal size that do not compress too well together.
_VALUES: Final = 64
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"
_POLL_RECORDS: Final = 2000
_COME_BACK_MS_MAX: Final = 30_000
_NAMES: Final = {
    "records": "Records",
    "seconds": "Seconds",
    "records_per_second": "Records/s",
    "mb_per_second": "MB/s",
    "average_ms": "Latency, average (ms)",
    "p50_ms": "Latency, p50 (ms)",
    "p95_ms": "Latency, p95 (ms)",
    "p99_ms": "Latency, p99 (ms)",
    "p99.9_ms": "Latency, p99.9 (ms)",
    "max_ms": "Latency, maximum (ms)",
}


def _values(size: int) -> list[bytes]:
    rng = random.Random(0)  # noqa: S311 - the same load every time
    return [bytes(rng.choices(_LETTERS, k=size)) for _ in range(_VALUES)]


def _show(result: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(result)
    else:
        rows = [
            {"name": text, "value": result[key]} for key, text in _NAMES.items() if key in result
        ]
        print_table({"name": "Measured", "value": "Value"}, rows)


@app.command(
    epilog=examples(
        "skylog perf produce load --records 100000 --size 1000 --compression lz4",
        "skylog perf produce load --records 10000 --rate 500",
    )
)
def produce(
    topic: TopicName,
    records: Records = 100_000,
    size: Size = 100,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Records per second (default: unlimited).")
    ] = None,
    compression: Compressed = Codec.NONE,
    acks: Acknowledged = Acks.ALL,
    idempotent: Idempotent = None,
    linger_ms: Linger = 5,
    batch_bytes: BatchBytes = 256 * 1024,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Send records as fast as possible, or at a rate; latency is from send to acknowledgement.

    At full speed most of the latency is queueing in this client; --rate shows the broker's. One
    Python process sends some ten thousand records a second, so larger records better show the
    capacity of a broker. The topic is created if it does not exist and the broker allows that.
    """
    settings = producer_settings(acks, compression, idempotent, linger_ms, batch_bytes)
    values = _values(size)
    clock = SystemClock()

    async def work(cluster: Cluster) -> dict[str, Any]:
        await require_topic(cluster, topic, allow_create=True)
        taken: list[float] = []
        async with Producer(cluster, settings) as producer:
            sender = Sender(producer, topic)
            start = clock.monotonic()
            with Progress("sent", records) as progress:
                for index in range(records):
                    if rate is not None:
                        await _pace(clock, start + index / rate)
                    await sender.send(None, values[index % _VALUES], _stopwatch(clock, taken))
                    progress.advance(sender.sent)
                await producer.flush()
            sender.raise_failure()
        return throughput(records, records * size, clock.monotonic() - start) | latencies(taken)

    _show(call(work, bootstrap, client_config), json=json)


def _stopwatch(clock: SystemClock, taken: list[float]) -> Callable[[], None]:
    start = clock.monotonic()
    return lambda: taken.append(clock.monotonic() - start)


async def _pace(clock: SystemClock, due: float) -> None:
    wait = due - clock.monotonic()
    if wait > 0:
        await asyncio.sleep(wait)


@app.command(
    epilog=examples("skylog perf consume load", "skylog perf consume load --records 100000 --json")
)
def consume(
    topic: TopicName,
    records: Annotated[
        int | None,
        typer.Option("--records", "-n", min=1, help="Number of records (default: all)."),
    ] = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Read a topic from its beginning as fast as possible."""
    clock = SystemClock()

    async def work(cluster: Cluster) -> dict[str, Any]:
        info = await require_topic(cluster, topic)
        keys = [TopicPartition(topic, index) for index in info.partitions]
        first = await offsets_at(cluster, keys, EARLIEST)
        ends = await offsets_at(cluster, keys, LATEST)
        there = sum(ends[key] - first[key] for key in keys)
        if not there or (records is not None and there < records):
            raise CommandError(
                f"topic {topic} has {there} records; `skylog perf produce {topic}` creates some"
            )
        async with Consumer(cluster, ConsumerSettings()) as consumer:
            consumer.assign(keys)
            for key in keys:
                consumer.seek(key, first[key])
            start = clock.monotonic()
            count, size = await _read(consumer, ends, records or there)
        return throughput(count, size, clock.monotonic() - start)

    _show(call(work, bootstrap, client_config), json=json)


async def _read(
    consumer: Consumer, ends: Mapping[TopicPartition, int], wanted: int
) -> tuple[int, int]:
    """Records and bytes read; compacted topics have fewer records than offsets."""
    count = size = 0
    with Progress("read", wanted) as progress:
        while count < wanted:
            found = await consumer.poll(500, min(_POLL_RECORDS, wanted - count))
            count += len(found)
            size += sum(len(record.key or b"") + len(record.value or b"") for record in found)
            progress.advance(count)
            if not found and all((consumer.position(key) or 0) >= ends[key] for key in ends):
                break
    return count, size


@app.command(
    epilog=examples(
        "skylog perf latency load", "skylog perf latency load --records 1000 --size 1000"
    )
)
def latency(
    topic: TopicName,
    records: Records = 1000,
    size: Size = 100,
    acks: Acknowledged = Acks.ALL,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Send one record at a time and wait until a consumer has received it."""
    settings = producer_settings(acks, Codec.NONE, None, 0, 256 * 1024)
    values = _values(size)

    async def work(cluster: Cluster) -> dict[str, Any]:
        info = await require_topic(cluster, topic, allow_create=True)
        keys = [TopicPartition(topic, index) for index in info.partitions]
        ends = await offsets_at(cluster, keys, LATEST)
        async with Consumer(cluster, ConsumerSettings()) as consumer:
            consumer.assign(keys)
            for key in keys:
                consumer.seek(key, ends[key])
            # A separate connection: a producer's requests would queue behind the fetches.
            async with Cluster(cluster.settings) as other:
                taken = await _round_trips(other, consumer, settings, topic, values, records)
        total = throughput(records, records * size, sum(taken))
        return {"records": records, "seconds": total["seconds"]} | latencies(taken)

    _show(call(work, bootstrap, client_config), json=json)


async def _round_trips(
    cluster: Cluster,
    consumer: Consumer,
    settings: ProducerSettings,
    topic: str,
    values: list[bytes],
    records: int,
) -> list[float]:
    clock = SystemClock()
    taken = []
    async with Producer(cluster, settings) as producer:
        with Progress("round trips", records) as progress:
            for index in range(records):
                start = clock.monotonic()
                stored = await producer.send(topic, values[index % _VALUES])
                await _come_back(consumer, values[index % _VALUES], stored)
                taken.append(clock.monotonic() - start)
                await stored
                progress.advance(index + 1)
    return taken


async def _come_back(
    consumer: Consumer, value: bytes, stored: asyncio.Future[RecordMetadata]
) -> None:
    """Wait for the record; other producers may write to the topic too."""
    found = False
    while not found:
        records = await consumer.poll(_COME_BACK_MS_MAX)
        if not records:
            await stored
            raise CommandError(f"a stored record was not received within {_COME_BACK_MS_MAX} ms")
        found = any(record.value == value for record in records)
