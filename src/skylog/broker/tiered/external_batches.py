"""The WAL of diskless partitions, for segments that jobs assemble."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.bulk import RangeRequest
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import BULK_LOCATED_BATCHES_MAX
from skylog.tiered.consolidation.external import BatchPage
from skylog.tiered.consolidation.sampling import StoredBatch

if TYPE_CHECKING:
    from skylog.diskless.plane import ControlPlane
    from skylog.diskless.reader.reader import DisklessReader
    from skylog.tiered.segments import TopicIdPartition


class PlaneBatches:
    """Fills ``tiered.consolidation.external.BatchSource``. ``looks``: as many lookups of bulk
    readers as there may be at once."""

    def __init__(
        self, plane: ControlPlane, reader: DisklessReader, looks: asyncio.Semaphore
    ) -> None:
        self._plane = plane
        self._reader = reader
        self._looks = looks

    async def located(self, partition: TopicIdPartition, start: int, end: int) -> BatchPage:
        request = RangeRequest(*partition, start, end)
        async with self._looks:
            (found,) = await self._plane.locate_batches([request], BULK_LOCATED_BATCHES_MAX)
        if found.error is not ErrorCode.NONE:
            what = f"offsets {start} to {end - 1}; the high watermark is {found.high_watermark}"
            raise KafkaError(found.error, what)
        return BatchPage([_batch(one) for one in found.batches], found.next_offset)

    async def served(self, partition: TopicIdPartition, batch: StoredBatch) -> bytearray | None:
        try:
            return await self._reader.read_batch(cast(BatchCoordinate, batch.place))
        except KafkaError:
            # Its object goes once all of its batches are deleted.
            (info,) = await self._plane.log_info([partition])
            if info.error is ErrorCode.NONE and info.log_start_offset > batch.last_offset:
                return None
            raise


def _batch(found: BatchCoordinate) -> StoredBatch:
    stamp = found.stamp
    return StoredBatch(
        stamp.base_offset, stamp.last_offset, found.extent.byte_size, stamp.timestamp, found
    )
