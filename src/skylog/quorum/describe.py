"""The answer to DescribeQuorum: pure."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.quorum.states import Leader, Progress, State
from skylog.quorum.voters import VoterSet
from skylog.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)


def describe_quorum(
    state: State, voters: VoterSet | None, local_id: int, now_ms: int
) -> DescribeQuorumResponse:
    """Only the leader knows how far the others are."""
    if not isinstance(state, Leader) or voters is None:
        refused = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(
            topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[refused])]
        )
    partition = PartitionData(
        leader_id=local_id,
        leader_epoch=state.epoch,
        high_watermark=-1 if state.high_watermark is None else state.high_watermark,
        current_voters=[
            _replica(progress, local_id, now_ms) for progress in state.progress.values()
        ],
    )
    return DescribeQuorumResponse(
        topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=[
            Node(
                node_id=voter.key.id,
                listeners=[
                    Listener(name=each.listener, host=each.host, port=each.port)
                    for each in voter.endpoints
                ],
            )
            for voter in voters.voters
        ],
    )


def _replica(progress: Progress, local_id: int, now_ms: int) -> ReplicaState:
    # The leader has always just fetched from itself.
    seen_ms = now_ms if progress.key.id == local_id else -1
    return ReplicaState(
        replica_id=progress.key.id,
        replica_directory_id=progress.key.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=seen_ms,
        last_caught_up_timestamp=seen_ms,
    )
