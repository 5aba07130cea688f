"""kill −9 in the middle of appends: whatever was acknowledged is there afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.manager import LogManager
from tests.unit.log.support import read_values

ROOT = Path(__file__).parents[2]
TOPIC_ID = Uuid(b"the killed topic")

WRITER = """
import asyncio, sys
from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.manager import LogManager
from skylog.wire.batch import Batch
from skylog.wire.records import encode_batch

async def main():
    clock = SystemClock()
    manager = LogManager([sys.argv[1]], clock, ThreadExecutor(2, "log"))
    await manager.start()
    background = asyncio.create_task(manager.run())
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
    logs = [manager.get_or_create("t", n, Uuid(sys.argv[2].encode()), config) for n in range(3)]
    number = 0
    while True:
        for index, log in enumerate(logs):
            now = clock.now_ms()
            data = bytearray(encode_batch(
                [(None, b"%d" % number)] * 2, timestamp=now,
                producer_id=index, producer_epoch=0, base_sequence=2 * number))
            info = log.appender.append([Batch(memoryview(data))], 0, now)
            log.high_watermark = log.log_end_offset
            print(index, info.last_offset, flush=True)
        number += 1
        await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 500, 3000])
async def test_nothing_acknowledged_is_lost(tmp_path: Path, lines: int) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220 — the test has nothing else to do
        [sys.executable, "-c", WRITER, str(tmp_path), TOPIC_ID.decode()],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout is not None
    acknowledged = {0: -1, 1: -1, 2: -1}
    for _ in range(lines):
        index, offset = process.stdout.readline().split()
        acknowledged[int(index)] = int(offset)
    process.send_signal(signal.SIGKILL)
    # Lines that are still in the pipe are acknowledgements too.
    for line in process.stdout.read().splitlines(keepends=True):
        if line.endswith("\n"):
            index, offset = line.split()
            acknowledged[int(index)] = int(offset)
    process.wait()
    process.stdout.close()

    manager = LogManager([str(tmp_path)], SystemClock(), InlineExecutor())
    await manager.start()
    for index in range(3):
        log = manager.get_or_create("t", index, TOPIC_ID, LogConfig())
        assert log.log_end_offset > acknowledged[index]
        expected = [(n, b"%d" % (n // 2)) for n in range(log.log_end_offset)]
        assert read_values(log) == expected
        for producer in log.producers:
            assert producer.last_sequence == log.log_end_offset - 1
        again = [segment.offset_index(block=True).is_sane() for segment in log.segments]
        assert all(again)
    await manager.close()
