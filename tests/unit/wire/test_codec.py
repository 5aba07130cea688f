"""Errors of the codec: lengths, nulls, tags, versions; and what it does not copy."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import WIRE_EMPTY_ELEMENTS_MAX, WIRE_RECORDS_JOINED_BYTES_MAX
from skylog.wire.buffers import chained
from skylog.wire.codec import decode, decode_at, encode, encode_parts
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.messages.update_features_request import UpdateFeaturesRequest
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


def produce(records: bytes | None) -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    topic = TopicProduceData(topic_id=Uuid(b"t" * 16), partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def test_defaults_are_not_shared() -> None:
    one, other = FetchResponse(), FetchResponse()
    one.responses.append(FetchableTopicResponse())
    assert other.responses == []
    read, again = (decode(FetchResponse, encode(other, 18), 18) for _ in range(2))
    read.node_endpoints.append(None)  # type: ignore[arg-type]
    assert again.node_endpoints == []


def test_messages_compare_and_print_by_their_fields() -> None:
    assert HeartbeatRequest("g", 1, "m") == HeartbeatRequest("g", 1, "m")
    assert HeartbeatRequest("g", 1, "m") != HeartbeatRequest("g", 2, "m")
    assert HeartbeatRequest() != ApiVersionsRequest()
    assert repr(HeartbeatRequest("g", 1, "m")) == (
        "HeartbeatRequest(group_id='g', generation_id=1, member_id='m', group_instance_id=None)"
    )


@pytest.mark.parametrize("version", [-1, 2, 14, 32767])
def test_only_versions_of_the_schema(version: int) -> None:
    with pytest.raises(ProtocolError, match="no version"):
        decode(ProduceRequest, b"", version)
    with pytest.raises(ProtocolError, match="no version"):
        encode(ProduceRequest(), version)


def test_records_are_slices_of_the_frame() -> None:
    frame = bytearray(b"head" + encode(produce(b"0123456789"), 13))
    request = decode(ProduceRequest, memoryview(frame), 13, 4)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    frame[frame.index(b"0")] = ord("x")
    assert records == b"x123456789"


def test_other_bytes_are_copies() -> None:
    frame = bytearray(encode(HeartbeatRequest("group", 1, "m"), 4))
    request = decode(HeartbeatRequest, memoryview(frame), 4)
    frame[:] = bytes(len(frame))
    assert request.group_id == "group"


def test_large_records_are_parts_of_their_own_and_small_ones_are_not() -> None:
    large = bytes(WIRE_RECORDS_JOINED_BYTES_MAX + 1)
    small = bytes(WIRE_RECORDS_JOINED_BYTES_MAX)
    values = [small, large, None, large, small]
    partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate(values)]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    parts = encode_parts(response, 18)
    assert [part is large for part in parts] == [False, True, False, True, False]
    assert b"".join(parts) == encode(response, 18)
    decoded = decode(FetchResponse, encode(response, 18), 18).responses[0].partitions
    assert [None if p.records is None else bytes(p.records) for p in decoded] == values


def test_records_in_several_places_are_sent_from_there() -> None:
    first, second = b"x" * WIRE_RECORDS_JOINED_BYTES_MAX, b"y" * 10
    large, small = chained([first, second], len(first) + len(second)), chained([b"a", b"b"], 2)
    values = [large, small, chained([first], len(first)), chained([], 0), large]
    partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate(values)]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    parts = encode_parts(response, 18)
    places = [at for at, part in enumerate(parts) if part is first]
    assert [parts[at + 1] is second for at in places] == [True, True]
    decoded = decode(FetchResponse, encode(response, 18), 18).responses[0].partitions
    whole = first + second
    assert [bytes(p.records or b"") for p in decoded] == [whole, b"ab", first, b"", whole]


def test_bytes_after_a_message_are_left_alone() -> None:
    data = encode(HeartbeatRequest("g", 1, "m"), 4)
    assert decode_at(HeartbeatRequest, data + b"more", 4, 0)[1] == len(data)


def test_null_where_none_is_allowed() -> None:
    with pytest.raises(ProtocolError):
        decode(HeartbeatRequest, b"\0" + bytes(8), 4)  # compact
    with pytest.raises(ProtocolError):
        decode(HeartbeatRequest, b"\xff\xff" + bytes(8), 0)
    with pytest.raises(ProtocolError):
        encode(HeartbeatRequest(None, 1, "m"), 4)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError):
        decode(ProduceRequest, b"\0\0\x01\0\0\0\0\0", 13)  # topics
    with pytest.raises(ProtocolError):
        encode(MetadataRequest(topics=None), 0)
    assert decode(MetadataRequest, encode(MetadataRequest(topics=None), 1), 1).topics is None


def test_strings_up_to_kafkas_limit() -> None:
    for version in (0, 4):
        longest = HeartbeatRequest("g" * 32767, 1, "m")
        assert decode(HeartbeatRequest, encode(longest, version), version) == longest
        with pytest.raises(ProtocolError):
            encode(HeartbeatRequest("g" * 32768, 1, "m"), version)
    too_long = b"\x81\x80\x02" + bytes(40_000)  # 32768, plus one
    with pytest.raises(ProtocolError, match="32768"):
        decode(HeartbeatRequest, too_long, 4)


def test_invalid_text() -> None:
    data = encode(HeartbeatRequest("group", 1, "m"), 4)
    with pytest.raises(ProtocolError):
        decode(HeartbeatRequest, data.replace(b"group", b"gr\xff\xfep"), 4)
    with pytest.raises(ProtocolError):
        encode(HeartbeatRequest("\ud800", 1, "m"), 4)


@pytest.mark.parametrize(
    "message",
    [
        HeartbeatRequest("g", 2**31, "m"),
        HeartbeatRequest("g", "1", "m"),  # type: ignore[arg-type]
        HeartbeatRequest(b"g", 1, "m"),  # type: ignore[arg-type]
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=None)]),  # type: ignore[arg-type]
        MetadataRequest(topics=["name"]),  # type: ignore[list-item]
    ],
)
def test_values_that_do_not_fit(message: Message) -> None:
    with pytest.raises(ProtocolError):
        encode(message, message.VERSIONS.high)


HEARTBEAT = encode(HeartbeatRequest("g", 1, "m"), 4)


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01\x63\x03abc",
        b"\x02\x63\x00\x63\x01z",  # the same twice
        b"\x02\x09\x00\x01\x00",  # out of order
        b"\x01\xff\xff\xff\xff\x0f\x00",  # the highest tag
        b"\x80\x00",  # none, in a longer encoding
    ],
)
def test_unknown_tags_are_skipped(tags: bytes) -> None:
    data = HEARTBEAT[:-1] + tags
    message, position = decode_at(HeartbeatRequest, data, 4, 0)
    assert position == len(data)
    assert encode(message, 4) == HEARTBEAT


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01",
        b"\x01\x63",
        b"\x01\x63\x02a",
        b"\x01\x63\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x1f",
        b"\xff\xff\xff\xff\xff\x01",
        b"\x01\xff\xff\xff\xff\xff\x01\x00",
    ],
)
def test_broken_tags(tags: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(HeartbeatRequest, HEARTBEAT[:-1] + tags, 4)


def fetch_tags(tags: bytes) -> PartitionData:
    """A fetch response whose only partition has the given tagged section."""
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    data = encode(response, 18)
    assert data.endswith(b"\0\0\0")
    return decode(FetchResponse, data[:-3] + tags + b"\0\0", 18).responses[0].partitions[0]


def test_known_tags_in_any_order_last_one_wins() -> None:
    epoch = b"\x00\x0d" + b"\0\0\0\x07" + bytes(7) + b"\x09" + b"\0"
    later = b"\x00\x0d" + b"\0\0\0\x08" + bytes(7) + b"\x0a" + b"\0"
    leader = b"\x01\x09" + b"\0\0\0\x01\0\0\0\x02" + b"\0"
    partition = fetch_tags(b"\x04" + leader + b"\x63\x01?" + epoch + later)
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 2)
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (8, 10)
    assert partition.snapshot_id.end_offset == -1


@pytest.mark.parametrize("size", [0x00, 0x0C, 0x0E, 0x7F])
def test_a_known_tag_of_a_wrong_size(size: int) -> None:
    with pytest.raises(ProtocolError):
        fetch_tags(b"\x01" + bytes((0, size)) + b"\0\0\0\x07" + bytes(7) + b"\x09\0" + bytes(200))


class Nothing(Struct):
    """No field in any version: an element that takes no bytes."""

    __slots__ = ()


class Nothings(Message):
    __slots__ = ("items",)
    VERSIONS = Versions(0, 0)
    FIELDS = (Field("items", Nothing, Versions(0, LAST), (), array=True),)

    def __init__(self) -> None:
        self.items: list[Nothing] = []


def test_elements_without_bytes_have_a_limit() -> None:
    most = WIRE_EMPTY_ELEMENTS_MAX
    assert len(decode(Nothings, most.to_bytes(4, "big"), 0).items) == most
    with pytest.raises(ProtocolError):
        decode(Nothings, (most + 1).to_bytes(4, "big"), 0)


def test_a_count_needs_its_elements_smallest_size() -> None:
    data = encode(UpdateFeaturesRequest(), 1)
    assert data == b"\0\0\xea\x60\x01\0\0"
    with pytest.raises(ProtocolError, match="feature_updates"):
        decode(UpdateFeaturesRequest, data[:4] + b"\x04" + bytes(11), 1)  # 3 of at least 5 bytes
