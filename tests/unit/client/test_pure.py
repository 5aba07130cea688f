"""Code without I/O: hashing keys, assigning partitions, sessions, records of a response."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.client.assignor import (
    assign_range,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from skylog.client.errors import check, error_of
from skylog.client.fetch_session import FetchSession, Wanted
from skylog.client.metadata import TopicPartition
from skylog.client.partitioner import StickyPartitioner, murmur2, partition_of_key
from skylog.client.records import records_of
from skylog.client.settings import ClientSettings
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError, ProtocolError
from skylog.kernel.ids import Uuid
from skylog.wire.batch import Compression
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import AbortedTransaction, PartitionData
from skylog.wire.records import encode_batch

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # from Kafka's own tests
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_kafka_does(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFF_FFFF
    assert partition_of_key(key, 7) == (hashed & 0x7FFF_FFFF) % 7


def test_keyless_records_stick_until_unstuck() -> None:
    sticky = StickyPartitioner(random.Random(1))
    first = sticky.choose("t", [0, 1, 2])
    assert all(sticky.choose("t", [0, 1, 2]) == first for _ in range(10))
    sticky.unstick("t", first + 1)
    assert sticky.choose("t", [0, 1, 2]) == first
    others = [index for index in (0, 1, 2) if index != first]
    assert sticky.choose("t", others) in others
    seen = set()
    for _ in range(50):
        seen.add(sticky.choose("t", [0, 1, 2]))
        for index in (0, 1, 2):
            sticky.unstick("t", index)
    assert seen == {0, 1, 2}


def test_range_gives_the_first_members_more() -> None:
    assigned = assign_range({"t": 5, "u": 2}, {"b": ["t", "u"], "a": ["t"], "c": ["x"]})
    assert assigned == {
        "a": [TopicPartition("t", index) for index in (0, 1, 2)],
        "b": [TopicPartition(*entry) for entry in (("t", 3), ("t", 4), ("u", 0), ("u", 1))],
        "c": [],
    }


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.sampled_from("tuv"), st.integers(0, 7)),
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("tuvw"), unique=True)),
)
def test_every_wanted_partition_has_one_owner(
    counts: dict[str, int], wanted: dict[str, list[str]]
) -> None:
    assigned = assign_range(counts, wanted)
    given_out = [partition for partitions in assigned.values() for partition in partitions]
    subscribed = {topic for topics in wanted.values() for topic in topics}
    every = {
        TopicPartition(topic, index)
        for topic, count in counts.items()
        if topic in subscribed
        for index in range(count)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == every
    for member, partitions in assigned.items():
        assert {partition.topic for partition in partitions} <= set(wanted[member])
        assert decode_assignment(encode_assignment(partitions)) == partitions


def test_subscriptions_of_later_versions_are_read() -> None:
    data = encode_subscription(["u", "t"])
    assert decode_subscription(data) == ["t", "u"]
    assert decode_subscription(b"\x00\x63" + data[2:] + b"more") == ["t", "u"]
    assert decode_assignment(b"") == []
    for wrong in (b"", b"\x00", b"\xff\xff", b"\x00\x01\x7f"):
        with pytest.raises(ProtocolError):
            decode_subscription(wrong)


def test_numbers_become_errors() -> None:
    assert error_of(0) is None
    check(0)
    with pytest.raises(KafkaError) as unknown:
        check(30_000)
    assert unknown.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    found = error_of(3, "topic t")
    assert found is not None
    assert str(found) == "UNKNOWN_TOPIC_OR_PARTITION: topic t"


# Fetch sessions ---------------------------------------------------------------------------


def want(offset: int, topic_id: Uuid = A) -> Wanted:
    return Wanted(topic_id, offset, 0, 100)


def fill(session: FetchSession, wanted: dict[TopicPartition, Wanted]) -> FetchRequest:
    request = FetchRequest()
    session.fill(request, wanted)
    return request


def asked(request: FetchRequest) -> dict[tuple[str, int], int]:
    return {(t.topic, p.partition): p.fetch_offset for t in request.topics for p in t.partitions}


def test_a_session_says_only_what_changed() -> None:
    session = FetchSession()
    first = fill(session, {P0: want(1), P1: want(5)})
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert asked(first) == {P0: 1, P1: 5}
    session.answered(42)
    second = fill(session, {P0: want(2), P1: want(5)})
    assert (second.session_id, second.session_epoch) == (42, 1)
    assert asked(second) == {P0: 2}
    session.answered(42)
    third = fill(session, {P1: want(5)})
    assert third.session_epoch == 2
    assert asked(third) == {}
    assert [(f.topic, f.partitions) for f in third.forgotten_topics_data] == [("t", [0])]
    session.answered(42)
    renamed = fill(session, {P1: want(0, B)})
    assert [(f.topic_id, f.partitions) for f in renamed.forgotten_topics_data] == [(A, [1])]
    assert renamed.topics[0].topic_id == B


def test_a_request_that_failed_is_not_taken_as_known() -> None:
    session = FetchSession()
    fill(session, {P0: want(1)})
    session.answered(42)
    fill(session, {P0: want(2)})
    session.reset()
    again = fill(session, {P0: want(2)})
    assert (again.session_id, again.session_epoch) == (0, 0)
    assert asked(again) == {P0: 2}
    session.answered(0)  # the broker keeps no session
    assert asked(fill(session, {P0: want(2)})) == {P0: 2}


def test_epochs_wrap_to_one() -> None:
    session = FetchSession()
    fill(session, {P0: want(1)})
    session.answered(42)
    session._epoch = 2**31 - 1
    assert fill(session, {P0: want(1)}).session_epoch == 2**31 - 1
    session.answered(42)
    assert fill(session, {P0: want(1)}).session_epoch == 1


# Records ----------------------------------------------------------------------------------


def batch(base: int, count: int, **fields: object) -> bytes:
    pairs = [(b"k", b"%d" % (base + index)) for index in range(count)]
    return encode_batch(pairs, timestamp=7, base_offset=base, **fields)  # type: ignore[arg-type]


def marker(base: int, producer_id: int, kind: int) -> bytes:
    key = b"\x00\x00" + kind.to_bytes(2, "big")
    return encode_batch(
        [(key, b"\0" * 6)],
        timestamp=7,
        base_offset=base,
        control=True,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
    )


def offsets(data: PartitionData, position: int, committed: bool = False) -> tuple[list[int], int]:
    records, after = records_of(P0, data, position, committed_only=committed)
    return [record.offset for record in records], after


@pytest.mark.parametrize("codec", list(Compression))
def test_records_from_a_position_on(codec: Compression) -> None:
    whole = batch(10, 3, codec=codec) + batch(13, 2, codec=codec)
    assert offsets(PartitionData(records=whole), 11) == ([11, 12, 13, 14], 15)
    assert offsets(PartitionData(records=whole), 13) == ([13, 14], 15)
    assert offsets(PartitionData(records=None), 11) == ([], 11)


def test_a_batch_that_is_cut_off_is_left_for_later() -> None:
    first, second = batch(0, 2), batch(2, 2)
    for end in range(len(second)):
        data = PartitionData(records=first + second[:end])
        assert offsets(data, 0) == ([0, 1], 2)


def test_damaged_batches_are_refused() -> None:
    good = bytearray(batch(0, 2))
    good[-1] ^= 1
    with pytest.raises(KafkaError, match="wrong checksum"):
        offsets(PartitionData(records=bytes(good)), 0)
    old = bytearray(batch(0, 2))
    old[16] = 1
    with pytest.raises(KafkaError, match="message format 1"):
        offsets(PartitionData(records=bytes(old)), 0)
    short = bytearray(batch(0, 2))
    short[8:12] = (3).to_bytes(4, "big")
    with pytest.raises(KafkaError, match="claims 15 bytes"):
        offsets(PartitionData(records=bytes(short)), 0)


def test_only_committed_transactions_are_read() -> None:
    mine = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    other = {**mine, "producer_id": 8}
    log = (
        batch(0, 2, **mine)  # aborted
        + batch(2, 1, **other)  # committed
        + marker(3, 9, 0)
        + marker(4, 8, 1)
        + batch(5, 1, **mine)  # committed
        + marker(6, 9, 1)
        + batch(7, 1)
    )
    data = PartitionData(records=log, aborted_transactions=[AbortedTransaction(9, 0)])
    assert offsets(data, 0, committed=True) == ([2, 5, 7], 8)
    assert offsets(data, 0) == ([0, 1, 2, 5, 7], 8)


def test_an_aborted_transaction_of_which_only_the_marker_is_left() -> None:
    mine = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log = marker(3, 9, 0) + batch(5, 1, **mine) + marker(6, 9, 1)
    data = PartitionData(records=log, aborted_transactions=[AbortedTransaction(9, 1)])
    assert offsets(data, 0, committed=True) == ([5], 7)


def test_patience_comes_from_a_clients_properties() -> None:
    properties = {
        "bootstrap.servers": "h:1",
        "socket.connection.setup.timeout.ms": "1",
        "request.timeout.ms": "2",
        "default.api.timeout.ms": " 3 ",
        "retry.backoff.ms": "4",
        "retry.backoff.max.ms": "5",
        "metadata.max.age.ms": "6",
        "connections.max.idle.ms": "7",
    }
    found = ClientSettings.of(properties)
    assert (found.connect_timeout_ms, found.request_timeout_ms, found.api_timeout_ms) == (1, 2, 3)
    assert (found.retry_backoff_ms, found.retry_backoff_ms_max) == (4, 5)
    assert (found.metadata_age_ms_max, found.idle_ms_max) == (6, 7)
    for wrong in ("-1", "1s", "", str(2**31)):
        with pytest.raises(ConfigError, match=r"request\.timeout\.ms"):
            ClientSettings.of({"bootstrap.servers": "h:1", "request.timeout.ms": wrong})
