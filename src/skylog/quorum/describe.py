"""The answer to DescribeQuorum: pure."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.quorum.leading import OBSERVER_AGE_MS_MAX
from skylog.quorum.states import Leader, Progress, State
from skylog.quorum.voters import ReplicaKey, VoterSet
from skylog.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)


def describe_quorum(
    state: State, voters: VoterSet, local: ReplicaKey, now_ms: int, offset_ms: int = 0
) -> DescribeQuorumResponse:
    """Only the leader knows the progress of the others.

    ``offset_ms`` converts the machine's time to wall-clock time.
    """
    if not isinstance(state, Leader):
        refused = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(
            topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[refused])]
        )
    own = voters.key_of(local) or local

    def replica(key: ReplicaKey) -> ReplicaState:
        progress = state.progress.get(key, Progress(key))
        seen_ms, caught_up_ms = progress.last_fetch_ms, progress.last_caught_up_ms
        if key == own:
            # The leader has always just fetched from itself.
            seen_ms = caught_up_ms = now_ms
        return ReplicaState(
            replica_id=key.id,
            replica_directory_id=key.directory_id,
            log_end_offset=progress.end_offset,
            last_fetch_timestamp=-1 if seen_ms < 0 else seen_ms + offset_ms,
            last_caught_up_timestamp=-1 if caught_up_ms < 0 else caught_up_ms + offset_ms,
        )

    observers = [
        progress.key
        for progress in state.progress.values()
        if progress.key not in voters and now_ms - progress.last_fetch_ms <= OBSERVER_AGE_MS_MAX
    ]
    partition = PartitionData(
        leader_id=local.id,
        leader_epoch=state.epoch,
        high_watermark=-1 if state.high_watermark is None else state.high_watermark,
        current_voters=[replica(key) for key in voters.keys],
        observers=[replica(key) for key in observers],
    )
    return DescribeQuorumResponse(
        topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=_nodes(voters),
    )


def _nodes(voters: VoterSet) -> list[Node]:
    return [
        Node(
            node_id=voter.key.id,
            listeners=[
                Listener(name=each.listener, host=each.host, port=each.port)
                for each in voter.endpoints
            ],
        )
        for voter in voters.voters
    ]
