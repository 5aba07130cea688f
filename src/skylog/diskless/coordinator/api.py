"""The diskless coordinator's wire APIs (93-98, 100): requests to calls, results to responses.

For brokers only. Whatever goes wrong stands in the items of the response, as these APIs have no
error of their own; a request that takes too long has an unknown outcome, REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.runtime import CoordinatorRuntime
from skylog.diskless.plane import (
    BatchToCommit,
    CommitResult,
    ControlPlane,
    DescribeFileResult,
    FileToCommit,
    FindRequest,
    FindResult,
    TopicPartition,
)
from skylog.diskless.planes.coordinators import CoordinatorOf
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages import diskless_commit_file_request as commit_request
from skylog.wire.messages import diskless_commit_file_response as commit_response
from skylog.wire.messages import diskless_create_partitions_request as create_request
from skylog.wire.messages import diskless_create_partitions_response as create_response
from skylog.wire.messages import diskless_delete_records_request as delete_request
from skylog.wire.messages import diskless_delete_records_response as delete_response
from skylog.wire.messages import diskless_delete_topics_request as topics_request
from skylog.wire.messages import diskless_delete_topics_response as topics_response
from skylog.wire.messages import diskless_describe_files_request as describe_request
from skylog.wire.messages import diskless_describe_files_response as describe_response
from skylog.wire.messages import diskless_find_batches_request as find_request
from skylog.wire.messages import diskless_find_batches_response as find_response
from skylog.wire.messages import diskless_list_offsets_request as list_request
from skylog.wire.messages import diskless_list_offsets_response as list_response

T = TypeVar("T")


class DisklessApi:
    """One method per API. All calls come from the event loop."""

    def __init__(
        self,
        plane: ControlPlane,
        coordinators: DisklessCoordinators,
        coordinator_of: CoordinatorOf,
    ) -> None:
        self._plane = plane
        self._coordinators = coordinators
        self._coordinator_of = coordinator_of

    async def create_partitions(
        self, request: create_request.DisklessCreatePartitionsRequest
    ) -> create_response.DisklessCreatePartitionsResponse:
        outcomes = await asyncio.gather(
            *(
                _outcome(self._create(topic, request.coordinator_id), request.timeout_ms)
                for topic in request.topics
            )
        )
        return create_response.DisklessCreatePartitionsResponse(
            topics=[
                create_response.DisklessCreatableTopicResult(topic.topic_id, *_error(outcome))
                for topic, outcome in zip(request.topics, outcomes, strict=True)
            ]
        )

    async def _create(
        self, topic: create_request.DisklessCreatableTopic, coordinator_id: int
    ) -> None:
        """The partitions below the number that belong to the coordinators asked for."""
        runtimes = self._asked(coordinator_id)
        indexes: dict[int, list[int]] = {one.coordinator_id: [] for one in runtimes}
        for index in range(topic.num_partitions):
            number = self._coordinator_of((topic.topic_id, index))
            if number is None:  # cluster metadata has not come this far yet
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if number in indexes:
                indexes[number].append(index)
        for runtime in runtimes:
            held = indexes[runtime.coordinator_id]
            if held:
                part = ask.CreatePartitions([(topic.topic_id, topic.name, held)])
                await runtime.submit(part)

    async def delete_topics(
        self, request: topics_request.DisklessDeleteTopicsRequest
    ) -> topics_response.DisklessDeleteTopicsResponse:
        async def delete() -> None:
            ids = [topic.topic_id for topic in request.topics]
            for runtime in self._asked(request.coordinator_id):
                await runtime.submit(ask.DeleteTopics(ids))

        error = _error(await _outcome(delete(), request.timeout_ms))
        return topics_response.DisklessDeleteTopicsResponse(
            responses=[
                topics_response.DisklessDeletableTopicResult(topic.topic_id, *error)
                for topic in request.topics
            ]
        )

    async def commit_file(
        self, request: commit_request.DisklessCommitFileRequest
    ) -> commit_response.DisklessCommitFileResponse:
        outcome = await _outcome(self._commit(request), request.timeout_ms)
        results = _items(
            outcome,
            len(request.batches),
            lambda code, message: CommitResult(code, message=message),
        )
        return commit_response.DisklessCommitFileResponse(
            batches=[
                commit_response.DisklessCommitBatchResult(
                    result.error,
                    result.message,
                    result.assigned_base_offset,
                    result.log_append_time,
                    result.log_start_offset,
                    result.duplicate,
                )
                for result in results
            ]
        )

    async def _commit(
        self, request: commit_request.DisklessCommitFileRequest
    ) -> list[CommitResult]:
        batches = [_batch(batch) for batch in request.batches]
        numbers = {self._coordinator_of(batch.topic_partition) for batch in batches} - {None}
        if not numbers <= set(request.owner_ids):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"coordinators {numbers} are not among the owners {request.owner_ids}",
            )
        file = FileToCommit(
            object_key=request.object_key,
            size=request.file_size,
            batches=batches,
            format=request.object_format,
            uploader_broker_id=request.uploader_broker_id,
            owner_ids=request.owner_ids,
        )
        return await self._plane.commit_file(file)

    async def delete_records(
        self, request: delete_request.DisklessDeleteRecordsRequest
    ) -> delete_response.DisklessDeleteRecordsResponse:
        asked = [
            (topic.topic_id, partition.partition_index, partition.offset)
            for topic in request.topics
            for partition in topic.partitions
        ]
        outcome = await _outcome(self._plane.delete_records(asked), request.timeout_ms)
        results = iter(_items(outcome, len(asked), lambda code, _: (code, -1)))
        response = delete_response.DisklessDeleteRecordsResponse()
        for topic in request.topics:
            parts = []
            for partition in topic.partitions:
                code, low_watermark = next(results)
                parts.append(
                    delete_response.DisklessDeleteRecordsPartitionResult(
                        partition.partition_index, low_watermark, code, _message(outcome)
                    )
                )
            response.topics.append(
                delete_response.DisklessDeleteRecordsTopicResult(topic.topic_id, parts)
            )
        return response

    async def list_offsets(
        self, request: list_request.DisklessListOffsetsRequest
    ) -> list_response.DisklessListOffsetsResponse:
        asked = [
            (topic.topic_id, partition.partition_index, partition.timestamp)
            for topic in request.topics
            for partition in topic.partitions
        ]
        outcome = await _outcome(self._plane.list_offsets(asked), request.timeout_ms)
        results = iter(_items(outcome, len(asked), lambda code, _: (code, -1, -1, None)))
        response = list_response.DisklessListOffsetsResponse()
        for topic in request.topics:
            parts = []
            for partition in topic.partitions:
                code, timestamp, offset, _ = next(results)
                parts.append(
                    list_response.DisklessListOffsetsPartitionResult(
                        partition.partition_index, code, _message(outcome), timestamp, offset
                    )
                )
            response.topics.append(
                list_response.DisklessListOffsetsTopicResult(topic.topic_id, parts)
            )
        return response

    async def find_batches(
        self, request: find_request.DisklessFindBatchesRequest
    ) -> find_response.DisklessFindBatchesResponse:
        asked = [
            FindRequest(
                topic.topic_id,
                partition.partition_index,
                partition.offset,
                partition.max_partition_fetch_bytes,
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        outcome = await _outcome(self._find(request, asked), request.timeout_ms)
        results = iter(_items(outcome, len(asked), lambda code, _: FindResult(code)))
        response = find_response.DisklessFindBatchesResponse()
        for topic in request.topics:
            parts = [_found(partition, next(results)) for partition in topic.partitions]
            response.topics.append(
                find_response.DisklessFindBatchesTopicResult(topic.topic_id, parts)
            )
        return response

    async def _find(
        self, request: find_request.DisklessFindBatchesRequest, asked: Sequence[FindRequest]
    ) -> list[FindResult]:
        """With ``wait_ms``, an answer of nothing waits until a commit brings something."""
        limits = (request.fetch_max_bytes, request.max_batches_per_partition)
        wanted = {(one.topic_id, one.partition) for one in asked}
        moved = asyncio.Event()

        def listen(partition: TopicPartition, _high_watermark: int) -> None:
            if partition in wanted:
                moved.set()

        unsubscribe = self._coordinators.watch(listen) if request.wait_ms > 0 else None
        try:
            found = await self._plane.find_batches(asked, *limits)
            if unsubscribe is None or any(one.error or one.batches for one in found):
                return found
            try:
                async with asyncio.timeout(request.wait_ms / 1000):
                    await moved.wait()
            except TimeoutError:
                return found
            return await self._plane.find_batches(asked, *limits)
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def describe_files(
        self, request: describe_request.DisklessDescribeFilesRequest
    ) -> describe_response.DisklessDescribeFilesResponse:
        outcome = await _outcome(self._describe(request), request.timeout_ms)
        if isinstance(outcome, KafkaError):
            results = [DescribeFileResult(outcome.code)] * len(request.files)
            oldest_ms = None
        else:
            results, oldest_ms = outcome
        return describe_response.DisklessDescribeFilesResponse(
            files=[
                describe_response.DisklessFileResult(
                    file.object_key, result.error, _message(outcome), result.has_live_batches
                )
                for file, result in zip(request.files, results, strict=True)
            ],
            oldest_file_timestamp_ms=-1 if oldest_ms is None else oldest_ms,
        )

    async def _describe(
        self, request: describe_request.DisklessDescribeFilesRequest
    ) -> tuple[list[DescribeFileResult], int | None]:
        runtimes = self._asked(request.coordinator_id)
        described = ask.DescribeFiles([file.object_key for file in request.files])
        answers = [await runtime.submit(described) for runtime in runtimes]
        oldest = [await runtime.submit(ask.OldestFile()) for runtime in runtimes]
        results = []
        for index in range(len(request.files)):
            known = [answer[index] for answer in answers if not answer[index].error]
            live = any(one.has_live_batches for one in known)
            code = ErrorCode.NONE if known else ErrorCode.RESOURCE_NOT_FOUND
            results.append(DescribeFileResult(code, live))
        return results, min((ms for ms in oldest if ms is not None), default=None)

    def _asked(self, coordinator_id: int) -> list[CoordinatorRuntime]:
        """-1: all that are led here, which must be one at least."""
        numbers = self._coordinators.led() if coordinator_id < 0 else [coordinator_id]
        if not numbers:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return [self._coordinators.get(number) for number in numbers]


async def _outcome(work: Awaitable[T], timeout_ms: int) -> T | KafkaError:
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            return await work
    except TimeoutError:
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
    except KafkaError as error:
        return error


def _error(outcome: object) -> tuple[ErrorCode, str | None]:
    code = outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE
    return code, _message(outcome)


def _message(outcome: object) -> str | None:
    return str(outcome) if isinstance(outcome, KafkaError) else None


def _items(outcome: Any, count: int, result_of: Any) -> Any:
    """An error of the whole, in each item."""
    if isinstance(outcome, KafkaError):
        return [result_of(outcome.code, str(outcome))] * count
    return outcome


def _batch(batch: commit_request.DisklessCommitBatch) -> BatchToCommit:
    return BatchToCommit(
        batch.topic_id,
        batch.partition_index,
        batch.byte_offset,
        batch.size,
        batch.base_offset,
        batch.last_offset,
        batch.batch_max_timestamp,
        batch.timestamp_type,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.magic,
        batch.request_id,
    )


def _found(
    partition: find_request.DisklessFindBatchesPartition, result: FindResult
) -> find_response.DisklessFindBatchesPartitionResult:
    return find_response.DisklessFindBatchesPartitionResult(
        partition.partition_index,
        result.error,
        result.log_start_offset,
        result.high_watermark,
        [
            find_response.DisklessBatchCoordinate(
                batch.batch_id,
                batch.object_key,
                batch.magic,
                batch.byte_offset,
                batch.byte_size,
                batch.base_offset,
                batch.last_offset,
                batch.log_append_timestamp,
                batch.batch_max_timestamp,
                batch.timestamp_type,
            )
            for batch in result.batches
        ],
    )
