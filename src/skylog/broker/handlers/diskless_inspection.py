"""Inspection of diskless topics (504, 505): for operators, on every listener of a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from skylog.broker.assembly.diskless_engine import storage_url_of
from skylog.diskless.coordinator.inspection import merged_pages
from skylog.diskless.coordinator.remote import BACKGROUND
from skylog.diskless.coordinator.wire import failure
from skylog.diskless.files.orphans import orphan_threshold
from skylog.diskless.plane import FileInfo
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import DISKLESS_FILES_LISTED_MAX
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.wire.messages.describe_diskless_coordinators_request import (
    DescribeDisklessCoordinatorsRequest,
)
from skylog.wire.messages.describe_diskless_coordinators_response import (
    DescribedCoordinator,
    DescribeDisklessCoordinatorsResponse,
)
from skylog.wire.messages.list_diskless_files_request import ListDisklessFilesRequest
from skylog.wire.messages.list_diskless_files_response import (
    ListDisklessFilesResponse,
    ListedDisklessFile,
)

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.broker.services import Services
    from skylog.diskless.plane import CoordinatorInfo
    from skylog.wire.schema import Message

# The age of no object: nothing may be deleted now.
_NOTHING_MS: Final = 0
_NO_SCANS: Final = -1


async def describe_coordinators(
    context: RequestContext, request: DescribeDisklessCoordinatorsRequest
) -> DescribeDisklessCoordinatorsResponse:
    """Those of all brokers, or of this one; brokers that do not answer are left out."""
    services = context.services
    settings, engine = services.settings, services.diskless
    infos = await engine.plane.describe_coordinators()
    found = [_described(info, settings.node.node_id) for info in infos]
    whole = engine.plane.reaches_all()
    if not request.only_here:
        answers = await _others(services, DescribeDisklessCoordinatorsRequest(only_here=True))
        whole = whole and not any(isinstance(answer, KafkaError) for answer in answers)
        for answer in answers:
            if not isinstance(answer, KafkaError):
                found += answer.coordinators
    return DescribeDisklessCoordinatorsResponse(
        control_plane=settings.diskless.control_plane,
        storage_url=storage_url_of(settings),
        has_all_coordinators=whole,
        orphan_threshold_ms=_threshold_ms(services),
        coordinators=sorted(found, key=lambda one: one.partition_index),
    )


async def _others(services: Services, request: Message) -> list[Any]:
    """The answers of the other brokers that run part of the plane, or their errors."""
    nodes = services.diskless.plane.other_brokers()
    outcomes = await asyncio.gather(
        *(services.peers.send(node, request, lane=BACKGROUND) for node in nodes),
        return_exceptions=True,
    )
    return [_answer(outcome) for outcome in outcomes]


def _answer(outcome: Any) -> Any:
    if isinstance(outcome, BaseException) and not isinstance(outcome, KafkaError):
        raise outcome
    if not isinstance(outcome, KafkaError) and outcome.error_code:
        return failure(outcome.error_code, outcome.error_message)
    return outcome


def _threshold_ms(services: Services) -> int:
    """The age limit that a scan for orphans would use if it began now."""
    plane = services.diskless.plane
    if not plane.is_durable or services.image.topic(DISKLESS_METADATA) is None:
        return _NO_SCANS
    if not plane.reaches_all():
        return _NOTHING_MS
    return orphan_threshold(services.clock.now_ms(), services.settings.diskless.grace_ms)


def _described(info: CoordinatorInfo, node_id: int) -> DescribedCoordinator:
    return DescribedCoordinator(
        partition_index=info.coordinator_id,
        state=info.state,
        leader_id=node_id if info.coordinator_id >= 0 else -1,
        leader_epoch=info.leader_epoch,
        log_start_offset=info.log_start_offset,
        log_end_offset=info.log_end_offset,
        high_watermark=info.high_watermark,
        applied_offset=info.applied_offset,
        snapshot_offset=info.snapshot_offset,
        snapshot_timestamp_ms=info.snapshot_ms,
        partitions=info.partitions,
        batches=info.batches,
        live_files=info.live_files,
        free_files=info.free_files,
        producers=info.producers,
        pins=info.pins,
    )


async def list_files(
    context: RequestContext, request: ListDisklessFilesRequest
) -> ListDisklessFilesResponse:
    """Files that any coordinator knows; if one coordinator does not answer, the request fails."""
    if request.limit < 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a limit of {request.limit}")
    if not (request.after.isascii() and request.after.isprintable()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an invalid key")
    services = context.services
    limit = min(request.limit, DISKLESS_FILES_LISTED_MAX)
    # One more than requested shows whether there are more.
    pages = [await services.diskless.plane.list_files(request.after, limit + 1)]
    more = False
    if not request.only_here:
        asked = ListDisklessFilesRequest(request.after, limit, only_here=True)
        for answer in await _others(services, asked):
            if isinstance(answer, KafkaError):
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(answer))
            more = more or answer.has_more
            pages.append([_file(file) for file in answer.files])
    # Each page has the first files of its broker, so the first of all are among them.
    found = merged_pages(pages, limit + 1)
    return ListDisklessFilesResponse(
        has_more=more or len(found) > limit,
        files=[
            ListedDisklessFile(
                file.object_key,
                file.size,
                file.committed_ms,
                file.live_batches,
                file.live_bytes,
                file.marked_ms,
                list(file.coordinator_ids),
            )
            for file in found[:limit]
        ],
    )


def _file(file: ListedDisklessFile) -> FileInfo:
    return FileInfo(
        file.object_key,
        file.size,
        file.committed_timestamp_ms,
        file.live_batches,
        file.live_bytes,
        file.marked_timestamp_ms,
        file.owner_ids,
    )
