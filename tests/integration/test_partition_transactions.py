"""Transactions of partitions and groups, request by request over a socket."""

from __future__ import annotations

from typing import Any

import pytest

from skylog.client.metadata import TopicPartition
from skylog.client.records import records_of
from skylog.kernel.errors import ErrorCode as Code
from skylog.testing import Broker
from skylog.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from skylog.wire.messages.end_txn_request import EndTxnRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from skylog.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from skylog.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.integration.broker_client import (
    PRODUCE_BY_NAME,
    Client,
    batch,
    fetch_request,
    produce_request,
    values,
)
from tests.integration.wire_client import frame, request_bytes

READ_COMMITTED: dict[str, Any] = {"isolation_level": 1}
LATEST = -1
# The last version of Produce that only verifies that a partition was added.
VERIFYING = 11


@pytest.fixture
def topic(client: Client, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "-").replace("]", "")[:100]
    client.create(name, 3)
    return name


class Transactional:
    """A transactional producer of the latest protocol."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
        self.sequences: dict[tuple[str, int], int] = {}
        self._begin()

    def _begin(self) -> None:
        request = InitProducerIdRequest(self.name, 60_000)
        while (answer := self.client.ask(request)).error_code:
            assert answer.error_code in (
                Code.COORDINATOR_LOAD_IN_PROGRESS,
                Code.CONCURRENT_TRANSACTIONS,
                Code.NOT_COORDINATOR,
            )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def records(self, topic: str, *given: bytes, index: int = 0) -> bytes:
        place = topic, index
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + len(given)
        return batch(
            *given,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )

    def send(
        self, topic: str, *given: bytes, index: int = 0, version: int = PRODUCE_BY_NAME
    ) -> Any:
        parts = [(topic, index, self.records(topic, *given, index=index))]
        request = produce_request(parts, transactional_id=self.name)
        return self.client.ask(request, version).responses[0].partition_responses[0]

    def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        answer = self.client.ask(request)
        assert answer.error_code == 0, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()

    def commit_offsets(
        self, group: str, topic: str, offset: int, *, version: int = 5, index: int = 0
    ) -> int:
        place = TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(index, offset)])
        request = TxnOffsetCommitRequest(
            self.name, group, self.producer_id, self.epoch, topics=[place]
        )
        answer = self.client.ask(request, version)
        return int(answer.topics[0].partitions[0].error_code)


def write_marker(
    client: Client,
    producer: tuple[int, int],
    *places: tuple[str, int],
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> dict[tuple[str, int], Code]:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for topic, index in places:
        topics.setdefault(topic, WritableTxnMarkerTopic(topic)).partition_indexes.append(index)
    marker = WritableTxnMarker(
        *producer, commit, list(topics.values()), coordinator_epoch, transaction_version
    )
    answer = client.ask(WriteTxnMarkersRequest([marker]), version)
    assert [one.producer_id for one in answer.markers] == [producer[0]]
    return {
        (topic.name, p.partition_index): Code(p.error_code)
        for topic in answer.markers[0].topics
        for p in topic.partitions
    }


def committed(client: Client, topic: str) -> list[bytes]:
    """The whole partition as our client reads it with read_committed."""
    found, offset = list[bytes](), 0
    while True:
        answer = client.fetch(topic, offset, **READ_COMMITTED)
        if not answer.records:
            return found
        records, offset = records_of(TopicPartition(topic, 0), answer, offset, committed_only=True)
        found += [record.value or b"" for record in records]


# -- reading -------------------------------------------------------------------------------------


def test_readers_of_committed_records_stop_at_the_first_open_transaction(
    client: Client, topic: str
) -> None:
    client.produce(topic, b"before")
    one, two = Transactional(client, topic + "-1"), Transactional(client, topic + "-2")
    assert one.send(topic, b"one").base_offset == 1
    assert two.send(topic, b"two").base_offset == 2
    client.produce(topic, b"after")
    answer = client.fetch(topic, **READ_COMMITTED)
    assert (answer.high_watermark, answer.last_stable_offset) == (4, 1)
    assert (values(answer.records), answer.aborted_transactions) == ([b"before"], [])
    everything = client.fetch(topic)
    assert everything.aborted_transactions is None
    assert values(everything.records) == [b"before", b"one", b"two", b"after"]
    assert client.offset(topic, LATEST, isolation_level=1).offset == 1
    assert client.offset(topic, LATEST).offset == 4
    two.end(commit=False)
    assert client.fetch(topic, **READ_COMMITTED).last_stable_offset == 1
    one.end(commit=True)
    answer = client.fetch(topic, **READ_COMMITTED)
    assert (answer.high_watermark, answer.last_stable_offset) == (6, 6)
    told = [(found.producer_id, found.first_offset) for found in answer.aborted_transactions]
    assert told == [(two.producer_id, 2)]
    assert committed(client, topic) == [b"before", b"one", b"after"]
    assert client.offset(topic, LATEST, isolation_level=1).offset == 6
    # After an aborted transaction it is no longer listed.
    assert client.fetch(topic, 5, **READ_COMMITTED).aborted_transactions == []


def test_a_record_of_an_open_transaction_is_not_found_by_its_time(
    client: Client, topic: str
) -> None:
    producer = Transactional(client, topic)
    producer.send(topic, b"open")
    assert client.offset(topic, 0, isolation_level=1).offset == -1
    assert client.offset(topic, 0).offset == 0
    producer.end(commit=True)
    assert client.offset(topic, 0, isolation_level=1).offset == 0


def test_a_marker_wakes_fetches_that_wait_for_the_transaction(
    broker: Broker, client: Client, topic: str
) -> None:
    producer = Transactional(client, topic)
    size = 20_000
    producer.send(topic, b"x" * size)
    with Client(broker.bootstrap) as reader:
        waiting = fetch_request([(topic, 0, 0)], wait_ms=60_000, min_bytes=size, **READ_COMMITTED)
        reader.send(frame(request_bytes(waiting, 12, 1)))
        # The transaction is open, so there is nothing to read yet.
        assert client.fetch(topic, **READ_COMMITTED).records in (b"", None)
        producer.end(commit=True)
        answer = reader.answer(1, 12, 1)
    found = answer.responses[0].partitions[0]
    assert values(found.records)[0] == b"x" * size


def test_many_segments_are_read_with_what_was_aborted_in_them(client: Client) -> None:
    topic = "many-segments"
    client.create(topic, configs={"internal.segment.bytes": "2000"})
    producer = Transactional(client, topic)
    expected = []
    for number in range(60):
        value = b"%d" % number
        producer.send(topic, value, b"x" * 100)
        producer.end(commit=number % 3 == 0)
        expected += [value, b"x" * 100] if number % 3 == 0 else []
    assert committed(client, topic) == expected


# -- writing -------------------------------------------------------------------------------------


def test_a_partition_that_was_not_added_is_not_written_to(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    old = producer.send(topic, b"x", version=10)
    assert (old.error_code, old.base_offset) == (Code.INVALID_TXN_STATE, -1)
    assert old.error_message == "Partition was not added to the transaction"
    producer.sequences.clear()
    assert producer.send(topic, b"x", version=VERIFYING).error_code == Code.TRANSACTION_ABORTABLE
    producer.sequences.clear()
    assert producer.send(topic, b"x").error_code == 0
    # Now it is part of the transaction, whatever the version.
    assert producer.send(topic, b"y", version=10).error_code == 0
    assert client.offset(topic, LATEST).offset == 2
    producer.end(commit=True)


def test_another_producer_cannot_join_a_transaction(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    records = batch(
        b"x", producer_id=987_654, producer_epoch=0, base_sequence=0, transactional=True
    )
    request = produce_request([(topic, 0, records)], transactional_id=topic)
    found = client.ask(request, PRODUCE_BY_NAME).responses[0].partition_responses[0]
    assert found.error_code == Code.INVALID_PRODUCER_ID_MAPPING
    request = produce_request([(topic, 0, producer.records(topic, b"x"))])
    found = client.ask(request, PRODUCE_BY_NAME).responses[0].partition_responses[0]
    assert found.error_code == Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert client.offset(topic, LATEST).offset == 0


def test_a_request_has_one_transactional_producer(client: Client, topic: str) -> None:
    one, two = Transactional(client, topic + "-1"), Transactional(client, topic + "-2")
    parts = [(topic, 0, one.records(topic, b"a")), (topic, 1, two.records(topic, b"b", index=1))]
    answer = client.ask(produce_request(parts, transactional_id=one.name), PRODUCE_BY_NAME)
    codes = {p.error_code for t in answer.responses for p in t.partition_responses}
    assert codes == {Code.INVALID_PRODUCER_ID_MAPPING}


def test_plain_batches_do_not_mix_with_an_open_transaction(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    producer.send(topic, b"x")
    plain = batch(
        b"y", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1
    )
    assert client.append(topic, plain).error_code == Code.INVALID_TXN_STATE
    producer.end(commit=True)


def test_a_fenced_producer_writes_nothing(client: Client, topic: str) -> None:
    old = Transactional(client, topic)
    old.send(topic, b"x")
    Transactional(client, topic)  # the same id: the open transaction is aborted
    assert old.send(topic, b"y").error_code == Code.INVALID_PRODUCER_EPOCH
    assert committed(client, topic) == []


def test_describe_producers_shows_transactions(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    client.produce(topic, b"first")
    producer.send(topic, b"x")
    request = DescribeProducersRequest([TopicRequest(topic, [0])])

    def described() -> Any:
        return client.ask(request).topics[0].partitions[0].active_producers[0]

    found = described()
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (1, -1)
    producer.end(commit=False)
    found = described()
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (-1, 0)
    assert found.producer_epoch == producer.epoch


# -- markers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_markers_are_written_where_possible(client: Client, topic: str, version: int) -> None:
    producer = Transactional(client, topic)
    producer.send(topic, b"x")
    producer.send(topic, b"y", index=2)
    who = producer.producer_id, producer.epoch
    found = write_marker(
        client, who, (topic, 0), (topic, 2), (topic, 9), ("nowhere", 0), commit=False,
        version=version,
    )  # fmt: skip
    assert found == {
        (topic, 0): Code.NONE,
        (topic, 2): Code.NONE,
        (topic, 9): Code.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert client.fetch(topic, **READ_COMMITTED).last_stable_offset == 2
    assert committed(client, topic) == []


def test_outdated_markers_are_refused(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    producer.send(topic, b"x")
    who = producer.producer_id, producer.epoch
    place = topic, 0
    same = write_marker(client, who, place, transaction_version=2)
    assert same == {place: Code.INVALID_PRODUCER_EPOCH}
    later = who[0], who[1] + 1
    assert write_marker(client, later, place, coordinator_epoch=7) == {place: Code.NONE}
    assert write_marker(client, who, place) == {place: Code.INVALID_PRODUCER_EPOCH}
    older = write_marker(client, later, place, coordinator_epoch=6)
    assert older == {place: Code.TRANSACTION_COORDINATOR_FENCED}


# -- offsets -------------------------------------------------------------------------------------


def fetch_offset(client: Client, group: str, topic: str, *, stable: bool) -> tuple[int, int]:
    asked = OffsetFetchRequestGroup(
        group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    )
    request = OffsetFetchRequest(groups=[asked], require_stable=stable)
    found = client.ask(request, 9).groups[0].topics[0].partitions[0]
    return found.committed_offset, found.error_code


def test_offsets_count_when_their_transaction_has_committed(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    assert producer.commit_offsets(topic, topic, 7) == 0
    assert fetch_offset(client, topic, topic, stable=False) == (-1, 0)
    assert fetch_offset(client, topic, topic, stable=True) == (-1, Code.UNSTABLE_OFFSET_COMMIT)
    producer.end(commit=True)
    assert fetch_offset(client, topic, topic, stable=True) == (7, 0)
    assert producer.commit_offsets(topic, topic, 9) == 0
    producer.end(commit=False)
    assert fetch_offset(client, topic, topic, stable=True) == (7, 0)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, Code.INVALID_TXN_STATE), (4, Code.TRANSACTION_ABORTABLE), (5, Code.NONE)],
)
def test_the_offsets_partition_must_be_part_of_the_transaction(
    client: Client, topic: str, version: int, code: Code
) -> None:
    producer = Transactional(client, topic)
    assert producer.commit_offsets(topic, topic, 7, version=version) == code
    if code is Code.NONE:
        producer.end(commit=False)


def test_offsets_of_unknown_topics_are_refused(client: Client, topic: str) -> None:
    producer = Transactional(client, topic)
    assert producer.commit_offsets(topic, "nowhere", 7) == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offsets(topic, topic, 7, index=9) == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offsets("", topic, 7) == Code.INVALID_GROUP_ID


# -- diskless ------------------------------------------------------------------------------------


def test_a_diskless_topic_is_a_source_but_not_a_target(client: Client, topic: str) -> None:
    source = topic[:60] + "-source"
    client.create(source, configs={"diskless.enable": "true"})
    assert client.produce(source, b"in").error_code == 0
    producer = Transactional(client, topic)
    parts = [
        (source, 0, producer.records(source, b"no")),
        (topic, 0, producer.records(topic, b"yes")),
    ]
    answer = client.ask(produce_request(parts, transactional_id=topic), PRODUCE_BY_NAME)
    codes = {t.name: t.partition_responses[0].error_code for t in answer.responses}
    assert codes == {source: Code.INVALID_REQUEST, topic: Code.NONE}
    assert producer.commit_offsets(topic, source, 1) == 0
    producer.end(commit=True)
    assert fetch_offset(client, topic, source, stable=True) == (1, 0)
    assert committed(client, topic) == [b"yes"]
    assert values(client.fetch(source).records) == [b"in"]


# -- settings ------------------------------------------------------------------------------------


def test_verification_can_be_disabled_for_old_clients() -> None:
    with (
        Broker({"transaction.partition.verification.enable": "false"}) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("topic")
        producer = Transactional(client, "id")
        assert producer.send("topic", b"x", version=10).error_code == 0
        assert client.fetch("topic", **READ_COMMITTED).last_stable_offset == 0
        assert producer.commit_offsets("group", "topic", 1, version=3) == 0
