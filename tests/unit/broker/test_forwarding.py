"""Envelopes: a client's request that a broker forwards to the controller."""

from __future__ import annotations

import pytest

from skylog.broker.net.forwarding import (
    FORWARDABLE,
    host_of,
    is_elsewhere,
    new_envelope,
    opened,
    principal_of,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.apis import ApiKey
from skylog.wire.codec import encode
from skylog.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from skylog.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from skylog.wire.messages.envelope_request import EnvelopeRequest
from skylog.wire.messages.update_features_response import UpdateFeaturesResponse


@pytest.mark.parametrize(
    "principal", ["User:alice", "User:ANONYMOUS", "User:CN=a,O=b:c", "User:ä漢字"]
)
@pytest.mark.parametrize("host", ["10.1.2.3", "127.0.0.1", "2001:db8:0:0:0:0:0:1"])
def test_who_asks_arrives_as_it_was_sent(principal: str, host: str) -> None:
    envelope = new_envelope(b"frame", principal, host)
    assert bytes(envelope.request_data) == b"frame"
    assert (principal_of(envelope), host_of(envelope)) == (principal, host)


def test_the_principal_is_written_as_kafka_writes_it() -> None:
    # Version 0, then type and name as compact strings, no token, no tags.
    envelope = new_envelope(b"", "User:alice", "10.0.0.7")
    assert envelope.request_principal == b"\0\0\x05User\x06alice\0\0"
    assert envelope.client_host_address == bytes([10, 0, 0, 7])


@pytest.mark.parametrize("data", [None, b"", b"\0", b"\0\1\x05User\x06alice\0\0", b"\0\0\x7fx"])
def test_a_principal_that_cannot_be_read_is_refused(data: bytes | None) -> None:
    with pytest.raises(KafkaError) as refused:
        principal_of(EnvelopeRequest(b"", data, b"\x7f\0\0\1"))
    assert refused.value.code is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


@pytest.mark.parametrize("data", [b"", b"\1\2\3", b"\0" * 5, b"\0" * 17])
def test_an_invalid_address_is_refused(data: bytes) -> None:
    with pytest.raises(KafkaError) as refused:
        host_of(EnvelopeRequest(b"", b"", data))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_answer_is_read_in_its_own_version() -> None:
    answer = CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=36)])
    for version, header in ((4, b"\0\0\0\7"), (7, b"\0\0\0\7\0")):
        found = opened(ApiKey.CREATE_TOPICS, version, header + encode(answer, version))
        assert (found.topics[0].name, found.topics[0].error_code) == ("t", 36)


def test_where_an_answer_says_that_another_node_is_the_controller() -> None:
    here = CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=36)])
    there = CreateTopicsResponse(
        topics=[CreatableTopicResult("a"), CreatableTopicResult("b", error_code=41)]
    )
    assert not is_elsewhere(ApiKey.CREATE_TOPICS, here)
    assert is_elsewhere(ApiKey.CREATE_TOPICS, there)
    assert is_elsewhere(ApiKey.UPDATE_FEATURES, UpdateFeaturesResponse(error_code=41))
    not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert is_elsewhere(ApiKey.ADD_RAFT_VOTER, AddRaftVoterResponse(error_code=not_leader))
    assert not is_elsewhere(ApiKey.UPDATE_FEATURES, UpdateFeaturesResponse(error_code=not_leader))


def test_only_what_clients_ask_of_controllers_may_be_passed_on() -> None:
    assert ApiKey.CREATE_TOPICS in FORWARDABLE
    for key in (ApiKey.BROKER_REGISTRATION, ApiKey.FETCH, ApiKey.VOTE, ApiKey.ENVELOPE):
        assert key not in FORWARDABLE
