"""The diskless coordinator: commits, finds, snapshot and replay over a real log and SQLite.

python -m bench.coordinator [BATCHES ...]
"""

from __future__ import annotations

import asyncio
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.registry import DisklessCoordinators, Environment
from skylog.diskless.coordinator.runtime import CoordinatorRuntime, RuntimeSettings
from skylog.diskless.plane import BatchToCommit, FileToCommit, FindRequest
from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.log import Log, Opening
from skylog.objects.keys import ObjectKey
from skylog.replication.partition import Partition

TOPIC = Uuid(bytes(range(16)))
METADATA = Uuid(bytes(range(16, 32)))
PARTITIONS = 64
BATCHES_PER_FILE = 64
IN_FLIGHT = 16
FINDS = 2_000
CLOCK = SystemClock()


class Broker:
    """One coordinator, opened and closed over the same directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = Files(64)
        opening = Opening(self.files, str(directory / "log"), LogConfig(), CLOCK.now_ms())
        self.log = Log.open("__diskless_metadata", 0, opening)
        self.background = ThreadExecutor(2, "background")
        self.epoch = 0

    async def lead(self, snapshot_bytes: int = 1 << 40) -> CoordinatorRuntime:
        environment = Environment.of_broker(
            self.directory / "coordinators", self.files, CLOCK, self.background
        )
        settings = RuntimeSettings(snapshot_bytes=snapshot_bytes)
        self.coordinators = DisklessCoordinators(environment, settings)
        partition = Partition(0, "__diskless_metadata", 0, METADATA, self.log)
        partition.update(0, self.epoch, [0], [0])
        self.epoch += 1
        self.coordinators.partition_led(0, partition)
        await self.coordinators.loaded()
        return self.coordinators.get(0)

    @property
    def database(self) -> Path:
        return self.directory / "coordinators" / f"{METADATA}-0" / "state.sqlite"

    async def resign(self) -> None:
        await self.coordinators.close()


def files(count: int, rng: random.Random) -> list[FileToCommit]:
    """Every partition once in each file, all batches of idempotent producers."""
    now_ms = CLOCK.now_ms()
    out = []
    for number in range(count):
        batches = [
            BatchToCommit(
                TOPIC,
                index % PARTITIONS,
                1 + index * 1000,
                1000,
                0,
                9,
                now_ms,
                producer_id=index,
                producer_epoch=0,
                base_sequence=number * 10,
                last_sequence=number * 10 + 9,
            )
            for index in range(BATCHES_PER_FILE)
        ]
        key = ObjectKey.new("wal", now_ms, rng).text
        size = 1 + BATCHES_PER_FILE * 1000
        out.append(FileToCommit(object_key=key, size=size, batches=batches, owner_ids=(0,)))
    return out


async def commit_all(runtime: CoordinatorRuntime, wanted: Sequence[FileToCommit]) -> float:
    """Seconds, with some commits in flight at any time."""
    line = iter(wanted)

    async def writer() -> None:
        for file in line:
            await runtime.submit(ask.CommitFile(file))

    started = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(IN_FLIGHT)))
    return time.perf_counter() - started


async def find_all(runtime: CoordinatorRuntime, end_offset: int, rng: random.Random) -> list[float]:
    """Milliseconds of single finds, each of one partition at any offset."""
    out = []
    for _ in range(FINDS):
        partition, offset = rng.randrange(PARTITIONS), rng.randrange(end_offset)
        request = ask.FindBatches([FindRequest(TOPIC, partition, offset, 50_000)], 50_000)
        started = time.perf_counter()
        await runtime.find(request)
        out.append((time.perf_counter() - started) * 1000)
    return sorted(out)


def row(name: str, value: float, unit: str) -> None:
    sys.stdout.write(f"{name:52} {value:14,.2f} {unit}\n")


async def measure(directory: Path, batches: int) -> None:
    rng = random.Random(1)
    broker = Broker(directory)
    runtime = await broker.lead()
    await runtime.submit(ask.CreatePartitions([(TOPIC, "t", range(PARTITIONS))]))
    count = batches // BATCHES_PER_FILE
    seconds = 0.0
    wanted = files(count, rng)
    seconds = await commit_all(runtime, wanted)
    title = f"{batches:,} batches: "
    row(f"{title}commits of {BATCHES_PER_FILE} batches", count / seconds, "1/s")
    row(f"{title}batches committed", count * BATCHES_PER_FILE / seconds, "1/s")
    row(f"{title}log per batch", broker.log.size / batches, "bytes")
    times = await find_all(runtime, count * 10, rng)
    row(f"{title}find, median", statistics.median(times), "ms")
    row(f"{title}find, 99 %", times[len(times) * 99 // 100], "ms")
    started = time.perf_counter()
    await runtime.snapshot()
    row(f"{title}snapshot", time.perf_counter() - started, "s")
    await broker.resign()
    started = time.perf_counter()
    await broker.lead()
    row(f"{title}load, cache as it was left", time.perf_counter() - started, "s")
    await broker.resign()
    database = broker.database
    row(f"{title}cache per batch", database.stat().st_size / batches, "bytes")
    for path in database.parent.glob("state.sqlite*"):
        path.unlink()
    started = time.perf_counter()
    await broker.lead()
    row(f"{title}load from the snapshot", time.perf_counter() - started, "s")
    await broker.resign()
    for path in database.parent.iterdir():
        path.unlink()
    started = time.perf_counter()
    await broker.lead()
    row(f"{title}replay of the log", batches / (time.perf_counter() - started), "batches/s")
    await broker.resign()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row(f"{title}memory at most, with the files to commit", peak, "MiB")


def main() -> None:
    for batches in [int(one) for one in sys.argv[1:]] or [100_000, 1_000_000]:
        directory = Path(tempfile.mkdtemp(prefix="coordinator-"))
        try:
            asyncio.run(measure(directory, batches))
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
