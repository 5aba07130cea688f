"""Messages of replicas survive a round trip, and messages for others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.quorum import messages as m
from skylog.quorum.client_codec import from_wire, to_wire
from skylog.quorum.server_codec import answer, parse
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter
from skylog.wire.apis import response_class
from skylog.wire.codec import decode, encode

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
KEY, OTHER = ReplicaKey(1, Uuid(b"a" * 16)), ReplicaKey(2, Uuid(b"b" * 16))
WHERE = (Endpoint("CONTROLLER", "host", 9093),)
TOLD = m.Leadership(7, 2, WHERE)
NONE = ErrorCode.NONE
PAIRS: list[tuple[m.PeerRequest, m.PeerResponse]] = [
    (m.VoteRequest(KEY, 7, 6, 20, True, OTHER), m.VoteResponse(NONE, TOLD, True)),
    (m.BeginEpochRequest(1, 7, WHERE, OTHER), m.EpochResponse(NONE, TOLD)),
    (
        m.EndEpochRequest(1, 7, (OTHER, KEY), WHERE),
        m.EpochResponse(ErrorCode.FENCED_LEADER_EPOCH, m.Leadership(8)),
    ),
    (
        m.FetchRequest(KEY, 7, 20, 6, 15),
        m.FetchResponse(NONE, TOLD, 19, 3, m.EpochEnd(5, 12), records=b""),
    ),
    (
        m.FetchRequest(KEY, 7, 20, 6, 15),
        m.FetchResponse(NONE, TOLD, 19, 3, snapshot_id=SnapshotId(12, 5), records=b""),
    ),
    (
        m.FetchSnapshotRequest(KEY, 7, SnapshotId(12, 5), 100),
        m.FetchSnapshotResponse(NONE, TOLD, SnapshotId(12, 5), 500, 100, b"bytes"),
    ),
]


@pytest.mark.parametrize(("request_", "response"), PAIRS)
def test_messages_survive_a_round_trip(request_: m.PeerRequest, response: m.PeerResponse) -> None:
    message = to_wire(request_, CLUSTER, 500, 1000)
    version = type(message).VERSIONS.high - type(message).LATEST_UNSTABLE
    heard: Any = decode(type(message), encode(message, version), version)
    assert parse(heard, version, CLUSTER, "CONTROLLER") == request_
    answered = answer(heard, response)
    cls = response_class(message.API_KEY)
    back = decode(cls, encode(answered, version), version)
    found: Any = from_wire(request_, back, "CONTROLLER")
    assert found == response or bytes(found.data) == response.data  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "request_",
    [
        m.AddVoterRequest(Voter(KEY, WHERE)),
        m.RemoveVoterRequest(KEY),
        m.UpdateVoterRequest(Voter(KEY, WHERE, (0, 1)), 7),
    ],
)
def test_changes_of_voters_survive_the_wire(request_: m.PeerRequest) -> None:
    message = to_wire(request_, CLUSTER, 500, 1000)
    assert parse(message, 0, CLUSTER, "CONTROLLER") == request_


def test_what_is_not_for_this_quorum_is_refused() -> None:
    def refused(message: Any, cluster_id: str = CLUSTER) -> ErrorCode:
        with pytest.raises(KafkaError) as raised:
            parse(message, 18, cluster_id, "CONTROLLER")
        return raised.value.code

    vote: Any = to_wire(PAIRS[0][0], CLUSTER, 0, 0)
    assert refused(vote, "AAAAAAAAAAAAAAAAAAAAAA") is ErrorCode.INCONSISTENT_CLUSTER_ID
    vote.topics[0].topic_name = "other"
    assert refused(vote) is ErrorCode.INVALID_REQUEST
    vote.topics = []
    assert refused(vote) is ErrorCode.INVALID_REQUEST
    fetch: Any = to_wire(PAIRS[3][0], CLUSTER, 0, 0)
    fetch.topics[0].topic_id = ZERO_UUID
    assert refused(fetch) is ErrorCode.INVALID_REQUEST
    add: Any = to_wire(m.AddVoterRequest(Voter(KEY, ())), CLUSTER, 0, 0)
    assert refused(add) is ErrorCode.INVALID_REQUEST
    add.voter_directory_id = ZERO_UUID
    assert refused(add) is ErrorCode.INVALID_REQUEST


def test_a_response_for_other_topics_is_ignored() -> None:
    empty = response_class(52)()
    with pytest.raises(ProtocolError):
        from_wire(PAIRS[0][0], empty, "CONTROLLER")
