"""Markers that end transactions, written to the partitions that this broker leads.

They come from transaction coordinators: by request, or from the one in this process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import CONSUMER_OFFSETS
from skylog.log.producers import Marker, TransactionEnd
from skylog.wire.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from skylog.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from skylog.broker.services import Services

TopicPartition = tuple[str, int]
# Error codes of a group coordinator that is not ready; transaction coordinators use others.
_NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


async def write_markers(
    services: Services, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write every marker that can be written, and wait until none of them can be lost."""
    answers: dict[int, dict[TopicPartition, ErrorCode]] = {}
    waits: list[tuple[asyncio.Future[None], dict[TopicPartition, ErrorCode], TopicPartition]] = []
    written = 0
    for marker in request.markers:
        end = _end(marker)
        codes = answers.setdefault(marker.producer_id, {})
        named = [(t.name, index) for t in marker.topics for index in t.partition_indexes]
        for place in dict.fromkeys(named):
            written += 1
            if written % limits.ANSWERS_PER_TURN == 0:
                await asyncio.sleep(0)  # yield to other tasks
            codes[place] = ErrorCode.NONE
            try:
                wait = _write(services, place, end)
            except KafkaError as error:
                codes[place] = error.code
                continue
            if wait is not None:
                waits.append((wait, codes, place))
    if waits:
        seconds = services.settings.node.request_timeout_ms / 1000
        await asyncio.gather(*(_settle(*wait, seconds) for wait in waits))
    return WriteTxnMarkersResponse([_result(*answer) for answer in answers.items()])


def _end(marker: WritableTxnMarker) -> TransactionEnd:
    return TransactionEnd(
        marker.producer_id,
        marker.producer_epoch,
        Marker(marker.coordinator_epoch, marker.transaction_result),
        marker.transaction_version,
    )


def _write(
    services: Services, place: TopicPartition, end: TransactionEnd
) -> asyncio.Future[None] | None:
    """The future to wait for, if any; KafkaError if nothing was written."""
    topic, index = place
    partition = services.partitions.leader(topic, index)
    partition.require_in_sync()
    if topic == CONSUMER_OFFSETS:
        return asyncio.ensure_future(services.groups.end_transaction(index, end))
    return partition.end_transaction(end, services.clock.now_ms())


async def _settle(
    wait: asyncio.Future[None],
    codes: dict[TopicPartition, ErrorCode],
    place: TopicPartition,
    seconds: float,
) -> None:
    try:
        await asyncio.wait_for(wait, seconds)
    except TimeoutError:
        codes[place] = ErrorCode.REQUEST_TIMED_OUT
    except KafkaError as error:
        is_late = error.code in _NOT_READY
        codes[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_late else error.code


def _result(producer_id: int, codes: dict[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name))
        topic.partitions.append(WritableTxnMarkerPartitionResult(index, code))
    return WritableTxnMarkerResult(producer_id, list(topics.values()))
