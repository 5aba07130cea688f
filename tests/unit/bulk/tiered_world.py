"""The world of ``objects_world`` with a part of each partition in tiered segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import zstandard

from skylog.bulk.source import Piece, WindowSource
from skylog.bulk.verify import batches_from_broker
from skylog.client.bulk import BatchLocation, Located, Region, Split
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.objects.store import ObjectStore
from skylog.tiered.assembly import SegmentAssembler
from skylog.tiered.layout.chunks import VariableChunks
from skylog.tiered.layout.manifest import encode_manifest, plain_manifest
from skylog.tiered.layout.plan import AivenLayout, Layout
from skylog.tiered.reading.locating import cut
from skylog.tiered.reading.tables import OffsetTable
from skylog.tiered.segments import IndexType, RemoteSegment, TopicIdPartition
from tests.unit.bulk.objects_world import CREATED_MS, ID, WatchedStore, World, batch_of

URL = "s3://bucket/tiered"
CHUNK_BYTES = 300


def as_served(partition: int, base: int, count: int) -> bytes:
    """A batch with its offsets, as a log has it."""
    data = bytearray(batch_of(partition, base, count))
    data[0:8], data[12:16] = base.to_bytes(8), bytes(4)  # no checksum covers them
    return bytes(data)


@dataclass
class TieredWorld(World):
    """``tiers``: the locations in segments of each partition, which come first."""

    layout: Layout = field(default_factory=lambda: AivenLayout(chunk_size=CHUNK_BYTES))
    tiered_store: WatchedStore = field(default_factory=WatchedStore)
    tiers: dict[int, list[BatchLocation]] = field(default_factory=dict)
    fetched: list[tuple[int, int, int]] = field(default_factory=list)
    reachable: bool = True

    async def tier(
        self,
        partition: int,
        sizes: Sequence[int],
        *,
        extent_bytes: int = 100,
        compressed: bool = False,
    ) -> RemoteSegment:
        """A segment of batches with so many records, behind those that are tiered already."""
        base = self.tiered_end(partition)
        assembler, log = SegmentAssembler(base, 1), b""
        for count in sizes:
            data = as_served(partition, base, count)
            assembler.add(data)
            log += data
            base += count
        made = assembler.finish()
        segment = RemoteSegment(
            topic="t",
            partition=TopicIdPartition(ID, partition),
            id=Uuid(self.rng.randbytes(16)),
            start_offset=made.base_offset,
            end_offset=made.last_offset,
            broker_id=1,
            max_timestamp_ms=made.max_timestamp,
            event_timestamp_ms=CREATED_MS,
            epochs=((0, made.base_offset),),
            size=made.size,
            txn_index_empty=True,
        )
        await self._store(segment, log, compressed=compressed)
        key = self.layout.log_key(segment).text
        table = OffsetTable(segment, made.offset_index)
        self.tiers.setdefault(partition, []).extend(
            BatchLocation(
                key,
                one.start,
                one.end - one.start,
                one.base_offset,
                one.last_offset,
                -1,
                made.max_timestamp,
                0,
                Region.TIERED,
                segment.size,
            )
            for one in cut(segment, table, made.base_offset, made.last_offset + 1, extent_bytes)
        )
        return segment

    async def _store(self, segment: RemoteSegment, log: bytes, *, compressed: bool) -> None:
        manifest_key = self.layout.manifest_key(segment)
        if manifest_key is not None:
            manifest = plain_manifest(segment, CHUNK_BYTES, dict.fromkeys(IndexType, 1))
            if compressed:
                chunks = [
                    zstandard.compress(log[at : at + CHUNK_BYTES])
                    for at in range(0, len(log), CHUNK_BYTES)
                ]
                sizes = VariableChunks(CHUNK_BYTES, len(log), tuple(map(len, chunks)))
                manifest = replace(manifest, chunks=sizes, compression=True)
                log = b"".join(chunks)
            await self.tiered_store.put(manifest_key, [encode_manifest(manifest)])
        await self.tiered_store.put(self.layout.log_key(segment), [log])

    def tiered_end(self, partition: int) -> int:
        known = self.tiers.get(partition)
        return known[-1].last_offset + 1 if known else 0

    def end(self, partition: int) -> int:
        return super().end(partition) or self.tiered_end(partition)

    # The brokers

    def open_tiered(self, url: str) -> ObjectStore:
        assert url == URL
        if not self.reachable:
            raise ConfigError(f"{url} is not here")
        return self.tiered_store

    def fetch(self, split: Split) -> WindowSource:
        self.fetched.append((split.partition, split.start_offset, split.end_offset))
        return _Fetched(split)

    async def locate(self, split: Split, position: int) -> Located:
        self.located.append((split.partition, position))
        start = self.log_start.get(split.partition, 0)
        if position < start:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "deleted")
        known = [*self.tiers.get(split.partition, ()), *self.batches.get(split.partition, ())]
        found = [
            one
            for one in known
            if one.last_offset >= position and one.base_offset < split.end_offset
        ]
        page = tuple(found[: self.page])
        done = len(page) == len(found)
        after = split.end_offset if done else page[-1].last_offset + 1
        return Located(page, after, start, self.end(split.partition), URL)


class _Fetched:
    """What a broker returns: whole batches, from one before the offset asked for."""

    def __init__(self, split: Split) -> None:
        self._split: Split | None = split

    async def next(self) -> list[Piece] | None:
        split, self._split = self._split, None
        if split is None:
            return None
        first = max(split.start_offset - 1, 0)
        data = as_served(split.partition, first, split.end_offset + 1 - first)
        batches = list(batches_from_broker(split, data, split.start_offset))
        return [Piece(split, batches, len(data))]

    async def close(self) -> None:
        pass
