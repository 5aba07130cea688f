"""A metadata topic in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.tiered.ports import MetadataPage, MetadataValue


class MemoryMetadataTopic:
    """Implements ``MetadataTopic``; tests hold readers back and break it."""

    def __init__(self, partitions: int = 50, *, exists: bool = True) -> None:
        self.configured = partitions
        self.topic_id = Uuid(b"m" * 16)
        self.partition_count = partitions if exists else 0
        self.values: list[list[bytes | None]] = [[] for _ in range(partitions)]
        self.page_records = 1000
        # Readers see nothing at or behind this offset.
        self.visible_end: int | None = None
        self.failures: list[KafkaError] = []
        # So many reads find nothing: the replica that answers is behind.
        self.empty_reads = 0
        self.reads: list[tuple[int, int]] = []
        self.created = 0
        self._moved = asyncio.Event()

    async def create(self) -> None:
        self.created += 1
        self.partition_count = self.configured

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        self._fail()
        self.values[partition] += values
        self.moved()
        return len(self.values[partition]) - 1

    def moved(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def end_offset(self, partition: int) -> int:
        return len(self.values[partition])

    async def read(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        self._fail()
        self.reads.append((partition, offset))
        if offset > len(self.values[partition]):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.empty_reads:
            self.empty_reads -= 1
            return MetadataPage((), offset, 0, offset)
        end = self._end(partition)
        while offset >= end:
            await self._moved.wait()
            end = self._end(partition)
        end = min(end, offset + self.page_records)
        values = [MetadataValue(at, self.values[partition][at]) for at in range(offset, end)]
        return MetadataPage(values, end, 0, len(self.values[partition]))

    def _end(self, partition: int) -> int:
        end = len(self.values[partition])
        return end if self.visible_end is None else min(end, self.visible_end)

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    def recreate(self) -> None:
        self.topic_id = Uuid(b"n" * 16)
        self.values = [[] for _ in self.values]
        self.moved()
