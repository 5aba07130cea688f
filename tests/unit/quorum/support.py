"""Directories, nodes and records for the tests of the quorum."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import Executor, InlineExecutor
from skylog.log.files import Descriptor, Files
from skylog.quorum.config import QuorumConfig
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.node import QuorumNode
from skylog.quorum.storage import NodeStorage, format_if_new
from skylog.quorum.voters import Endpoint
from skylog.replicated.log import KeyValue, LoadedBatch
from skylog.wire.buffers import Buffer

NODE_ID = 1
CONTROLLER = Endpoint("CONTROLLER", "localhost", 9093)
NOW_MS = 1_750_000_000_000


def value(number: int, size: int = 20) -> KeyValue:
    return None, f"{number:0{size}d}".encode()


def open_storage(directory: Path, seed: int = 7) -> NodeStorage:
    return format_if_new([directory], NODE_ID, CONTROLLER, random.Random(seed), NOW_MS)


class Rig:
    """A node on a directory, and the failures that it reported."""

    def __init__(
        self,
        directory: Path,
        *,
        config: MetadataLogConfig | None = None,
        files: Files | None = None,
        executor: Executor | None = None,
        endpoint: Endpoint = CONTROLLER,
        clock: ManualClock | None = None,
    ) -> None:
        self.directory = directory
        self.storage = open_storage(directory)
        self.clock = clock or ManualClock(NOW_MS)
        self.failures: list[Exception] = []
        self.node = QuorumNode(
            self.storage,
            QuorumConfig((endpoint,), config or MetadataLogConfig()),
            files=files or Files(64),
            clock=self.clock,
            executor=executor or InlineExecutor(),
            rng=random.Random(1),
            on_failure=self.failures.append,
        )

    async def commit(self, *batches: list[KeyValue]) -> None:
        """Append and wait until everything is committed."""
        for batch in batches:
            self.node.append(batch)
        await self.settle()

    async def settle(self) -> None:
        if self.node.driver.syncing is not None:
            await self.node.driver.syncing

    def kill(self) -> None:
        """Kill the process at this point; its lock is released."""
        if self.node.driver.syncing is not None:
            self.node.driver.syncing.cancel()
        self.node._unlock()

    async def load(self) -> list[LoadedBatch]:
        return [batch async for batch in self.node.read_all()]

    async def values(self) -> list[bytes | None]:
        return [record[1] for batch in await self.load() for record in batch.records]


_running: dict[Path, Rig] = {}


async def started(directory: Path, **options: object) -> Rig:
    """A leading node. One that still runs on the directory is killed first."""
    before = _running.pop(directory, None)
    if before is not None:
        before.kill()
    rig = Rig(directory, **options)  # type: ignore[arg-type]
    await rig.node.start()
    _running[directory] = rig
    return rig


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below, to compare before and after."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


class CrashFiles(Files):
    """Remembers how much of each log file was synced, and can lose the rest."""

    def __init__(self) -> None:
        super().__init__(64)
        self.synced: dict[str, int] = {}
        self.fails: set[str] = set()
        self.syncs = 0

    def sync(self, path: str) -> None:
        if "sync" in self.fails:
            raise OSError("the disk does not answer")
        self.syncs += path.endswith(".log")
        super().sync(path)
        if Path(path).exists():
            self.synced[path] = Path(path).stat().st_size

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        if "write" in self.fails:
            raise OSError(28, "No space left on device")
        return super().pwritev(descriptor, buffers, position)

    def truncate(self, path: str, size: int) -> None:
        if "truncate" in self.fails:
            raise OSError("the disk does not answer")
        super().truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        if "rename" in self.fails:
            raise OSError("the disk does not answer")
        super().rename(source, target)

    def power_cut(self, directory: Path, torn: float = 0.0) -> None:
        """Keep what was synced of each log file, and a share of what was not."""
        for path in directory.glob("*.log"):
            size = path.stat().st_size
            kept = self.synced.get(str(path), 0)
            os.truncate(path, kept + int((size - kept) * torn))
