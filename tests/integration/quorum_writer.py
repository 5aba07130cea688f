"""A process that commits numbered records and prints each one when it is committed, until
killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from skylog.kernel.executor import ThreadExecutor
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.retention import Retention
from tests.unit.quorum.support import Rig, started, value

CONFIG = MetadataLogConfig(segment_bytes=20_000, retention=Retention(40_000, -1))
SNAPSHOT_EVERY = 100
IN_FLIGHT = 20


async def write(directory: Path) -> None:
    rig: Rig = await started(directory, config=CONFIG, executor=ThreadExecutor(2, "quorum"))
    node = rig.node
    state = [record for batch in await rig.load() for record in batch.records]
    ends: dict[int, int] = {}
    committed = asyncio.Event()

    def tell(high_watermark: int) -> None:
        for number in [number for number, end in ends.items() if end <= high_watermark]:
            del ends[number]
            sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        committed.set()

    node.on_high_watermark(tell)
    while True:
        number = len(state)
        state.append(value(number))
        ends[number] = node.append([state[-1]])
        if number % SNAPSHOT_EVERY == 0:
            end, so_far = node.end_offset, list(state)
            while node.high_watermark < end:
                committed.clear()
                await committed.wait()
            await node.write_snapshot(end, so_far)
        while len(ends) >= IN_FLIGHT:
            committed.clear()
            await committed.wait()
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
