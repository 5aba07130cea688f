"""The APIs of the diskless coordinators (93–98, 100; 506–509), used between brokers.

They are served only on the inter-broker listener and never offered by ApiVersions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from skylog.broker.assembly.diskless_planes import Coordination
from skylog.broker.net.context import RequestContext
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages import diskless_commit_file_response as commit
from skylog.wire.messages import diskless_create_partitions_response as create
from skylog.wire.messages import diskless_delete_records_response as delete
from skylog.wire.messages import diskless_delete_topics_response as topics
from skylog.wire.messages import diskless_describe_files_response as describe
from skylog.wire.messages import diskless_find_batches_response as find
from skylog.wire.messages import diskless_list_offsets_response as offsets
from skylog.wire.messages import diskless_read_ranges_response as ranges
from skylog.wire.schema import Message

Handler = Callable[[RequestContext, Any], Awaitable[Any]]


def _coordination(context: RequestContext) -> Coordination:
    found = context.services.diskless.coordination
    if found is None:  # this broker's control plane has no coordinators
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    return found


def _handler(method: str) -> Handler:
    async def handle(context: RequestContext, request: Any) -> Any:
        return await getattr(_coordination(context).api, method)(request)

    return handle


create_partitions = _handler("create_partitions")
delete_topics = _handler("delete_topics")
commit_file = _handler("commit_file")
delete_records = _handler("delete_records")
list_offsets = _handler("list_offsets")
find_batches = _handler("find_batches")
describe_files = _handler("describe_files")


def _own_handler(method: str) -> Handler:
    async def handle(context: RequestContext, request: Any) -> Any:
        return await getattr(_coordination(context).own_api, method)(request)

    return handle


receive_file = _own_handler("receive_file")
pin_files = _own_handler("pin_files")
read_ranges = _own_handler("read_ranges")
fetch_snapshot = _own_handler("fetch_snapshot")


def _told(error: KafkaError) -> tuple[int, str]:
    return error.code, error.message or error.code.name


def create_partitions_failed(request: Any, error: KafkaError) -> Message:
    return create.DisklessCreatePartitionsResponse(
        topics=[
            create.DisklessCreatableTopicResult(topic.topic_id, *_told(error))
            for topic in request.topics
        ]
    )


def delete_topics_failed(request: Any, error: KafkaError) -> Message:
    return topics.DisklessDeleteTopicsResponse(
        responses=[
            topics.DisklessDeletableTopicResult(topic.topic_id, *_told(error))
            for topic in request.topics
        ]
    )


def commit_file_failed(request: Any, error: KafkaError) -> Message:
    return commit.DisklessCommitFileResponse(
        batches=[
            commit.DisklessCommitBatchResult(*_told(error), -1, -1, -1) for _ in request.batches
        ]
    )


def delete_records_failed(request: Any, error: KafkaError) -> Message:
    return delete.DisklessDeleteRecordsResponse(
        topics=[
            delete.DisklessDeleteRecordsTopicResult(
                topic.topic_id,
                [
                    delete.DisklessDeleteRecordsPartitionResult(
                        partition.partition_index, -1, *_told(error)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def list_offsets_failed(request: Any, error: KafkaError) -> Message:
    return offsets.DisklessListOffsetsResponse(
        topics=[
            offsets.DisklessListOffsetsTopicResult(
                topic.topic_id,
                [
                    offsets.DisklessListOffsetsPartitionResult(
                        partition.partition_index, *_told(error)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def find_batches_failed(request: Any, error: KafkaError) -> Message:
    return find.DisklessFindBatchesResponse(
        topics=[
            find.DisklessFindBatchesTopicResult(
                topic.topic_id,
                [
                    find.DisklessFindBatchesPartitionResult(partition.partition_index, error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def read_ranges_failed(request: Any, error: KafkaError) -> Message:
    refused = ranges.DisklessReadRangeResult(error.code)
    return ranges.DisklessReadRangesResponse(ranges=[refused] * len(request.ranges))


def describe_files_failed(request: Any, error: KafkaError) -> Message:
    return describe.DisklessDescribeFilesResponse(
        files=[
            describe.DisklessFileResult(file.object_key, *_told(error)) for file in request.files
        ]
    )
