"""A metadata partition in memory, whose high watermark and disk the test controls."""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skylog.diskless.coordinator.links import Links
from skylog.diskless.coordinator.loading import MemoryFactory, SqliteFactory
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.replica import ReplicaStore
from skylog.diskless.coordinator.runtime import CoordinatorRuntime
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.coordinator.state import digest
from skylog.diskless.plane import FileToCommit, TopicPartition
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.log.files import Files
from skylog.objects.keys import ObjectKey
from skylog.wire.batch import Batch, patch_offset
from tests.unit.diskless.batches import to_commit

TOPIC = Uuid(b"topic-a---------")
T0: TopicPartition = (TOPIC, 0)
T1: TopicPartition = (TOPIC, 1)
METADATA_TOPIC = Uuid(b"metadata-topic--")


@dataclass
class FakeRead:
    buffer: bytes


class FakeLog:
    """Batches in a list. ``synced`` is what a power failure leaves."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.synced = 0
        self.sync_error: Exception | None = None
        self.reader = self.durability = self  # it plays all parts of a log

    @property
    def size(self) -> int:
        return sum(batch.size for batch in self.batches)

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> FakeRead:
        assert block
        assert min_one
        out = b""
        for batch in self.batches:
            if offset < batch.next_offset <= limit_offset:
                if out and len(out) + batch.size > max_bytes:
                    break
                out += bytes(batch.buffer)
        return FakeRead(out)

    def sync(self) -> None:
        if self.sync_error is not None:
            raise self.sync_error
        self.synced = self.log_end_offset


class FakePartition:
    """Implements ``NamedPartition``. ``held``: the high watermark moves only by ``commit``."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.isr: Sequence[int] = (0,)
        self.leader_epoch = 0
        self.topic_id = METADATA_TOPIC
        self.held = False
        self.append_error: Exception | None = None
        self.in_sync_error: KafkaError | None = None
        self._listeners: list[Callable[[int], None]] = []

    def append(self, batches: Sequence[Batch], now_ms: int) -> None:
        if self.append_error is not None:
            raise self.append_error
        for batch in batches:
            buffer = bytearray(batch.buffer)
            patch_offset(buffer, self.log.log_end_offset, self.leader_epoch)
            stored = Batch(bytes(buffer))
            self.log.batches.append(stored)
            self.log.log_end_offset = stored.next_offset
        if not self.held:
            self.commit()

    def commit(self, offset: int | None = None) -> None:
        """Followers have everything up to ``offset``, or to the end."""
        self.log.high_watermark = self.log.log_end_offset if offset is None else offset
        for listener in tuple(self._listeners):
            listener(self.log.high_watermark)

    def on_commit(self, listener: Callable[[int], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def delete_records_before(self, offset: int) -> int:
        log = self.log
        log.log_start_offset = max(log.log_start_offset, offset)
        log.batches = [batch for batch in log.batches if batch.next_offset > log.log_start_offset]
        return log.log_start_offset

    def require_in_sync(self) -> None:
        if self.in_sync_error is not None:
            raise self.in_sync_error

    def elect(self) -> None:
        """Elect a new leader that has everything."""
        self.leader_epoch += 1

    def truncate(self, offset: int) -> None:
        """Elect a new leader; what it lacks is lost."""
        log = self.log
        log.batches = [batch for batch in log.batches if batch.next_offset <= offset]
        log.log_end_offset = offset
        log.high_watermark = min(log.high_watermark, offset)
        log.synced = min(log.synced, offset)


class FakeTimers:
    """Timers that fire only when the test says so."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], None]] = []

    def start(self, delay_ms: int, action: Callable[[], None]) -> Any:
        self.actions.append(action)

    def fire(self) -> None:
        actions, self.actions = self.actions, []
        for action in actions:
            action()


@dataclass
class Home:
    """Coordinators of one broker, over partitions that outlive them."""

    directory: Path
    clock: ManualClock = field(default_factory=ManualClock)
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    in_memory: bool = False
    partitions: dict[int, FakePartition] = field(default_factory=dict)
    links: Links | None = None

    def __post_init__(self) -> None:
        self.timers = FakeTimers()
        self.rng = random.Random(7)
        self.files = Files(64)
        self.coordinators = self._coordinators()

    def _coordinators(self) -> DisklessCoordinators:
        def factory(path: Path, identity: str) -> Any:
            return MemoryFactory() if self.in_memory else SqliteFactory(path, identity)

        executor = InlineExecutor()
        store = ReplicaStore(self.directory, self.files, executor, lambda _name: executor, factory)
        return DisklessCoordinators(
            store, self.settings, self.clock, links=self.links, timers=self.timers
        )

    async def lead(self, *indexes: int) -> None:
        for index in indexes:
            partition = self.partitions.setdefault(index, FakePartition())
            self.coordinators.partition_led(index, partition)
        await self.coordinators.loaded()

    def runtime(self, index: int = 0) -> CoordinatorRuntime:
        return self.coordinators.get(index)

    async def digest(self, index: int = 0) -> str:
        """The cache's digest, once it has applied everything committed."""
        await self.runtime(index).caught_up()
        machine = self.runtime(index).machine
        assert machine is not None
        return digest(machine.state)

    @property
    def database(self) -> Path:
        return self.directory / f"{METADATA_TOPIC}-0" / "state.sqlite"

    def key(self, age_ms: int = 0) -> str:
        return ObjectKey.new("wal", self.clock.now_ms() - age_ms, self.rng).text

    def staged(self, age_ms: int = 0) -> str:
        return ObjectKey.staged("0" * 16, self.clock.now_ms() - age_ms, self.rng).text

    def file(
        self,
        *batches: tuple[TopicPartition, int],
        key: str | None = None,
        owners: Sequence[int] = (0,),
        **more: Any,
    ) -> FileToCommit:
        """Batches with these numbers of records."""
        placed = []
        key = key or self.key()
        for index, ((topic_id, partition), count) in enumerate(batches):
            fields: dict[str, Any] = {
                "topic_id": topic_id,
                "partition": partition,
                "byte_offset": 1 + index * 100,
                "byte_size": 100,
                "base_offset": 0,
                "last_offset": count - 1,
                "batch_max_timestamp": self.clock.now_ms(),
            }
            placed.append(to_commit(key, **(fields | more)))
        size = 1 + 100 * len(batches)
        return FileToCommit(object_key=key, size=size, batches=placed, coordinator_ids=owners)


@asynccontextmanager
async def home(**more: Any) -> AsyncIterator[Home]:
    with tempfile.TemporaryDirectory() as directory:
        opened = Home(Path(directory), **more)
        yield opened
        await opened.coordinators.close()
