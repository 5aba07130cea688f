"""A store and a plane in memory, with a clock that stands still, for tests of maintenance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from skylog.diskless.plane import CommitResult, FileToCommit, FindRequest
from skylog.diskless.planes.memory import MemoryPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.rng import random_uuid
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from tests.unit.diskless.batches import to_commit

GRACE_MS = 3_600_000
BATCH_BYTES = 100


async def no_rest(_seconds: float) -> None:
    """Passes do not pause in tests."""


class Bucket:
    """The store and plane of maintenance."""

    def __init__(
        self, seed: int = 1, *, clock: ManualClock | None = None, plane: Any = None
    ) -> None:
        self.clock = clock or ManualClock()
        self.rng = random.Random(seed)
        self.store = MemoryStore(self.clock)
        self.plane: Any = plane or MemoryPlane(self.clock)
        self.topic_id = random_uuid(self.rng)

    async def start(self, partitions: int = 2) -> Bucket:
        await self.plane.create_partitions([(self.topic_id, "t", partitions)])
        return self

    async def upload(self) -> ObjectKey:
        key = ObjectKey.new("wal", self.clock.now_ms(), self.rng)
        await self.store.put(key, b"x" * BATCH_BYTES * 8)
        return key

    async def commit(
        self, key: ObjectKey, partitions: Sequence[int] = (0,)
    ) -> Sequence[CommitResult]:
        """One record for each partition."""
        batches = [
            to_commit(
                key.text,
                topic_id=self.topic_id,
                partition=p,
                byte_offset=1 + at * BATCH_BYTES,
                byte_size=BATCH_BYTES,
                base_offset=0,
                last_offset=0,
                batch_max_timestamp=self.clock.now_ms(),
            )
            for at, p in enumerate(partitions)
        ]
        file = FileToCommit(object_key=key.text, size=BATCH_BYTES * 8, batches=batches)
        results: Sequence[CommitResult] = await self.plane.commit_file(file)
        return results

    async def write(self, partitions: Sequence[int] = (0,)) -> ObjectKey:
        key = await self.upload()
        await self.commit(key, partitions)
        return key

    async def delete_all(self) -> None:
        await self.plane.delete_records([(self.topic_id, p, -1) for p in range(2)])

    async def objects(self, prefix: str = "wal/") -> set[str]:
        return {info.key.text async for info in self.store.list(prefix)}

    async def live(self) -> set[str]:
        """Objects with live batches."""
        found: set[str] = set()
        partitions = [(self.topic_id, index) for index in range(2)]
        for partition, info in zip(partitions, await self.plane.log_info(partitions), strict=True):
            request = FindRequest(*partition, max(0, info.log_start_offset), 1 << 30)
            result = (await self.plane.find_batches([request], 1 << 30))[0]
            found |= {batch.extent.object_key for batch in result.batches}
        return found
