"""APIs of our own between brokers (506–509): hand-over, pins, ranges, snapshots.

KIP-1164 has none for these. As with its APIs, a timed-out request has an unknown outcome.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, RangeRequest
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.outcomes import error_of, outcome_of
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.state import FileState
from skylog.diskless.coordinator.wire import coordinate_fields
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import BULK_PLANNED_BATCHES_PER_CALL, DISKLESS_SNAPSHOT_PIECE_BYTES
from skylog.quorum.snapshots import SnapshotId
from skylog.wire.messages import diskless_pin_files_response as pinned
from skylog.wire.messages import diskless_read_ranges_response as read
from skylog.wire.messages.diskless_fetch_snapshot_request import DisklessFetchSnapshotRequest
from skylog.wire.messages.diskless_fetch_snapshot_response import DisklessFetchSnapshotResponse
from skylog.wire.messages.diskless_pin_files_request import DisklessPinFilesRequest
from skylog.wire.messages.diskless_read_ranges_request import DisklessReadRangesRequest
from skylog.wire.messages.diskless_receive_file_request import DisklessReceiveFileRequest
from skylog.wire.messages.diskless_receive_file_response import DisklessReceiveFileResponse


class OwnApi:
    """One method per API. All calls come from the event loop."""

    def __init__(self, coordinators: DisklessCoordinators, executor: Executor) -> None:
        self._coordinators = coordinators
        self._executor = executor

    async def receive_file(
        self, request: DisklessReceiveFileRequest
    ) -> DisklessReceiveFileResponse:
        file = FileState(
            request.object_key,
            request.object_format,
            request.file_size,
            request.uploader_broker_id,
            tuple(request.owner_ids),
            log_offset=-1,
            committed_ms=-1,
        )
        received = self._coordinators.submit(request.coordinator_id, ask.ReceiveFile(file))
        outcome = await outcome_of(received, request.timeout_ms)
        return DisklessReceiveFileResponse(0, *error_of(outcome))

    async def pin_files(self, request: DisklessPinFilesRequest) -> pinned.DisklessPinFilesResponse:
        async def pin() -> list[KafkaError | None]:
            submit, coordinator_id = self._coordinators.submit, request.coordinator_id
            if request.released_keys:
                await submit(coordinator_id, ask.ReleasePins(request.released_keys))
            if not request.pins:
                return []
            pins = [
                PinRequest(
                    one.object_key,
                    one.writer_id,
                    one.epoch,
                    one.expires_ms,
                    [(topic.topic_id, index) for topic in one.topics for index in topic.partitions],
                )
                for one in request.pins
            ]
            results: list[KafkaError | None] = await submit(coordinator_id, ask.PinFiles(pins))
            return results

        outcome = await outcome_of(pin(), request.timeout_ms)
        if isinstance(outcome, KafkaError):
            return pinned.DisklessPinFilesResponse(0, *error_of(outcome))
        return pinned.DisklessPinFilesResponse(
            pins=[pinned.DisklessPinResult(*error_of(one)) for one in outcome]
        )

    async def read_ranges(
        self, request: DisklessReadRangesRequest
    ) -> read.DisklessReadRangesResponse:
        asked = [
            RangeRequest(
                one.topic_id,
                one.partition_index,
                one.start_offset,
                one.end_offset,
                one.min_timestamp,
            )
            for one in request.ranges
        ]
        batches = min(max(request.max_batches, 1), BULK_PLANNED_BATCHES_PER_CALL)
        look: ask.Look = (
            ask.PlanRanges(asked, request.split_bytes, batches)
            if request.split_bytes > 0
            else ask.LocateBatches(asked, batches)
        )
        looked = self._coordinators.look(request.coordinator_id, look)
        outcome: Any = await outcome_of(looked, request.timeout_ms)
        if isinstance(outcome, KafkaError):
            refused = read.DisklessReadRangeResult(outcome.code)
            return read.DisklessReadRangesResponse(ranges=[refused] * len(asked))
        return read.DisklessReadRangesResponse(ranges=[_range(one) for one in outcome])

    async def fetch_snapshot(
        self, request: DisklessFetchSnapshotRequest
    ) -> DisklessFetchSnapshotResponse:
        """A chunk of any replica's snapshot; the first chunk has the digest of the whole."""
        snapshots = self._coordinators.snapshots(request.coordinator_id)
        if snapshots is None:
            return DisklessFetchSnapshotResponse(error_code=ErrorCode.NOT_COORDINATOR)
        read_piece = partial(_read_piece, snapshots, request)
        outcome = await outcome_of(self._executor.run(read_piece), request.timeout_ms)
        if isinstance(outcome, KafkaError):
            return DisklessFetchSnapshotResponse(0, *error_of(outcome))
        return outcome


def _read_piece(
    snapshots: Snapshots, request: DisklessFetchSnapshotRequest
) -> DisklessFetchSnapshotResponse:
    """Blocks."""
    try:
        if request.end_offset >= 0:
            snapshot_id = SnapshotId(request.end_offset, max(request.epoch, 0))
        else:
            known = snapshots.ids()
            if not known:
                raise KafkaError(ErrorCode.SNAPSHOT_NOT_FOUND, "There is no snapshot.")
            snapshot_id = known[-1]
        position = max(request.position, 0)
        size_max = min(max(request.max_bytes, 1), DISKLESS_SNAPSHOT_PIECE_BYTES)
        data, size = snapshots.read_piece(snapshot_id, position, size_max)
        digest = snapshots.digest(snapshot_id) if position == 0 else b""
    except FileNotFoundError as error:
        raise KafkaError(ErrorCode.SNAPSHOT_NOT_FOUND, str(error)) from error
    return DisklessFetchSnapshotResponse(
        end_offset=snapshot_id.offset, epoch=snapshot_id.epoch, size=size, digest=digest, bytes=data
    )


def _range(one: PlannedRange | LocatedRange) -> read.DisklessReadRangeResult:
    result = read.DisklessReadRangeResult(
        one.error,
        one.next_offset,
        one.end_offset,
        log_start_offset=one.log_start_offset,
        high_watermark=one.high_watermark,
        wal_start_offset=one.wal_start_offset,
    )
    if isinstance(one, PlannedRange):
        result.skipped_bytes = one.skipped_bytes
        result.splits = [read.DisklessReadSplit(*split[:3]) for split in one.splits]
    else:
        result.batches = [read.DisklessReadBatch(*coordinate_fields(b)) for b in one.batches]
    return result
