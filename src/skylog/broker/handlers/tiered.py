"""DescribeRemoteLog (512): the remote segments of a partition, as this broker knows them.

For operators, for the scan for orphans and for brokers that host no replica of the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.kernel.acl import AclOperation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import REMOTE_SEGMENTS_DESCRIBED_MAX
from skylog.tiered.segments import RemoteSegment, TopicIdPartition
from skylog.wire.messages.describe_remote_log_response import (
    DescribedRemoteSegment,
    DescribeRemoteLogResponse,
    RemoteHighestOffset,
    RemoteSegmentEpoch,
)

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest


def describe_remote_log(
    context: RequestContext, request: DescribeRemoteLogRequest
) -> DescribeRemoteLogResponse:
    """A page of segments by start offset and id, and the state they stand for."""
    if request.limit < 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a limit of {request.limit}")
    remote = _remote_log(context, TopicIdPartition(request.topic_id, request.partition_index))
    limit = min(request.limit, REMOTE_SEGMENTS_DESCRIBED_MAX)
    # One more than requested shows whether there are more.
    found = remote.page(
        request.start_offset,
        request.after_segment_id,
        limit + 1,
        finished_only=request.finished_only,
    )
    return DescribeRemoteLogResponse(
        topic=remote.topic,
        metadata_offset=remote.next_offset,
        fence=remote.fence,
        log_start_offset=remote.log_start,
        delete_state=-1 if remote.delete_state is None else remote.delete_state,
        highest_offsets=[RemoteHighestOffset(*entry) for entry in remote.highest_offsets()],
        has_more=len(found) > limit,
        segments=[_described(segment) for segment in found[:limit]],
    )


def _remote_log(context: RequestContext, partition: TopicIdPartition) -> RemoteLog:
    tiered = context.services.tiered
    remote = None if tiered is None else tiered.logs.get(partition)
    topic = context.services.image.topic_name(partition.topic_id)
    if topic is None and remote is not None:
        topic = remote.topic  # deleted, and its segments are being deleted
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    # Brokers that have no replica read the segments for their clients.
    is_broker = context.authorize_cluster(AclOperation.CLUSTER_ACTION, audit=False)
    if not is_broker and not context.allowed(topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if remote is None and not context.services.configs.log_config(topic).remote:
        # Not an error that clients try again.
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic} has no remote storage")
    if remote is None:
        raise KafkaError(
            ErrorCode.REPLICA_NOT_AVAILABLE,
            f"the remote log of {topic}-{partition.partition_index} is not known here",
        )
    return remote


def _described(segment: RemoteSegment) -> DescribedRemoteSegment:
    return DescribedRemoteSegment(
        segment_id=segment.id,
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_leader_epochs=[RemoteSegmentEpoch(*entry) for entry in segment.epochs],
        segment_size_in_bytes=segment.size,
        custom_metadata=segment.custom_metadata,
        remote_log_segment_state=segment.state,
        txn_index_empty=segment.txn_index_empty,
        copier_epoch=segment.copier_epoch,
    )
