"""Requests between replicas as Kafka's messages, on the client side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skylog.kernel.errors import ErrorCode, ProtocolError
from skylog.kernel.ids import METADATA_TOPIC_ID, ZERO_UUID
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.quorum import messages as m
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, Voter
from skylog.wire.messages import (
    add_raft_voter_request,
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    update_raft_voter_request,
    vote_request,
)
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from skylog.wire.schema import Message

NO_NODE: Final = -1


def to_wire(request: m.PeerRequest, cluster_id: str, wait_ms: int, bytes_max: int) -> Message:
    """The message for a request."""
    match request:
        case m.VoteRequest():
            return _vote(request, cluster_id)
        case m.BeginEpochRequest():
            return _begin(request, cluster_id)
        case m.EndEpochRequest():
            return _end(request, cluster_id)
        case m.FetchRequest():
            return _fetch(request, cluster_id, wait_ms, bytes_max)
        case m.FetchSnapshotRequest():
            return _fetch_snapshot(request, cluster_id, bytes_max)
        case m.AddVoterRequest(voter):
            add = add_raft_voter_request
            return add.AddRaftVoterRequest(
                cluster_id,
                wait_ms,
                voter.key.id,
                voter.key.directory_id,
                [add.Listener(e.listener, e.host, e.port) for e in voter.endpoints],
                ack_when_committed=False,
            )
        case m.RemoveVoterRequest(key):
            return RemoveRaftVoterRequest(cluster_id, key.id, key.directory_id)
        case m.UpdateVoterRequest():
            return _update(request.voter, request.epoch, cluster_id)


def _vote(request: m.VoteRequest, cluster_id: str) -> Message:
    voter = request.voter
    partition = vote_request.PartitionData(
        0,
        request.epoch,
        request.candidate.id,
        request.candidate.directory_id,
        ZERO_UUID if voter is None else voter.directory_id,
        request.last_epoch,
        request.end_offset,
        request.pre_vote,
    )
    topics = [vote_request.TopicData(CLUSTER_METADATA, [partition])]
    return vote_request.VoteRequest(cluster_id, NO_NODE if voter is None else voter.id, topics)


def _begin(request: m.BeginEpochRequest, cluster_id: str) -> Message:
    wire, voter = begin_quorum_epoch_request, request.voter
    directory = ZERO_UUID if voter is None else voter.directory_id
    partition = wire.PartitionData(0, directory, request.leader_id, request.epoch)
    return wire.BeginQuorumEpochRequest(
        cluster_id,
        NO_NODE if voter is None else voter.id,
        [wire.TopicData(CLUSTER_METADATA, [partition])],
        [wire.LeaderEndpoint(e.listener, e.host, e.port) for e in request.endpoints],
    )


def _end(request: m.EndEpochRequest, cluster_id: str) -> Message:
    wire = end_quorum_epoch_request
    partition = wire.PartitionData(
        0,
        request.leader_id,
        request.epoch,
        [key.id for key in request.successors],
        [wire.ReplicaInfo(key.id, key.directory_id) for key in request.successors],
    )
    return wire.EndQuorumEpochRequest(
        cluster_id,
        [wire.TopicData(CLUSTER_METADATA, [partition])],
        [wire.LeaderEndpoint(e.listener, e.host, e.port) for e in request.endpoints],
    )


def _fetch(request: m.FetchRequest, cluster_id: str, wait_ms: int, bytes_max: int) -> Message:
    wire = fetch_request
    partition = wire.FetchPartition(
        0,
        request.epoch,
        request.offset,
        request.last_epoch,
        partition_max_bytes=bytes_max,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return wire.FetchRequest(
        cluster_id=cluster_id,
        replica_state=wire.ReplicaState(request.replica.id),
        max_wait_ms=wait_ms,
        max_bytes=bytes_max,
        topics=[wire.FetchTopic(CLUSTER_METADATA, METADATA_TOPIC_ID, [partition])],
    )


def _fetch_snapshot(request: m.FetchSnapshotRequest, cluster_id: str, bytes_max: int) -> Message:
    wire, wanted = fetch_snapshot_request, request.snapshot_id
    partition = wire.PartitionSnapshot(
        0,
        request.epoch,
        wire.SnapshotId(wanted.offset, wanted.epoch),
        request.position,
        request.replica.directory_id,
    )
    topics = [wire.TopicSnapshot(CLUSTER_METADATA, [partition])]
    return wire.FetchSnapshotRequest(cluster_id, request.replica.id, bytes_max, topics)


def _update(voter: Voter, epoch: int, cluster_id: str) -> Message:
    wire = update_raft_voter_request
    return wire.UpdateRaftVoterRequest(
        cluster_id,
        epoch,
        voter.key.id,
        voter.key.directory_id,
        [wire.Listener(each.listener, each.host, each.port) for each in voter.endpoints],
        wire.KRaftVersionFeature(*voter.kraft_versions),
    )


# -- answers -----------------------------------------------------------------------------------


def from_wire(request: m.PeerRequest, message: Any, listener: str) -> m.PeerResponse | None:
    """The decoded response; None if the request as a whole is refused.

    ProtocolError for an invalid response.
    """
    match request:
        case m.AddVoterRequest() | m.RemoveVoterRequest():
            # It has no leader, and so no epoch that a replica could adopt.
            return m.VoterResponse(_code(message.error_code), m.Leadership(NO_NODE))
        case m.UpdateVoterRequest():
            found = message.current_leader
            told = m.Leadership(found.leader_epoch, _leader(found.leader_id))
            return m.VoterResponse(_code(message.error_code), told)
    if message.error_code != ErrorCode.NONE:
        return None
    partition = _only_partition(message)
    match request:
        case m.VoteRequest():
            told = _told(partition.leader_epoch, partition.leader_id, message, listener)
            return m.VoteResponse(_code(partition.error_code), told, partition.vote_granted)
        case m.BeginEpochRequest() | m.EndEpochRequest():
            told = _told(partition.leader_epoch, partition.leader_id, message, listener)
            return m.EpochResponse(_code(partition.error_code), told)
        case m.FetchRequest():
            return _fetched(partition, _told_of(partition, message, listener))
        case m.FetchSnapshotRequest():
            return _snapshot_fetched(partition, _told_of(partition, message, listener))


def _fetched(partition: Any, told: m.Leadership) -> m.FetchResponse:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return m.FetchResponse(
        _code(partition.error_code),
        told,
        partition.high_watermark,
        partition.log_start_offset,
        m.EpochEnd(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        SnapshotId(snapshot.end_offset, snapshot.epoch)
        if snapshot.end_offset >= 0 and snapshot.epoch >= 0
        else None,
        records=partition.records or b"",
    )


def _snapshot_fetched(partition: Any, told: m.Leadership) -> m.FetchSnapshotResponse:
    snapshot = partition.snapshot_id
    return m.FetchSnapshotResponse(
        _code(partition.error_code),
        told,
        SnapshotId(snapshot.end_offset, snapshot.epoch),
        partition.size,
        partition.position,
        partition.unaligned_records or b"",
    )


def _only_partition(message: Any) -> Any:
    topics: Sequence[Any] = getattr(message, "responses", ()) or getattr(message, "topics", ())
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise ProtocolError(f"a quorum response for {len(topics)} topics")
    return topics[0].partitions[0]


def _told_of(partition: Any, message: Any, listener: str) -> m.Leadership:
    found = partition.current_leader
    return _told(found.leader_epoch, found.leader_id, message, listener)


def _told(epoch: int, leader_id: int, message: Any, listener: str) -> m.Leadership:
    endpoints = tuple(
        Endpoint(listener, each.host, each.port)
        for each in message.node_endpoints
        if each.node_id == leader_id and leader_id >= 0
    )
    return m.Leadership(epoch, _leader(leader_id), endpoints)


def _leader(leader_id: int) -> int | None:
    return None if leader_id < 0 else leader_id


def _code(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
