"""Coordinators on other brokers: converts requests to messages and responses to results.

Each kind of call has its own lanes, so that none waits behind another: commits (a lane for each
coordinator), finds, strict reads and changes, and background work.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, PlannedSplit
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator import wire
from skylog.diskless.coordinator.bundles import CommitBundles
from skylog.diskless.coordinator.calls import CoordinatorCalls
from skylog.diskless.plane import (
    DeleteRecordsResult,
    DescribeFileResult,
    FindRequest,
    FindResult,
    ListOffsetsResult,
    LogInfo,
    PruneResult,
    TopicPartition,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import DISKLESS_CALL_TIMEOUT_MS
from skylog.wire.messages import diskless_create_partitions_request as create
from skylog.wire.messages import diskless_delete_records_request as delete
from skylog.wire.messages import diskless_delete_topics_request as topics
from skylog.wire.messages import diskless_describe_files_request as describe
from skylog.wire.messages import diskless_find_batches_request as find
from skylog.wire.messages import diskless_list_offsets_request as offsets
from skylog.wire.messages import diskless_pin_files_request as pin
from skylog.wire.messages import diskless_read_ranges_request as ranges
from skylog.wire.messages.diskless_receive_file_request import DisklessReceiveFileRequest
from skylog.wire.schema import Message

FIND: Final = "find"
STRICT: Final = "strict"
BACKGROUND: Final = "background"
_first: Final = itemgetter(0)


class RemoteCoordinators:
    """All calls come from the event loop."""

    def __init__(self, calls: CoordinatorCalls) -> None:
        self._calls = calls
        self._bundles = CommitBundles(calls)

    async def close(self) -> None:
        await self._bundles.close()

    # Writes and strict reads

    async def submit(
        self, node_id: int, coordinator_id: int, request: ask.Write | ask.StrictRead
    ) -> Any:
        """As for a coordinator of this broker; NOT_COORDINATOR for what only the leader runs."""
        at = (node_id, coordinator_id)
        match request:
            case ask.CommitFile(file):
                return await self._bundles.commit(node_id, coordinator_id, file)
            case ask.ListOffsets():
                return await self._list_offsets(at, request)
            case ask.DeleteRecords(requests):
                return await self._delete_records(at, requests)
            case ask.PruneTo(requests):
                return await self._prune(at, requests)
            case ask.DescribeFiles(keys):
                return await self._describe_files(at, keys)
            case ask.CreatePartitions() | ask.DeleteTopics():
                return await self._change_topics(at, request)
            case ask.ReceiveFile():
                return await self._receive(at, request)
            case ask.PinFiles(pins):
                return await self._pin(at, pins, ())
            case ask.ReleasePins(keys):
                return await self._pin(at, (), keys)
            case _:
                raise _for_its_leader(request)

    async def _ask(
        self, at: tuple[int, int], request: Message, lane: str, *, changes: bool = False
    ) -> Any:
        node_id, coordinator_id = at
        return await self._calls.send(
            node_id,
            [coordinator_id],
            request,
            lane=lane,
            timeout_ms=DISKLESS_CALL_TIMEOUT_MS,
            changes=changes,
        )

    async def _list_offsets(
        self, at: tuple[int, int], request: ask.ListOffsets
    ) -> list[ListOffsetsResult]:
        asked = wire.by_topic(
            request.requests,
            _first,
            lambda topic_id, held: offsets.DisklessListOffsetsTopic(
                topic_id, [offsets.DisklessListOffsetsPartition(*one[1:]) for one in held]
            ),
        )
        message = offsets.DisklessListOffsetsRequest(
            asked, request.from_offset, DISKLESS_CALL_TIMEOUT_MS
        )
        response = await self._ask(at, message, STRICT)
        return [
            ListOffsetsResult(
                wire.error_code(one.error_code),
                one.timestamp,
                one.offset,
                wire.coordinate(one.batches[0]) if one.batches else None,
            )
            for one in wire.items_of(response.topics, len(request.requests))
        ]

    async def _delete_records(
        self, at: tuple[int, int], requests: Sequence[tuple[Any, int, int]]
    ) -> list[DeleteRecordsResult]:
        response = await self._ask(at, _deletion(requests), STRICT, changes=True)
        return [
            DeleteRecordsResult(wire.error_code(one.error_code), one.low_watermark)
            for one in wire.items_of(response.topics, len(requests))
        ]

    async def _prune(
        self, at: tuple[int, int], requests: Sequence[tuple[Any, int, int]]
    ) -> list[PruneResult]:
        message = _deletion(requests, wal_only=True)
        response = await self._ask(at, message, BACKGROUND, changes=True)
        return [
            PruneResult(wire.error_code(one.error_code), one.low_watermark)
            for one in wire.items_of(response.topics, len(requests))
        ]

    async def _describe_files(
        self, at: tuple[int, int], keys: Sequence[str]
    ) -> list[DescribeFileResult]:
        """Raises if a coordinator cannot say which files it knows."""
        files = [describe.DisklessFile(key) for key in keys]
        message = describe.DisklessDescribeFilesRequest(files, at[1], DISKLESS_CALL_TIMEOUT_MS)
        response = await self._ask(at, message, BACKGROUND)
        if len(response.files) != len(keys):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the response lacks some files")
        results = []
        for one in response.files:
            code = wire.error_code(one.error_code)
            if code not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
                raise wire.failure(code, one.error_message)
            results.append(DescribeFileResult(code, one.has_live_batches, one.pinned))
        return results

    async def _change_topics(
        self, at: tuple[int, int], request: ask.CreatePartitions | ask.DeleteTopics
    ) -> None:
        message: Message
        if isinstance(request, ask.DeleteTopics):
            gone = [topics.DisklessDeletableTopic(topic_id) for topic_id in request.topic_ids]
            message = topics.DisklessDeleteTopicsRequest(gone, at[1], DISKLESS_CALL_TIMEOUT_MS)
            answers = (await self._ask(at, message, BACKGROUND, changes=True)).responses
        else:
            # The coordinator creates those that cluster metadata assigns to it, below this number.
            wanted = [
                create.DisklessCreatableTopic(topic_id, name, max(indexes) + 1)
                for topic_id, name, indexes in request.topics
            ]
            message = create.DisklessCreatePartitionsRequest(
                wanted, at[1], DISKLESS_CALL_TIMEOUT_MS
            )
            answers = (await self._ask(at, message, BACKGROUND, changes=True)).topics
        for answer in answers:
            if answer.error_code:
                raise wire.failure(answer.error_code, answer.error_message)

    async def _receive(self, at: tuple[int, int], request: ask.ReceiveFile) -> None:
        if request.unclaimed:
            raise _for_its_leader(request)
        file = request.file
        message = DisklessReceiveFileRequest(
            at[1],
            file.object_key,
            file.format,
            file.size,
            file.uploader_broker_id,
            list(file.coordinator_ids),
            DISKLESS_CALL_TIMEOUT_MS,
        )
        response = await self._ask(at, message, BACKGROUND, changes=True)
        if response.error_code:
            raise wire.failure(response.error_code, response.error_message)

    async def _pin(
        self, at: tuple[int, int], pins: Sequence[PinRequest], released: Sequence[str]
    ) -> list[KafkaError | None]:
        message = pin.DisklessPinFilesRequest(
            at[1], [_pin(one) for one in pins], list(released), DISKLESS_CALL_TIMEOUT_MS
        )
        response = await self._ask(at, message, BACKGROUND, changes=True)
        if response.error_code:
            raise wire.failure(response.error_code, response.error_message)
        if len(response.pins) != len(pins):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "some pins are missing", ambiguous=True)
        return [
            wire.failure(one.error_code, one.error_message) if one.error_code else None
            for one in response.pins
        ]

    # Finds

    async def find(
        self, node_id: int, coordinator_id: int, request: ask.Find | ask.ForgetFiles
    ) -> Any:
        at = (node_id, coordinator_id)
        match request:
            case ask.FindBatches():
                return await self._find(at, request)
            case ask.DescribeLogs(partitions):
                return await self._describe_logs(at, partitions)
            case _:
                raise _for_its_leader(request)

    async def _find(self, at: tuple[int, int], request: ask.FindBatches) -> list[FindResult]:
        message = find_message(
            request.requests, request.fetch_max_bytes, request.max_batches_per_partition
        )
        response = await self._ask(at, message, FIND)
        found = wire.items_of(response.topics, len(request.requests))
        return [wire.find_result(one) for one in found]

    async def _describe_logs(
        self, at: tuple[int, int], partitions: Sequence[TopicPartition]
    ) -> list[LogInfo]:
        requests = [FindRequest(*partition, offset=0, max_bytes=0) for partition in partitions]
        response = await self._ask(at, find_message(requests, 0, 1), FIND)
        found = wire.items_of(response.topics, len(partitions))
        return [wire.log_info(one) for one in found]

    # Looks

    async def look(
        self, node_id: int, coordinator_id: int, request: ask.Look
    ) -> list[PlannedRange] | list[LocatedRange]:
        message = ranges.DisklessReadRangesRequest(
            coordinator_id,
            request.split_bytes if isinstance(request, ask.PlanRanges) else 0,
            request.max_batches,
            [
                ranges.DisklessReadRange(
                    one.topic_id,
                    one.partition,
                    one.start_offset,
                    one.end_offset,
                    one.min_timestamp,
                )
                for one in request.requests
            ],
            DISKLESS_CALL_TIMEOUT_MS,
        )
        response = await self._ask((node_id, coordinator_id), message, BACKGROUND)
        if len(response.ranges) != len(request.requests):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the response lacks some ranges")
        if isinstance(request, ask.PlanRanges):
            return [_planned(one) for one in response.ranges]
        return [_located(one) for one in response.ranges]


def find_message(
    requests: Sequence[FindRequest], fetch_max_bytes: int, max_batches: int
) -> find.DisklessFindBatchesRequest:
    asked = [
        find.DisklessFindBatchesTopic(
            topic_id,
            [
                find.DisklessFindBatchesPartition(one.partition, one.offset, one.max_bytes)
                for one in held
            ],
        )
        for topic_id, held in groupby(requests, key=lambda one: one.topic_id)
    ]
    return find.DisklessFindBatchesRequest(
        fetch_max_bytes, max_batches, asked, timeout_ms=DISKLESS_CALL_TIMEOUT_MS
    )


def _deletion(
    requests: Sequence[tuple[Any, int, int]], *, wal_only: bool = False
) -> delete.DisklessDeleteRecordsRequest:
    asked = wire.by_topic(
        requests,
        _first,
        lambda topic_id, held: delete.DisklessDeleteRecordsTopic(
            topic_id, [delete.DisklessDeleteRecordsPartition(*one[1:]) for one in held]
        ),
    )
    return delete.DisklessDeleteRecordsRequest(asked, DISKLESS_CALL_TIMEOUT_MS, wal_only)


def _for_its_leader(request: object) -> KafkaError:
    kind = type(request).__name__
    return KafkaError(ErrorCode.NOT_COORDINATOR, f"{kind} runs only on the coordinator's leader")


def _pin(request: PinRequest) -> pin.DisklessPin:
    return pin.DisklessPin(
        request.object_key,
        request.writer_id,
        request.epoch,
        request.expires_ms,
        wire.by_topic(
            request.partitions,
            _first,
            lambda topic_id, held: pin.DisklessPinTopic(topic_id, [index for _, index in held]),
        ),
    )


def _planned(one: Any) -> PlannedRange:
    return PlannedRange(
        wire.error_code(one.error_code),
        [PlannedSplit(s.start_offset, s.end_offset, s.byte_size) for s in one.splits] or (),
        one.next_offset,
        one.end_offset,
        one.skipped_bytes,
        one.log_start_offset,
        one.high_watermark,
        one.wal_start_offset,
    )


def _located(one: Any) -> LocatedRange:
    return LocatedRange(
        wire.error_code(one.error_code),
        [wire.coordinate(batch) for batch in one.batches] or (),
        one.next_offset,
        one.end_offset,
        one.log_start_offset,
        one.high_watermark,
        one.wal_start_offset,
    )
