"""A writer and a reader over an in-memory store and plane, for tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import CommitResult, FileToCommit
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.reader import DisklessReader, ObjectCache, ReadRequest
from skylog.diskless.writer import DisklessWriter, Item, WriterSettings
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid
from skylog.objects.memory import MemoryStore
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import decode_records, encode_batch

RNG = random.Random(7)
TOPIC_ID = random_uuid(RNG)


def item(
    value: bytes = b"v",
    partition: int = 0,
    *,
    topic: str = "t",
    topic_id: Uuid = TOPIC_ID,
    producer: tuple[int, int, int] = (-1, -1, -1),
    count: int = 1,
    timestamp_type: int = 0,
) -> Item:
    producer_id, epoch, sequence = producer
    data = encode_batch(
        [(b"k", value)] * count,
        timestamp=1_700_000_000_000,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return Item(topic, topic_id, partition, Batch(bytearray(data)), timestamp_type)


class WatchedPlane(MemoryPlane):
    """Records commits, and fails by script."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__(clock)
        self.commits: list[FileToCommit] = []
        self.failures: list[KafkaError | None] = []

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        self.commits.append(file)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None and not failure.ambiguous:
            raise failure
        results = await super().commit_file(file)
        if failure is not None:
            raise failure  # it took effect, but the response is lost
        return results


class Engine:
    """All parts but the broker."""

    def __init__(self, store: Any = None, **settings: Any) -> None:
        self.clock = SystemClock()
        self.plane = WatchedPlane(self.clock)
        self.memory = MemoryStore(self.clock)
        self.store = store(self.memory) if store else self.memory
        self.cache = ObjectCache(1 << 20)
        self.writer = DisklessWriter(
            WriterSettings(**settings),
            self.store,
            self.plane,
            clock=self.clock,
            rng=RNG,
            cache_put=self.cache.put,
        )
        self.reader = DisklessReader(self.plane, self.store, self.cache, self.clock)
        self.partitions = DisklessPartitions()

    async def start(self, partitions: int = 4) -> Engine:
        await self.plane.start()
        await self.plane.create_partitions([(TOPIC_ID, "t", partitions)])
        return self

    async def values(self, partition: int = 0, offset: int = 0) -> list[tuple[int, bytes | None]]:
        request = ReadRequest(TOPIC_ID, partition, offset, 1 << 20)
        result = (await self.reader.fetch([request], 1 << 20))[0]
        return records(result.records)

    def cold(self) -> DisklessReader:
        """A reader that has nothing in memory."""
        return DisklessReader(self.plane, self.store, ObjectCache(0), self.clock)


def records(data: Any) -> list[tuple[int, bytes | None]]:
    return [(r.offset, r.value) for b in split_batches(data) for r in decode_records(b)]


async def stored(engine: Engine) -> Sequence[bytes]:
    return [await engine.memory.get(info.key) async for info in engine.memory.list("wal/")]
