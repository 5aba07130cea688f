"""The diskless coordinator: commits, finds, snapshots and replay over a real log and SQLite.

python -m bench.coordinator [--full] [BATCHES ...]

Batches are those of idempotent producers, 64 to a file, one of each partition, with sizes, counts
and times as varied as real ones. ``--full`` goes up to 10 million.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skylog.diskless.batch import BatchToCommit, Extent, ProducerStamp, Stamp
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.commit import plan_commit
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.overlay import Overlay
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.replica import ReplicaStore
from skylog.diskless.coordinator.runtime import CoordinatorRuntime
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import FileToCommit, FindRequest
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.objects.keys import ObjectKey
from skylog.replication.partition import Partition
from skylog.wire.batch import Compression
from skylog.wire.metadata_records import encode_diskless
from skylog.wire.records import encode_batch

TOPIC = Uuid(bytes(range(16)))
METADATA = Uuid(bytes(range(16, 32)))
PARTITIONS = 64
BATCHES_PER_FILE = 64
IN_FLIGHT = 16
CHUNK_FILES = 512
FINDS = 2_000
SINGLE_COMMITS = 500
SIZES = [100_000, 1_000_000]
FULL_SIZE = 10_000_000
CLOCK = SystemClock()


@dataclass(frozen=True)
class Leads:
    """The metadata of a partition with one replica, which leads."""

    leader_epoch: int
    partition_epoch: int
    leader: int = 0
    replicas: Sequence[int] = (0,)
    isr: Sequence[int] = (0,)
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()


@dataclass(frozen=True)
class Host:
    """See ``PartitionHost``. There are no followers, so the controller is never asked."""

    node_id: int = 0
    clock: Clock = CLOCK
    lag_ms_max: int = 0

    def brokers(self, _node_id: int) -> None:
        """There are no others."""

    def broker_epoch(self) -> int:
        return 0

    def alter_isr(self, _partition: Partition, _change: object) -> None:
        """Never called."""


class Broker:
    """One coordinator, opened and closed over the same directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = Files(64)
        key, host = ("__diskless_metadata", 0), LogHost(self.files)
        self.log = Log.open(key, str(directory / "log"), host, LogConfig(), CLOCK.now_ms())
        self.background = ThreadExecutor(2, "background")
        self.epoch = 0

    async def lead(self, snapshot_bytes: int = 1 << 40) -> CoordinatorRuntime:
        store = ReplicaStore(self.directory / "coordinators", self.files, self.background)
        settings = RuntimeSettings(snapshot_bytes=snapshot_bytes)
        self.coordinators = DisklessCoordinators(store, settings, CLOCK)
        partition = Partition(Host(), "__diskless_metadata", 0, METADATA, self.log)
        partition.update(Leads(self.epoch, self.epoch))
        self.epoch += 1
        self.coordinators.partition_led(0, partition)
        await self.coordinators.loaded()
        return self.coordinators.get(0)

    @property
    def database(self) -> Path:
        return self.directory / "coordinators" / f"{METADATA}-0" / "state.sqlite"

    async def resign(self) -> None:
        await self.coordinators.close()


class Producers:
    """One producer for each partition; each sends batch after batch."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sequences = [0] * PARTITIONS
        self.end_offset = 0
        self.batches = 0

    def files(self, count: int) -> list[FileToCommit]:
        return [self.file() for _ in range(count)]

    def file(self) -> FileToCommit:
        rng, now_ms = self.rng, CLOCK.now_ms()
        key = ObjectKey.new("wal", now_ms, rng).text
        batches = []
        end = 1
        for index in range(BATCHES_PER_FILE):
            partition = index % PARTITIONS
            size, count = rng.randrange(500, 20_000), rng.randrange(1, 100)
            first = self.sequences[partition]
            self.sequences[partition] += count
            batches.append(
                BatchToCommit(
                    topic_id=TOPIC,
                    partition=partition,
                    extent=Extent(object_key=key, byte_offset=end, byte_size=size),
                    stamp=Stamp(
                        base_offset=0,
                        last_offset=count - 1,
                        batch_max_timestamp=now_ms - rng.randrange(300),
                    ),
                    producer=ProducerStamp(
                        producer_id=1000 + partition,
                        producer_epoch=0,
                        base_sequence=first,
                        last_sequence=first + count - 1,
                    ),
                )
            )
            end += size
        self.end_offset = min(self.sequences)
        self.batches += len(batches)
        return FileToCommit(object_key=key, size=end, batches=batches, coordinator_ids=(0,))


async def commit_all(runtime: CoordinatorRuntime, wanted: Sequence[FileToCommit]) -> float:
    """Seconds for all commits, with several in flight."""
    line = iter(wanted)

    async def writer() -> None:
        for file in line:
            await runtime.submit(ask.CommitFile(file))

    started = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(IN_FLIGHT)))
    return time.perf_counter() - started


async def commit_each(runtime: CoordinatorRuntime, producers: Producers, count: int) -> list[float]:
    """Milliseconds of single commits, one after the other."""
    return await _each(lambda: runtime.submit(ask.CommitFile(producers.file())), count)


async def find_each(
    runtime: CoordinatorRuntime, end_offset: int, rng: random.Random
) -> list[float]:
    """Milliseconds of single finds, each for one partition at a random offset."""

    def find() -> Awaitable[object]:
        partition, offset = rng.randrange(PARTITIONS), rng.randrange(end_offset)
        request = FindRequest(TOPIC, partition, offset, 50_000)
        return runtime.find(ask.FindBatches([request], 50_000))

    return await _each(find, FINDS)


async def _each(call: Callable[[], Awaitable[object]], count: int) -> list[float]:
    out = []
    for _ in range(count):
        work = call()
        started = time.perf_counter()
        await work
        out.append((time.perf_counter() - started) * 1000)
    return sorted(out)


async def commits_during_snapshot(
    runtime: CoordinatorRuntime, producers: Producers
) -> tuple[float, list[float]]:
    """Seconds of the snapshot, and milliseconds of commits during it."""
    started = time.perf_counter()
    ended: list[float] = []
    snapshot = asyncio.ensure_future(runtime.snapshot())
    snapshot.add_done_callback(lambda _: ended.append(time.perf_counter()))
    out: list[float] = []
    while not snapshot.done():
        out += await commit_each(runtime, producers, 1)
    await snapshot
    return ended[0] - started, sorted(out)


def metadata_bytes(producers: Producers) -> tuple[float, float]:
    """Bytes of one file's metadata for each batch: plain, and with zstd."""
    state = MemoryState()
    for index in range(PARTITIONS):
        state.create_partition((TOPIC, index), "t")
    file, now_ms = producers.file(), CLOCK.now_ms()
    record = plan_commit(file, 0, Overlay(state), now_ms, PlaneRules()).record
    values = [(None, encode_diskless(record))]
    plain = encode_batch(values, timestamp=now_ms)
    packed = encode_batch(values, timestamp=now_ms, codec=Compression.ZSTD)
    return len(plain) / BATCHES_PER_FILE, len(packed) / BATCHES_PER_FILE


def row(name: str, value: float, unit: str) -> None:
    sys.stdout.write(f"{name:52} {value:14,.2f} {unit}\n")
    sys.stdout.flush()


def rows_of(name: str, times: Sequence[float]) -> None:
    row(f"{name}, median", statistics.median(times), "ms")
    row(f"{name}, 99 %", times[len(times) * 99 // 100], "ms")


async def measure(directory: Path, batches: int) -> None:
    producers = Producers(random.Random(1))
    title = f"{batches:,} batches: "
    plain, packed = metadata_bytes(Producers(random.Random(2)))
    row(f"{title}metadata per batch, plain", plain, "bytes")
    row(f"{title}metadata per batch, zstd", packed, "bytes")
    broker = Broker(directory)
    runtime = await broker.lead()
    await runtime.submit(ask.CreatePartitions([(TOPIC, "t", range(PARTITIONS))]))
    await _commits(title, broker, runtime, producers, batches // BATCHES_PER_FILE)
    rows_of(f"{title}find", await find_each(runtime, producers.end_offset, producers.rng))
    rows_of(f"{title}commit", await commit_each(runtime, producers, SINGLE_COMMITS))
    seconds, times = await commits_during_snapshot(runtime, producers)
    row(f"{title}snapshot", seconds, "s")
    rows_of(f"{title}commit beside a snapshot", times)
    await broker.resign()
    await _loads(title, broker, producers.batches)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row(f"{title}memory at most", peak, "MiB")


async def _commits(
    title: str, broker: Broker, runtime: CoordinatorRuntime, producers: Producers, count: int
) -> None:
    seconds = cpu_seconds = 0.0
    before = broker.log.size
    for done in range(0, count, CHUNK_FILES):
        wanted = producers.files(min(CHUNK_FILES, count - done))
        gc.freeze()  # a broker does not hold the requests that it will get
        cpu_before = time.process_time()
        seconds += await commit_all(runtime, wanted)
        cpu_seconds += time.process_time() - cpu_before
        gc.unfreeze()
    batches = count * BATCHES_PER_FILE
    row(f"{title}commits of {BATCHES_PER_FILE} batches", count / seconds, "1/s")
    row(f"{title}batches committed", batches / seconds, "1/s")
    row(f"{title}CPU time per batch", cpu_seconds / batches * 1e6, "µs")
    row(f"{title}log per batch", (broker.log.size - before) / batches, "bytes")


async def _loads(title: str, broker: Broker, batches: int) -> None:
    async def load() -> float:
        started = time.perf_counter()
        await broker.lead()
        return time.perf_counter() - started

    row(f"{title}load, cache as it was left", await load(), "s")
    await broker.resign()
    database = broker.database
    row(f"{title}cache per batch", database.stat().st_size / batches, "bytes")
    for path in database.parent.glob("state.sqlite*"):
        path.unlink()
    row(f"{title}load from the snapshot", batches / await load(), "batches/s")
    await broker.resign()
    for path in database.parent.iterdir():
        path.unlink()
    row(f"{title}replay of the log", batches / await load(), "batches/s")
    await broker.resign()


def main() -> None:
    arguments = [one for one in sys.argv[1:] if one != "--full"]
    sizes = [int(one) for one in arguments] or SIZES
    for batches in [*sizes, *([FULL_SIZE] if "--full" in sys.argv else [])]:
        directory = Path(tempfile.mkdtemp(prefix="coordinator-"))
        try:
            asyncio.run(measure(directory, batches))
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
