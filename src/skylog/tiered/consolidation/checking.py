"""Whether the objects that a job has put are the segment that it was granted.

The segment is about to be the only copy of its records, so nothing is taken on trust: the manifest
must be the text that this broker would have written, the objects must have its sizes, the indexes
must be indexes of this segment, and batches that were drawn when it was granted must have the bytes
that the WAL has. The job does not know which ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX, REMOTE_MANIFEST_BYTES_MAX
from skylog.log.checkpoints import Malformed, decode_snapshot
from skylog.objects.store import NotFound, ObjectError
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.layout.chunks import BadManifest
from skylog.tiered.layout.manifest import Manifest, decode_manifest
from skylog.tiered.reading.tables import DamagedIndexError, OffsetTable, open_table
from skylog.tiered.segments import IndexType, RemoteSegment

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.log.checkpoints import EpochStart
    from skylog.objects.keys import ObjectKey
    from skylog.objects.store import Buffer
    from skylog.tiered.consolidation.sampling import Sample, StoredBatch
    from skylog.tiered.segments import TopicIdPartition
    from skylog.tiered.storage import ObjectRemoteStorage

# Errors of a store that say nothing about what was put.
STORE_AWAY: Final = ErrorCode.KAFKA_STORAGE_ERROR
# What was put is not the segment.
NOT_THE_SEGMENT: Final = ErrorCode.INVALID_RECORD


class BatchReader(Protocol):
    async def served(self, partition: TopicIdPartition, batch: StoredBatch) -> Buffer | None:
        """The bytes of a batch as clients get them; None if it was deleted meanwhile.
        ``KafkaError``."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentCheck:
    """Checks one segment at a time; ``KafkaError``: INVALID_RECORD if it is not the segment."""

    storage: ObjectRemoteStorage
    batches: BatchReader
    executor: Executor

    async def run(
        self, segment: RemoteSegment, epochs: Sequence[EpochStart], samples: Sequence[Sample]
    ) -> bytes | None:
        """The custom metadata of its records. ``epochs``: all of the log."""
        manifest, custom_metadata = await self._manifest(segment)
        layout, size = self.storage.layout, manifest.indexes_size
        indexes_key = layout.index_key(segment, IndexType.OFFSET)
        await self._size(layout.log_key(segment), segment.size)
        await self._size(indexes_key, size)
        indexes = await self._get(indexes_key, 0, size)
        expected_epochs = epoch_checkpoint(epochs, segment.end_offset + 1)
        await self.executor.run(
            lambda: check_indexes(segment, manifest, indexes, expected_epochs, samples)
        )
        for sample in samples:
            await self._compare(segment, sample)
        return custom_metadata

    async def _manifest(self, segment: RemoteSegment) -> tuple[Manifest, bytes | None]:
        layout = self.storage.layout
        key = layout.manifest_key(segment)
        if key is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "segments of other assemblers need a store with manifests: the layout of"
                " LocalTieredStorage has none",
            )
        size = await self._head(key)
        if size > REMOTE_MANIFEST_BYTES_MAX:
            raise _other(f"{key}: a manifest of {size} bytes")
        data = await self._get(key, 0, size)
        try:
            manifest = decode_manifest(data)
        except BadManifest as error:
            raise _other(f"{key}: {error}") from error
        sizes = {kind: place.size for kind, place in manifest.indexes.items()}
        if (IndexType.TRANSACTION in sizes) is segment.txn_index_empty:
            raise _other(f"{key}: diskless topics have no aborted transactions")
        copy = layout.copy(segment, sizes)
        if copy.puts[-1].parts != (data,):
            raise _other(f"{key} is not the manifest of this segment")
        return manifest, copy.custom_metadata

    async def _size(self, key: ObjectKey, expected: int) -> None:
        stored = await self._head(key)
        if stored != expected:
            raise _other(f"{key} has {stored} bytes instead of {expected}")

    async def _compare(self, segment: RemoteSegment, sample: Sample) -> None:
        key = self.storage.layout.log_key(segment)
        expected, stored = await asyncio.gather(
            self.batches.served(segment.partition, sample.batch),
            self._get(key, sample.position, sample.end),
        )
        if expected is not None and stored != expected:
            raise _other(
                f"{key} has other records at position {sample.position} than the WAL at offset"
                f" {sample.batch.base_offset}"
            )

    async def _head(self, key: ObjectKey) -> int:
        try:
            return (await self.storage.store.head(key)).size
        except NotFound as error:
            raise _other(f"{key} was not put") from error
        except ObjectError as error:
            raise KafkaError(STORE_AWAY, str(error)) from error

    async def _get(self, key: ObjectKey, start: int, end: int) -> bytes:
        if start == end:
            return b""
        try:
            return await self.storage.store.get(key, start, end)
        except NotFound as error:
            raise _other(f"{key} was not put") from error
        except ObjectError as error:
            raise KafkaError(STORE_AWAY, str(error)) from error


def check_indexes(
    segment: RemoteSegment,
    manifest: Manifest,
    indexes: bytes,
    epochs: bytes,
    samples: Sequence[Sample],
) -> None:
    """INVALID_RECORD unless all of them are indexes of the segment."""

    def part(kind: IndexType) -> bytes:
        place = manifest.indexes[kind]
        return indexes[place.position : place.position + place.size]

    try:
        offsets = open_table(segment, IndexType.OFFSET, part(IndexType.OFFSET))
        open_table(segment, IndexType.TIMESTAMP, part(IndexType.TIMESTAMP))
        if manifest.indexes[IndexType.PRODUCER_SNAPSHOT].size > LOG_CHECKPOINT_BYTES_MAX:
            raise Malformed("a snapshot that is too large")
        decode_snapshot(part(IndexType.PRODUCER_SNAPSHOT))
    except (DamagedIndexError, Malformed) as error:
        raise _other(f"an index of segment {segment.id}: {error}") from error
    if part(IndexType.LEADER_EPOCH) != epochs:
        raise _other(f"segment {segment.id} has other leader epochs")
    if isinstance(offsets, OffsetTable):
        _check_positions(segment, offsets, samples)


def _check_positions(
    segment: RemoteSegment, offsets: OffsetTable, samples: Sequence[Sample]
) -> None:
    """A search that begins too late in the log would miss a batch that is there."""
    for position, batch in samples:
        found = offsets.floor(batch.base_offset)
        if found is not None and found[1] > position:
            raise _other(
                f"the offset index of segment {segment.id} is wrong at offset {batch.base_offset}"
            )


def _other(why: str) -> KafkaError:
    return KafkaError(NOT_THE_SEGMENT, why)
