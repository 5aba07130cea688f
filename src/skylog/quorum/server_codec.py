"""Kafka's messages of the quorum on the server side: decodes requests, encodes responses. Pure.

An error of the whole request (another cluster, another topic) is a KafkaError.
"""

from __future__ import annotations

from typing import Any, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.quorum import messages as m
from skylog.quorum.client_codec import NO_NODE
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter
from skylog.wire.messages import (
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    update_raft_voter_response,
    vote_response,
)
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from skylog.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from skylog.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from skylog.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from skylog.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from skylog.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from skylog.wire.messages.vote_request import VoteRequest
from skylog.wire.schema import Message

_FETCH_BY_TOPIC_ID: Final = 13


def parse(message: Message, version: int, cluster_id: str, listener: str) -> m.PeerRequest:
    """The decoded request; INCONSISTENT_CLUSTER_ID or INVALID_REQUEST if it is not for us."""
    asked: Any = message
    if asked.cluster_id is not None and asked.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This is cluster {cluster_id}, not the one in the request.",
        )
    match message:
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest():
            return _change(message, listener)
        case VoteRequest():
            part = _only_partition(asked.topics)
            return m.VoteRequest(
                ReplicaKey(part.replica_id, part.replica_directory_id),
                part.replica_epoch,
                part.last_offset_epoch,
                part.last_offset,
                part.pre_vote,
                _voter(asked.voter_id, part.voter_directory_id),
            )
        case BeginQuorumEpochRequest():
            part = _only_partition(asked.topics)
            return m.BeginEpochRequest(
                part.leader_id,
                part.leader_epoch,
                _endpoints(asked.leader_endpoints),
                _voter(asked.voter_id, part.voter_directory_id),
            )
        case EndQuorumEpochRequest():
            return _epoch_end(asked)
    return _fetch(asked, version)


def _epoch_end(asked: Any) -> m.EndEpochRequest:
    part = _only_partition(asked.topics)
    successors = [
        ReplicaKey(each.candidate_id, each.candidate_directory_id)
        for each in part.preferred_candidates
    ] or [ReplicaKey(each, ZERO_UUID) for each in part.preferred_successors]
    return m.EndEpochRequest(
        part.leader_id, part.leader_epoch, tuple(successors), _endpoints(asked.leader_endpoints)
    )


def _fetch(asked: Any, version: int) -> m.PeerRequest:
    if isinstance(asked, FetchSnapshotRequest):
        if len(asked.topics) != 1 or len(asked.topics[0].partitions) != 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        part = asked.topics[0].partitions[0]
        if (asked.topics[0].name, part.partition) != (CLUSTER_METADATA, 0):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        wanted = SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        replica = ReplicaKey(asked.replica_id, part.replica_directory_id)
        return m.FetchSnapshotRequest(replica, part.current_leader_epoch, wanted, part.position)
    if not isinstance(asked, FetchRequest) or len(asked.topics) != 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    topic = asked.topics[0]
    by_id = version >= _FETCH_BY_TOPIC_ID
    known = topic.topic_id == METADATA_TOPIC_ID if by_id else topic.topic == CLUSTER_METADATA
    if not known or len(topic.partitions) != 1 or topic.partitions[0].partition != 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    fetched = topic.partitions[0]
    replica_id = max(asked.replica_id, asked.replica_state.replica_id)
    return m.FetchRequest(
        ReplicaKey(replica_id, fetched.replica_directory_id),
        fetched.current_leader_epoch,
        fetched.fetch_offset,
        fetched.last_fetched_epoch,
        fetched.high_watermark,
    )


def _change(message: Any, listener: str) -> m.PeerRequest:
    key = ReplicaKey(message.voter_id, message.voter_directory_id)
    if key.id < 0 or key.directory_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A voter has an id and a directory id.")
    if isinstance(message, RemoveRaftVoterRequest):
        return m.RemoveVoterRequest(key)
    endpoints = _endpoints(message.listeners)
    if not any(each.listener == listener for each in endpoints):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The voter's address for listener {listener} is missing."
        )
    if isinstance(message, AddRaftVoterRequest):
        return m.AddVoterRequest(Voter(key, endpoints))
    feature = message.k_raft_version_feature
    least, greatest = feature.min_supported_version, feature.max_supported_version
    if not 0 <= least <= greatest:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The kraft.version range is empty.")
    return m.UpdateVoterRequest(
        Voter(key, endpoints, (least, greatest)), message.current_leader_epoch
    )


def _only_partition(topics: Any) -> Any:
    if (
        len(topics) != 1
        or topics[0].topic_name != CLUSTER_METADATA
        or len(topics[0].partitions) != 1
        or topics[0].partitions[0].partition_index != 0
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return topics[0].partitions[0]


def _voter(voter_id: int, directory_id: Uuid) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


def _endpoints(listed: Any) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(each.name, each.host, each.port) for each in listed)


# -- answers -----------------------------------------------------------------------------------


def answer(asked: Message, response: Any) -> Message:
    """The response message."""
    told = response.leadership
    leader_id = NO_NODE if told.leader_id is None else told.leader_id
    match response:
        case m.VoteResponse():
            vote = vote_response
            part = vote.PartitionData(0, response.error, leader_id, told.epoch, response.granted)
            topics = [vote.TopicData(CLUSTER_METADATA, [part])]
            return vote.VoteResponse(ErrorCode.NONE, topics, _nodes(vote, told))
        case m.EpochResponse():
            return _epoch(asked, response, leader_id)
        case m.FetchResponse():
            return _fetched(response, leader_id)
        case m.FetchSnapshotResponse():
            return _snapshot_fetched(response, leader_id)
    return _changed(asked, response, leader_id)


def _epoch(asked: Message, response: m.EpochResponse, leader_id: int) -> Message:
    told = response.leadership
    if isinstance(asked, BeginQuorumEpochRequest):
        begin = begin_quorum_epoch_response
        begun = begin.PartitionData(0, response.error, leader_id, told.epoch)
        topics = [begin.TopicData(CLUSTER_METADATA, [begun])]
        return begin.BeginQuorumEpochResponse(ErrorCode.NONE, topics, _nodes(begin, told))
    end = end_quorum_epoch_response
    ended = end.PartitionData(0, response.error, leader_id, told.epoch)
    ends = [end.TopicData(CLUSTER_METADATA, [ended])]
    return end.EndQuorumEpochResponse(ErrorCode.NONE, ends, _nodes(end, told))


def _fetched(response: m.FetchResponse, leader_id: int) -> Message:
    wire, told = fetch_response, response.leadership
    parted, snapshot = response.diverging, response.snapshot_id
    part = wire.PartitionData(
        0,
        response.error,
        response.high_watermark,
        log_start_offset=response.log_start_offset,
        diverging_epoch=wire.EpochEndOffset(*((parted.epoch, parted.end_offset) if parted else ())),
        current_leader=wire.LeaderIdAndEpoch(leader_id, told.epoch),
        snapshot_id=wire.SnapshotId(*((snapshot.offset, snapshot.epoch) if snapshot else ())),
        aborted_transactions=None,
        records=response.records or b"",
    )
    topics = [wire.FetchableTopicResponse(CLUSTER_METADATA, METADATA_TOPIC_ID, [part])]
    return wire.FetchResponse(responses=topics, node_endpoints=_nodes(wire, told))


def _snapshot_fetched(response: m.FetchSnapshotResponse, leader_id: int) -> Message:
    wire, told = fetch_snapshot_response, response.leadership
    found = response.snapshot_id
    part = wire.PartitionSnapshot(
        0,
        response.error,
        wire.SnapshotId(found.offset, found.epoch) if found else wire.SnapshotId(),
        wire.LeaderIdAndEpoch(leader_id, told.epoch),
        response.size,
        response.position,
        response.data,
    )
    topics = [wire.TopicSnapshot(CLUSTER_METADATA, [part])]
    return wire.FetchSnapshotResponse(topics=topics, node_endpoints=_nodes(wire, told))


def _changed(asked: Message, response: m.VoterResponse, leader_id: int) -> Message:
    if isinstance(asked, AddRaftVoterRequest):
        return AddRaftVoterResponse(0, response.error, response.message)
    if isinstance(asked, RemoveRaftVoterRequest):
        return RemoveRaftVoterResponse(0, response.error, response.message)
    wire, told = update_raft_voter_response, response.leadership
    where = told.endpoints[0] if told.endpoints else Endpoint("", "", 0)
    leader = wire.CurrentLeader(leader_id, told.epoch, where.host, where.port)
    return wire.UpdateRaftVoterResponse(0, response.error, leader)


def _nodes(wire: Any, told: m.Leadership) -> list[Any]:
    """The leader's address; the first is that of the controllers' listener."""
    if told.leader_id is None or not told.endpoints:
        return []
    where = told.endpoints[0]
    # Fetch responses also have a rack, which is not used here.
    return [wire.NodeEndpoint(node_id=told.leader_id, host=where.host, port=where.port)]
