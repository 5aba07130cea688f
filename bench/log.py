"""The local log: appends, reads and searches of one partition, and the cost of many idle ones.

python -m bench.log
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.manager import LogManager
from skylog.wire.batch import Batch, batch_size
from skylog.wire.records import encode_batch

APPENDED_BYTES = 256 << 20
IDLE_PARTITIONS = 2_000
TOPIC_ID = Uuid(bytes(range(16)))


class Row(NamedTuple):
    name: str
    value: float
    unit: str


def new_log(directory: Path) -> Log:
    host, now_ms = LogHost(Files(64)), SystemClock().now_ms()
    return Log.open(("bench", 0), str(directory), host, LogConfig(), now_ms)


def template(record_bytes: int, records: int, *, idempotent: bool) -> bytearray:
    value = os.urandom(record_bytes)
    producer = (1, 0, 0) if idempotent else (-1, -1, -1)
    return bytearray(
        encode_batch(
            [(None, value)] * records,
            timestamp=SystemClock().now_ms(),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )
    )


def per_call(work: Callable[[], object], calls: int) -> float:
    """Microseconds per call."""
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - began) / calls * 1e6


def append_rows(log: Log, name: str, data: bytearray, records: int, sequence: int) -> list[Row]:
    calls = min(20_000, APPENDED_BYTES // len(data))
    now = SystemClock().now_ms()
    view = memoryview(data)

    def append() -> None:
        nonlocal sequence
        batch = Batch(view)
        if batch.producer_id >= 0:
            batch.base_sequence = sequence
            sequence += records
        log.appender.append([batch], 0, now)

    cost = per_call(append, calls)
    log.high_watermark = log.log_end_offset
    return [
        Row(f"append {name}", cost, "us"),
        Row(f"append {name}", len(data) / cost, "MB/s"),
    ]


def read_rows(log: Log, name: str, max_bytes: int) -> list[Row]:
    """In order through the whole log, as a consumer does."""
    began, read, calls, offset = time.perf_counter(), 0, 0, log.log_start_offset
    end = log.log_end_offset
    while offset < end:
        data = log.reader.read(offset, max_bytes, end, min_one=True, block=False).buffer
        read += len(data)
        calls += 1
        offset = last_offset(data) + 1
    seconds = time.perf_counter() - began
    return [
        Row(f"read {name}", seconds / calls * 1e6, "us"),
        Row(f"read {name}", read / seconds / 1e6, "MB/s"),
    ]


def last_offset(data: memoryview) -> int:
    at = 0
    while at + (size := batch_size(data, at)) < len(data):
        at += size
    return Batch(data[at:]).last_offset


def log_rows(root: Path) -> list[Row]:
    rows: list[Row] = []
    shapes = [
        ("100 B", 100, 1, False),
        ("16 KiB", 1024, 16, False),
        ("16 KiB idempotent", 1024, 16, True),
        ("1 MiB", 1024, 1000, False),
    ]
    for name, record_bytes, records, idempotent in shapes:
        directory = root / name.replace(" ", "-")
        log = new_log(directory)
        data = template(record_bytes, records, idempotent=idempotent)
        rows += append_rows(log, name, data, records, 0)
        rows += read_rows(log, name, 1 << 20)
        step = max(log.log_end_offset // 997, 1)
        offsets = iter(range(0, log.log_end_offset, step))

        def seek(log: Log = log, offsets: Iterator[int] = offsets) -> None:
            log.reader.read(next(offsets), 1, log.high_watermark, min_one=True, block=False)

        rows.append(Row(f"seek {name}", per_call(seek, min(900, log.log_end_offset // step)), "us"))
        log.close()
        began = time.perf_counter()
        new_log(directory)
        seconds = time.perf_counter() - began
        rows.append(Row(f"recover {name}", log.size / seconds / 1e6, "MB/s"))
        shutil.rmtree(directory)
    return rows


async def idle_rows(root: Path) -> list[Row]:
    executor = ThreadExecutor(2, "log")
    manager = LogManager([str(root)], SystemClock(), executor)
    await manager.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    for index in range(IDLE_PARTITIONS):
        manager.get_or_create("idle", index, TOPIC_ID, LogConfig())
    created = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    await manager.run_retention()
    retention = time.perf_counter() - began
    await manager.checkpoint_high_watermarks()
    began = time.perf_counter()
    await manager.checkpoint_high_watermarks()
    checkpoint = time.perf_counter() - began
    began = time.perf_counter()
    await manager.close()
    closed = time.perf_counter() - began
    manager = LogManager([str(root)], SystemClock(), executor)
    began = time.perf_counter()
    await manager.start()
    started = time.perf_counter() - began
    await manager.close()
    executor.close()
    each = 1e6 / IDLE_PARTITIONS
    return [
        Row("create a partition", created * each, "us"),
        Row("memory of an idle partition", (after - before) * 1024 / IDLE_PARTITIONS, "bytes"),
        Row("retention pass, per idle partition", retention * each, "us"),
        Row("unchanged checkpoint, per partition", checkpoint * each, "us"),
        Row("close, per idle partition", closed * each, "us"),
        Row("clean start, per idle partition", started * each, "us"),
    ]


def run() -> list[Row]:
    root = Path(tempfile.mkdtemp())
    try:
        rows = asyncio.run(idle_rows(root / "idle"))
        return rows + log_rows(root)
    finally:
        shutil.rmtree(root)


def main() -> int:
    for row in run():
        print(f"{row.name:40}{row.value:>12.1f} {row.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
