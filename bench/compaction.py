"""Compaction of a local log: speed and memory of a pass, and the size of what it leaves.

python -m bench.compaction [--megabytes N]

``python -m bench --only compaction`` compares the cleaners of brokers with Kafka's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.cleaner import CleanerSettings, LogCleaner
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.manager import LogManager
from skylog.wire.batch import Batch
from skylog.wire.records import encode_batch

TOPIC_ID = Uuid(bytes(range(16)))
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=64 << 20, min_cleanable_dirty_ratio=0.0
)


@dataclass(frozen=True)
class Case:
    name: str
    value_bytes: int
    records: int  # of a batch
    codec: int = 0
    # One of this many records is the latest of its key.
    versions: int = 10


CASES = (
    Case("records of 1 KB, 16 a batch", 1000, 16),
    Case("records of 100 bytes, 100 a batch", 100, 100),
    Case("records of 100 bytes, every key once", 100, 100, versions=1),
    Case("records of 100 bytes, 100 a batch, zstd", 100, 100, codec=4),
    Case("records of 100 bytes, 100 a batch, lz4", 100, 100, codec=3),
    Case("one record of 100 bytes a batch, as commits of offsets", 100, 1),
)


def resident_bytes(pid: int) -> int:
    with Path(f"/proc/{pid}/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Peak resident memory of a process, sampled every few milliseconds."""

    def __init__(self, pid: int | None = None) -> None:
        """``pid`` is this process by default."""
        self._pid = os.getpid() if pid is None else pid
        self.peak = self.before = resident_bytes(self._pid)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._enough.wait(0.005):
            self.peak = max(self.peak, resident_bytes(self._pid))


def batches(case: Case, total: int) -> Iterator[bytearray]:
    """Batches with ``total`` bytes of uncompressed records, the same ones each time."""
    rng = random.Random(7)
    count = total // (case.value_bytes + 30)
    keys = max(count // case.versions, 1)
    order = list(range(count)) if case.versions == 1 else None
    done = 0
    while done < count:
        numbers = [
            order[n % count] if order else rng.randrange(keys)
            for n in range(done, done + case.records)
        ]
        # Half of a value can be compressed.
        half = case.value_bytes // 2
        pairs = [(b"key-%012d" % n, rng.randbytes(half) + b"v" * half) for n in numbers]
        yield bytearray(encode_batch(pairs, timestamp=SystemClock().now_ms(), codec=case.codec))
        done += case.records


def fill(log: Log, case: Case, total: int) -> int:
    """Append these batches; returns the number of their records."""
    done = 0
    for data in batches(case, total):
        log.appender.append([Batch(memoryview(data))], 0, SystemClock().now_ms())
        done += case.records
    log.high_watermark = log.log_end_offset
    log.appender.roll(log.log_end_offset, SystemClock().now_ms())
    log.durability.sync()
    return done


async def measure(case: Case, total: int) -> None:
    root = tempfile.mkdtemp(prefix="skylog-bench-")
    executor = ThreadExecutor(2, "bench")
    manager = LogManager([root], SystemClock(), executor)
    await manager.start()
    log = manager.get_or_create("bench", 0, TOPIC_ID, CONFIG)
    records = await asyncio.to_thread(fill, log, case, total)
    before = log.size
    cleaner = LogCleaner(manager, SystemClock(), executor, random.Random(1), CleanerSettings)
    with PeakMemory() as memory:
        began, cpu = time.monotonic(), time.process_time()
        assert await cleaner.run_once() == 1
        seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu
    print(
        f"| {case.name} | {before / 1e6:,.0f} | {log.size / 1e6:,.0f} "
        f"| {before / seconds / 1e6:,.0f} | {records / seconds / 1e6:.2f} "
        f"| {cpu_seconds / before * 1e9:.2f} "
        f"| {(memory.peak - memory.before) / 1e6:,.0f} |",
        flush=True,
    )
    await manager.close()
    executor.close()
    shutil.rmtree(root)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compaction", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256, help="of records (256)")
    given = parser.parse_args()
    print("| What | MB before | MB after | MB/s | M records/s | CPU s/GB | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        asyncio.run(measure(case, given.megabytes << 20))


if __name__ == "__main__":
    main()
