"""The diskless coordinator's wire APIs (93-98, 100): requests to calls, results to responses.

For brokers only. These APIs have no top-level error, so errors are in the items of the response. If
a request takes too long, its outcome is unknown: REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.find_api import FindApi
from skylog.diskless.coordinator.outcomes import error_of, items, message_of, outcome_of
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.wire import (
    batch_result,
    batch_to_commit,
    coordinate_fields,
)
from skylog.diskless.plane import (
    CommitResult,
    ControlPlane,
    CoordinatorOf,
    DescribeFileResult,
    FileToCommit,
)
from skylog.diskless.rules.commits import check_file
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import DISKLESS_TOPICS_PER_WRITE_MAX
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
        self._finds = FindApi(plane, coordinators, coordinator_of)

    async def create_partitions(
        self, request: create_request.DisklessCreatePartitionsRequest
    ) -> create_response.DisklessCreatePartitionsResponse:
        """Many topics in one write: a starting broker asks for all of its topics."""
        response = create_response.DisklessCreatePartitionsResponse()
        for first in range(0, len(request.topics), DISKLESS_TOPICS_PER_WRITE_MAX):
            topics = request.topics[first : first + DISKLESS_TOPICS_PER_WRITE_MAX]
            known = [topic for topic in topics if self._indexes(topic)]
            created = self._create(known, request.coordinator_id)
            error = error_of(await outcome_of(created, request.timeout_ms))
            for topic in topics:
                code, why = error if topic in known else _not_created(topic)
                response.topics.append(
                    create_response.DisklessCreatableTopicResult(topic.topic_id, code, why)
                )
        return response

    def _indexes(self, topic: create_request.DisklessCreatableTopic) -> dict[int, list[int]] | None:
        """The requested partitions by coordinator; None if one has no coordinator yet."""
        indexes: dict[int, list[int]] = {}
        for index in range(topic.num_partitions):
            coordinator_id = self._coordinator_of((topic.topic_id, index))
            if coordinator_id is None:
                return None
            indexes.setdefault(coordinator_id, []).append(index)
        return indexes

    async def _create(
        self, topics: Sequence[create_request.DisklessCreatableTopic], asked_id: int
    ) -> None:
        """The partitions of the requested coordinators."""
        for coordinator_id in self._asked(asked_id):
            wanted = [
                (topic.topic_id, topic.name, held)
                for topic in topics
                if (held := (self._indexes(topic) or {}).get(coordinator_id))
            ]
            if wanted:
                await self._coordinators.submit(coordinator_id, ask.CreatePartitions(wanted))

    async def delete_topics(
        self, request: topics_request.DisklessDeleteTopicsRequest
    ) -> topics_response.DisklessDeleteTopicsResponse:
        async def delete() -> None:
            ids = [topic.topic_id for topic in request.topics]
            for coordinator_id in self._asked(request.coordinator_id):
                await self._coordinators.submit(coordinator_id, ask.DeleteTopics(ids))

        error = error_of(await outcome_of(delete(), request.timeout_ms))
        return topics_response.DisklessDeleteTopicsResponse(
            responses=[
                topics_response.DisklessDeletableTopicResult(topic.topic_id, *error)
                for topic in request.topics
            ]
        )

    async def commit_file(
        self, request: commit_request.DisklessCommitFileRequest
    ) -> commit_response.DisklessCommitFileResponse:
        if request.coordinators:
            return await self._commit_parts(request)
        outcome = await outcome_of(self._commit(request), request.timeout_ms)
        results = items(
            outcome,
            len(request.batches),
            lambda code, message: CommitResult(code, message=message),
        )
        return commit_response.DisklessCommitFileResponse(
            batches=[batch_result(result) for result in results]
        )

    async def _commit(
        self, request: commit_request.DisklessCommitFileRequest
    ) -> list[CommitResult]:
        file = _file(request)
        coordinator_ids = {
            self._coordinator_of(batch.topic_partition) for batch in file.batches
        } - {None}
        if not coordinator_ids <= set(request.owner_ids):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"coordinators {coordinator_ids} are not among the owners {request.owner_ids}",
            )
        return await self._plane.commit_file(file)

    async def _commit_parts(
        self, request: commit_request.DisklessCommitFileRequest
    ) -> commit_response.DisklessCommitFileResponse:
        """The sender has divided the file: each coordinator's part succeeds or fails by itself.

        After the timeout, known results are returned; the rest may be requested again.
        """

        async def commit(
            coordinator_id: int, part: FileToCommit
        ) -> list[CommitResult] | KafkaError:
            committed = self._coordinators.submit(coordinator_id, ask.CommitFile(part))
            return await outcome_of(committed, request.timeout_ms)

        parts = _parts(request)
        outcomes = await asyncio.gather(*(commit(*one) for one in parts.items()))
        response = commit_response.DisklessCommitFileResponse()
        for (coordinator_id, part), outcome in zip(parts.items(), outcomes, strict=True):
            response.coordinators.append(
                commit_response.DisklessCommitCoordinatorResult(coordinator_id, *error_of(outcome))
            )
            results = items(
                outcome,
                len(part.batches),
                lambda code, message: CommitResult(code, message=message),
            )
            response.batches += [batch_result(result) for result in results]
        return response

    async def delete_records(
        self, request: delete_request.DisklessDeleteRecordsRequest
    ) -> delete_response.DisklessDeleteRecordsResponse:
        asked = [
            (topic.topic_id, partition.partition_index, partition.offset)
            for topic in request.topics
            for partition in topic.partitions
        ]
        plane = self._plane
        change = plane.prune_to(asked) if request.wal_only else plane.delete_records(asked)
        outcome: Any = await outcome_of(change, request.timeout_ms)
        results = iter(items(outcome, len(asked), lambda code, _: (code, -1)))
        response = delete_response.DisklessDeleteRecordsResponse()
        for topic in request.topics:
            parts = []
            for partition in topic.partitions:
                code, low_watermark = next(results)
                parts.append(
                    delete_response.DisklessDeleteRecordsPartitionResult(
                        partition.partition_index, low_watermark, code, message_of(outcome)
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
        listed = self._plane.list_offsets(asked, from_offset=request.from_offset)
        outcome = await outcome_of(listed, request.timeout_ms)
        results = iter(items(outcome, len(asked), lambda code, _: (code, -1, -1, None)))
        response = list_response.DisklessListOffsetsResponse()
        for topic in request.topics:
            parts = []
            for partition in topic.partitions:
                code, timestamp, offset, chosen = next(results)
                parts.append(
                    list_response.DisklessListOffsetsPartitionResult(
                        partition.partition_index,
                        code,
                        message_of(outcome),
                        timestamp,
                        offset,
                        [list_response.DisklessListedBatch(*coordinate_fields(chosen))]
                        if chosen is not None
                        else [],
                    )
                )
            response.topics.append(
                list_response.DisklessListOffsetsTopicResult(topic.topic_id, parts)
            )
        return response

    async def find_batches(
        self, request: find_request.DisklessFindBatchesRequest
    ) -> find_response.DisklessFindBatchesResponse:
        return await self._finds.find_batches(request)

    async def describe_files(
        self, request: describe_request.DisklessDescribeFilesRequest
    ) -> describe_response.DisklessDescribeFilesResponse:
        outcome = await outcome_of(self._describe(request), request.timeout_ms)
        if isinstance(outcome, KafkaError):
            results = [DescribeFileResult(outcome.code)] * len(request.files)
            oldest_ms = None
        else:
            results, oldest_ms = outcome
        return describe_response.DisklessDescribeFilesResponse(
            files=[
                describe_response.DisklessFileResult(
                    file.object_key,
                    result.error,
                    message_of(outcome),
                    result.has_live_batches,
                    result.pinned,
                )
                for file, result in zip(request.files, results, strict=True)
            ],
            oldest_file_timestamp_ms=-1 if oldest_ms is None else oldest_ms,
        )

    async def _describe(
        self, request: describe_request.DisklessDescribeFilesRequest
    ) -> tuple[list[DescribeFileResult], int | None]:
        coordinator_ids = self._asked(request.coordinator_id)
        submit = self._coordinators.submit
        described = ask.DescribeFiles([file.object_key for file in request.files])
        answers = [await submit(coordinator_id, described) for coordinator_id in coordinator_ids]
        oldest = [
            await submit(coordinator_id, ask.OldestFile()) for coordinator_id in coordinator_ids
        ]
        results = []
        for index in range(len(request.files)):
            known = [answer[index] for answer in answers if not answer[index].error]
            live = any(one.has_live_batches for one in known)
            pinned = any(one.pinned for one in known)
            code = ErrorCode.NONE if known else ErrorCode.RESOURCE_NOT_FOUND
            results.append(DescribeFileResult(code, live, pinned))
        return results, min((ms for ms in oldest if ms is not None), default=None)

    def _asked(self, coordinator_id: int) -> list[int]:
        """-1: all that are led here; there must be at least one."""
        led = self._coordinators.led()
        coordinator_ids = led if coordinator_id < 0 else [coordinator_id]
        if not coordinator_ids or not set(coordinator_ids) <= set(led):
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return coordinator_ids


def _not_created(topic: create_request.DisklessCreatableTopic) -> tuple[ErrorCode, str | None]:
    if topic.num_partitions < 1:
        return ErrorCode.INVALID_PARTITIONS, f"{topic.num_partitions} partitions"
    # The cluster metadata here is too old.
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None


def _file(request: commit_request.DisklessCommitFileRequest) -> FileToCommit:
    return FileToCommit(
        object_key=request.object_key,
        size=request.file_size,
        batches=[batch_to_commit(batch, request.object_key) for batch in request.batches],
        format=request.object_format,
        uploader_broker_id=request.uploader_broker_id,
        coordinator_ids=request.owner_ids,
        known_only=request.known_only,
    )


def _parts(request: commit_request.DisklessCommitFileRequest) -> dict[int, FileToCommit]:
    """The coordinators' parts of the file, as divided by the sender."""
    file = _file(request)
    check_file(file)
    parts: dict[int, FileToCommit] = {}
    first = 0
    for one in request.coordinators:
        coordinator_id, last = one.coordinator_id, first + one.batch_count
        if coordinator_id in parts or coordinator_id not in request.owner_ids or not first <= last:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"invalid coordinator {coordinator_id} in this commit"
            )
        parts[coordinator_id] = replace(file, batches=file.batches[first:last])
        first = last
    if first != len(file.batches):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{len(file.batches)} batches, {first} for coordinators"
        )
    return parts
