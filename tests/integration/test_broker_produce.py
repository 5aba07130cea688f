"""Produce as a client sees it, over a socket."""

from __future__ import annotations

import gc
import struct
import time

import pytest
from crc32c import crc32c

from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.batch import HEADER_BYTES
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.produce_request import ProduceRequest
from tests.integration.broker_client import (
    NOW,
    PRODUCE_BY_NAME,
    Client,
    batch,
    produce_request,
    values,
)
from tests.integration.wire_client import Closed, frame, request_bytes


def patched(records: bytes, offset: int, content: bytes, *, reseal: bool = True) -> bytes:
    """A batch with other bytes in its header and a matching checksum."""
    changed = bytearray(records)
    changed[offset : offset + len(content)] = content
    if reseal:
        changed[17:21] = struct.pack(">I", crc32c(bytes(changed[21:])))
    return bytes(changed)


def test_offsets_go_up_and_records_come_back(client: Client) -> None:
    client.create("plain")
    first = client.produce("plain", b"a", b"b")
    second = client.produce("plain", b"c")
    assert (first.error_code, first.base_offset, second.base_offset) == (0, 0, 2)
    assert first.log_append_time_ms == -1
    assert first.log_start_offset == 0
    assert values(client.fetch("plain").records) == [b"a", b"b", b"c"]


def test_every_partition_has_its_own_outcome(client: Client) -> None:
    client.create("mixed", partitions=3)
    good, bad = batch(b"x"), patched(batch(b"x"), 30, b"?", reseal=False)
    answers = client.produce_all(
        [("mixed", 0, good), ("mixed", 1, bad), ("mixed", 2, good), ("mixed", 9, good),
         ("nobody's", 0, good)]
    )  # fmt: skip
    codes = {key: answer.error_code for key, answer in answers.items()}
    assert codes == {
        ("mixed", 0): 0,
        ("mixed", 1): ErrorCode.CORRUPT_MESSAGE,
        ("mixed", 2): 0,
        ("mixed", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nobody's", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert answers["mixed", 1].base_offset == -1
    assert values(client.fetch("mixed", index=1).records) == []
    assert values(client.fetch("mixed", index=2).records) == [b"x"]


def test_of_a_partition_named_twice_the_last_batch_counts(client: Client) -> None:
    client.create("named-twice", partitions=2)
    parts = [("named-twice", 0, batch(text)) for text in (b"one", b"two")]
    request = produce_request([*parts, ("named-twice", 1, batch(b"other"))])
    answers = client.ask(request, PRODUCE_BY_NAME).responses[0].partition_responses
    assert [(answer.index, answer.base_offset) for answer in answers] == [(0, 0), (1, 0)]
    assert values(client.fetch("named-twice").records) == [b"two"]


def test_unknown_topics_leave_no_trace(broker: Broker, client: Client) -> None:
    for number in range(20):
        client.append(f"ghost-{number}", batch(b"x"))
    names = broker.node._services.traffic.topics
    assert not [name for name in names if name.startswith("ghost")]


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(client: Client, acks: int) -> None:
    client.metadata("acks", create=True)
    assert client.produce("acks", b"x", acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_without_acks_nothing_is_answered(client: Client) -> None:
    client.create("unanswered")
    request = produce_request([("unanswered", 0, batch(b"x"))], acks=0)
    client.send(frame(request_bytes(request, PRODUCE_BY_NAME)))
    # The next response is that to the next request.
    assert values(client.fetch("unanswered").records) == [b"x"]


def test_a_failure_without_acks_closes_the_connection(client: Client) -> None:
    request = produce_request([("nobody's", 0, batch(b"x"))], acks=0)
    client.send(frame(request_bytes(request, PRODUCE_BY_NAME)))
    assert client.is_closed()


def test_records_sent_without_acks_before_closing_are_kept(broker: Broker) -> None:
    with Client(broker.bootstrap) as client:
        client.create("last-words", configs={"compression.type": "gzip"})
    # Long and compressed: validated on a thread, while the socket is already closed.
    long = batch(bytes(900_000))
    with Client(broker.bootstrap) as leaving:
        for records in (long, long, batch(b"the end")):
            request = produce_request([("last-words", 0, records)], acks=0)
            leaving.send(frame(request_bytes(request, PRODUCE_BY_NAME)))
    with Client(broker.bootstrap) as reader:
        answer = reader.fetch("last-words", offset=2, wait_ms=10_000)
        while answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            answer = reader.fetch("last-words", offset=2, wait_ms=10_000)
        assert values(answer.records) == [b"the end"]


BAD_RECORDS = {
    "base offset": (patched(batch(b"x"), 0, struct.pack(">q", 7)), ErrorCode.INVALID_RECORD),
    "two batches": (batch(b"x") * 2, ErrorCode.INVALID_RECORD),
    "count": (patched(batch(b"x"), 57, struct.pack(">i", 2)), ErrorCode.INVALID_RECORD),
    "last delta": (patched(batch(b"x"), 23, struct.pack(">i", 5)), ErrorCode.INVALID_RECORD),
    "control": (patched(batch(b"x"), 21, struct.pack(">h", 0x20)), ErrorCode.INVALID_RECORD),
    "magic 1": (patched(batch(b"x"), 16, b"\1"), ErrorCode.INVALID_RECORD),
    "none": (b"", ErrorCode.INVALID_RECORD),
    "checksum": (patched(batch(b"x"), HEADER_BYTES, b"?", reseal=False), ErrorCode.CORRUPT_MESSAGE),
    "codec": (patched(batch(b"x"), 21, struct.pack(">h", 6)), ErrorCode.UNKNOWN_SERVER_ERROR),
    "transaction": (
        patched(batch(b"x"), 21, struct.pack(">h", 0x10)),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_records_get_kafkas_error(client: Client, name: str) -> None:
    records, code = BAD_RECORDS[name]
    client.metadata("bad", create=True)
    assert client.append("bad", records).error_code == code
    assert client.fetch("bad").high_watermark == 0


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_refused_request_is_freed_without_the_garbage_collector(
    client: Client, name: str
) -> None:
    client.metadata("bad", create=True)
    gc.collect()
    gc.disable()
    try:
        client.append("bad", BAD_RECORDS[name][0])
        deadline = time.monotonic() + 30
        while any(isinstance(one, ProduceRequest) for one in gc.get_objects()):
            assert time.monotonic() < deadline
            client.metadata("bad")
    finally:
        gc.enable()


def batch_of(size: int) -> bytes:
    """A batch of ``size`` bytes, including its header."""
    room = size - len(batch(b""))
    made = batch(bytes(room))
    while len(made) > size:  # lengths take more bytes, too
        room -= 1
        made = batch(bytes(room))
    assert len(made) == size
    return made


@pytest.mark.parametrize("limit", [5000, None])
def test_a_batch_may_be_as_large_as_the_topic_says(client: Client, limit: int | None) -> None:
    configs = {"max.message.bytes": str(limit)} if limit else None
    topic = f"sized-{limit}"
    client.create(topic, configs=configs)
    size = limit or 1_048_588
    assert client.append(topic, batch_of(size)).error_code == 0
    assert client.append(topic, batch_of(size + 1)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_sequences_of_an_idempotent_producer(client: Client) -> None:
    client.create("once")

    def send(sequence: int, producer: int = 4000, epoch: int = 0) -> tuple[int, int]:
        answer = client.produce(
            "once", b"x", producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )
        return answer.error_code, answer.base_offset

    out_of_order = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert [send(n) for n in range(7)] == [(0, n) for n in range(7)]
    assert send(6) == (0, 6)
    assert send(2) == (0, 2)
    assert send(1) == out_of_order  # older than the five that are remembered
    assert send(9) == out_of_order
    assert send(5, epoch=1) == out_of_order  # a new epoch begins at 0
    assert send(0, epoch=1) == (0, 7)
    assert send(7) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert send(77, producer=4001) == (0, 8)  # an unknown producer
    assert client.fetch("once").high_watermark == 9


def test_a_resent_batch_is_answered_with_its_time(client: Client) -> None:
    client.create("again")
    who = {"producer_id": 4100, "producer_epoch": 0, "base_sequence": 0}
    assert client.produce("again", b"x", **who).log_append_time_ms == -1
    assert client.produce("again", b"x", **who).log_append_time_ms == NOW


def test_topics_may_stamp_records_themselves(client: Client) -> None:
    client.create("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    answer = client.produce("stamped", b"x")
    assert answer.log_append_time_ms > NOW


def test_producer_ids_differ(client: Client) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = [client.ask(request) for _ in range(3)]
    assert [(a.error_code, a.producer_epoch) for a in answers] == [(0, 0)] * 3
    assert len({a.producer_id for a in answers}) == 3


def test_internal_topics_are_not_written_by_clients(client: Client) -> None:
    client.metadata("__consumer_offsets", create=True)
    code = client.produce("__consumer_offsets", b"x").error_code
    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_more_replicas_than_brokers_are_refused(client: Client) -> None:
    client.create("insync", configs={"min.insync.replicas": "3"})
    assert client.produce("insync", b"x", acks=-1).error_code == 0


def test_long_batches_are_validated_too(client: Client) -> None:
    client.create("long", partitions=2, configs={"compression.type": "gzip"})
    long = batch(bytes(900_000))
    broken = patched(long, 57, struct.pack(">i", 2))
    answers = client.produce_all([("long", 0, long), ("long", 1, broken)])
    assert answers["long", 0].error_code == 0
    assert answers["long", 1].error_code == ErrorCode.INVALID_RECORD


def test_an_old_version_that_is_offered_is_not_served(client: Client) -> None:
    # Its body does not matter: Kafka closes the connection on the header.
    client.send(frame(request_bytes(produce_request([]), 3).replace(b"\0\0\0\3", b"\0\0\0\2", 1)))
    with pytest.raises(Closed):
        client.receive()
