"""How long a follower of a coordinator's log needs until it commits as the leader.

    python -m bench.failover [--batches 1000000]

A leader commits the batches in files of 64. Another broker follows the same log; at the end it does
not know yet that the last few files are committed. Then it becomes the leader. *Warm*: with the
copy that it has kept. *Cold*: without it, from the leader's snapshot and the log after it. The time
until the cluster fences the old leader (broker.session.timeout.ms) and elects another is not
included.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.coordinator import (
    CHUNK_FILES,
    CLOCK,
    METADATA,
    PARTITIONS,
    TOPIC,
    Producers,
    commit_all,
    row,
)
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.replica import ReplicaStore
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.kernel.executor import ThreadExecutor
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.wire.batch import Batch

# The end of the log, which the follower has but does not know to be committed.
BEHIND_FILES = 10


class Replica:
    """The metadata partition as one broker sees it; all of them share the log."""

    topic_id = METADATA
    isr: Sequence[int] = (0,)

    def __init__(self, log: Log, leader_epoch: int) -> None:
        self.log = log
        self.leader_epoch = leader_epoch
        self._listeners: list[Callable[[int], None]] = []

    def append(self, batches: Sequence[Batch], now_ms: int) -> Any:
        info = self.log.appender.append(batches, self.leader_epoch, now_ms)
        self.commit(self.log.log_end_offset)
        return info

    def commit(self, offset: int) -> None:
        self.log.high_watermark = offset
        for listener in tuple(self._listeners):
            listener(offset)

    def on_commit(self, listener: Callable[[int], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def require_in_sync(self) -> None:
        """There are no other replicas."""

    def delete_records_before(self, offset: int) -> int:
        return self.log.trimming.delete_records_before(offset)


class Brokers:
    """The brokers' coordinators over one log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files = Files(64)
        self._background = ThreadExecutor(2, "background")
        key, host = ("__diskless_metadata", 0), LogHost(self._files)
        self.log = Log.open(key, str(directory / "log"), host, LogConfig(), CLOCK.now_ms())

    def open(self, name: str) -> DisklessCoordinators:
        store = ReplicaStore(self.directory / name, self._files, self._background)
        return DisklessCoordinators(store, RuntimeSettings(snapshot_bytes=1 << 40), CLOCK)

    def snapshots_for(self, name: str) -> None:
        """A source of the leader's snapshots for a follower."""
        target = self.directory / name / f"{METADATA}-0"
        target.mkdir(parents=True)
        for path in (self.directory / "leader").glob("*/*.checkpoint"):
            shutil.copy(path, target)

    def close(self) -> None:
        self.log.close()
        self._background.close()


class TakeOver(NamedTuple):
    """Seconds since the broker's election."""

    loaded_ms: float
    committed_ms: float


async def take_over(
    brokers: Brokers, broker: DisklessCoordinators, epoch: int, producers: Producers
) -> TakeOver:
    replica = Replica(brokers.log, epoch)
    replica.commit(brokers.log.log_end_offset)
    began = time.monotonic()
    broker.partition_led(0, replica)
    await broker.loaded()
    loaded = time.monotonic()
    await broker.submit(0, ask.CommitFile(producers.file()))
    return TakeOver((loaded - began) * 1000, (time.monotonic() - began) * 1000)


async def measure(directory: Path, batches: int, *, cold: bool = True) -> dict[str, TakeOver]:
    """Keyed by whether the new leader has a copy."""
    brokers, producers = Brokers(directory), Producers(random.Random(1))
    leader, follower = brokers.open("leader"), brokers.open("warm")
    leading = Replica(brokers.log, 0)
    leader.partition_led(0, leading)
    await leader.loaded()
    runtime = leader.get(0)
    await runtime.submit(ask.CreatePartitions([(TOPIC, "t", range(PARTITIONS))]))
    while producers.batches < batches:
        await commit_all(runtime, producers.files(CHUNK_FILES))
    await runtime.snapshot()
    followed = Replica(brokers.log, 0)
    follower.partition_followed(0, followed)
    known = brokers.log.log_end_offset
    await commit_all(runtime, producers.files(BEHIND_FILES))
    brokers.log.high_watermark = known
    standby = follower.standby(0)
    while standby is None or standby.applied_offset < known:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.1)
    await leader.close()
    done = {"warm": await take_over(brokers, follower, 1, producers)}
    await follower.close()
    if cold:
        brokers.snapshots_for("cold")
        other = brokers.open("cold")
        done["cold"] = await take_over(brokers, other, 2, producers)
        await other.close()
    brokers.close()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description="Coordinator fail-over.")
    parser.add_argument("--batches", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        done = asyncio.run(measure(Path(directory), arguments.batches))
    for name, took in done.items():
        what = f"{arguments.batches:,} batches, {name}"
        row(f"{what}: until it is loaded", took.loaded_ms, "ms")
        row(f"{what}: until its first commit", took.committed_ms, "ms")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
