"""The coordinators' APIs on a socket, used as another broker would use them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.testing import Broker
from skylog.wire.messages import diskless_create_partitions_request as create
from skylog.wire.messages import diskless_delete_topics_request as topics
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.integration.diskless_support import read_all
from tests.integration.diskless_uploader import (
    COORDINATOR_TYPE,
    Upload,
    deleted,
    described,
    found,
    listed,
    new_key,
    new_topic,
)
from tests.integration.diskless_uploader import SETTINGS as BROKERS
from tests.integration.wire_client import Wire

SETTINGS = BROKERS
NAMES = (f"topic-{number}" for number in itertools.count())


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.address("BROKERS")) as connection:
        yield connection


@pytest.fixture
def name() -> str:
    return next(NAMES)


def test_an_object_of_another_uploader(broker: Broker, wire: Wire, name: str) -> None:
    # DC-08, DC-17, DC-19, DC-54 partly
    topic_id = new_topic(wire, name, 2)
    upload = Upload().add(topic_id, [b"a", b"b"]).add(topic_id, [b"c"]).add(topic_id, [b"x"], 1)
    upload.store(broker)
    results = wire.ask(upload.request()).batches
    assert [(r.error_code, r.assigned_base_offset, r.is_duplicate) for r in results] == [
        (0, 0, False),
        (0, 2, False),
        (0, 0, False),
    ]
    one = found(wire, topic_id)
    assert (one.error_code, one.log_start_offset, one.high_watermark) == (0, 0, 3)
    places = [
        (b.object_key, b.byte_offset, b.byte_size, b.base_offset, b.last_offset)
        for b in one.batches
    ]
    first, second, _ = upload.batches
    assert places == [
        (upload.key, 1, first.size, 0, 1),
        (upload.key, second.byte_offset, second.size, 2, 2),
    ]
    assert described(wire, upload.key, new_key()) == [
        (ErrorCode.NONE, True),
        (ErrorCode.RESOURCE_NOT_FOUND, False),
    ]
    # Consumers read it as if it had been produced here.
    assert read_all(broker.bootstrap, name, {0: 3, 1: 1}) == {0: [b"a", b"b", b"c"], 1: [b"x"]}


def test_a_commit_succeeds_in_part(wire: Wire, name: str) -> None:
    # DC-09, DC-10, DC-33
    topic_id = new_topic(wire, name)
    stamped = new_topic(wire, name + "-stamped", **{"message.timestamp.type": "LogAppendTime"})
    upload = Upload().add(topic_id, [b"a"]).add(Uuid(b"never-created---"), [b"?"])
    upload.add(stamped, [b"b"], timestamp_type=1)
    good, unknown, other = wire.ask(upload.request()).batches
    assert (good.error_code, good.assigned_base_offset, good.log_append_time) == (0, 0, -1)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (unknown.assigned_base_offset, unknown.log_start_offset) == (-1, -1)
    assert (other.error_code, other.assigned_base_offset) == (0, 0)
    assert other.log_append_time > 1_700_000_000_000


def test_a_commit_repeated_by_its_key(wire: Wire, name: str) -> None:
    # Q13
    topic_id = new_topic(wire, name)
    upload = Upload().add(topic_id, [b"a", b"b"])
    first = wire.ask(upload.request()).batches[0]
    again = wire.ask(upload.request()).batches[0]
    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert again.assigned_base_offset == first.assigned_base_offset == 0
    assert found(wire, topic_id).high_watermark == 2
    other = wire.ask(upload.request(file_size=len(upload.data) + 1)).batches[0]
    assert (other.error_code, other.assigned_base_offset) == (ErrorCode.INVALID_REQUEST, -1)


def test_producers_that_number_their_batches_and_those_that_do_not(wire: Wire, name: str) -> None:
    # DC-11, DC-12
    topic_id = new_topic(wire, name)

    def send(producer: tuple[int, int, int]) -> tuple[int, int, bool]:
        upload = Upload().add(topic_id, [b"a", b"b"], producer=producer)
        one = wire.ask(upload.request()).batches[0]
        return one.error_code, one.assigned_base_offset, one.is_duplicate

    assert send((9, 0, 0)) == (0, 0, False)
    assert send((9, 0, 0)) == (0, 0, True)
    assert send((9, 0, 4)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, False)
    assert send((9, 0, 2)) == (0, 2, False)
    assert send((9, 1, 0)) == (0, 4, False)
    assert send((9, 0, 4))[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [send((-1, -1, -1)) for _ in range(2)] == [(0, 6, False), (0, 8, False)]


def test_invalid_files_are_refused_in_every_item(wire: Wire, name: str) -> None:
    # DC-08, Q4, Q8, Q20, Q27
    topic_id = new_topic(wire, name)
    good = Upload().add(topic_id, [b"a"]).add(topic_id, [b"b"])
    overlapping = Upload().add(topic_id, [b"a"]).add(topic_id, [b"b"])
    overlapping.batches[1].byte_offset -= 1
    refused = {
        "owners": good.request(owner_ids=[]),
        "foreign owners": good.request(owner_ids=[5]),
        "format": good.request(object_format=2),
        "beyond the end": good.request(file_size=len(good.data) - 1),
        "overlapping": overlapping.request(),
        "key": good.request(object_key="../../etc/passwd"),
        "kind of key": good.request(object_key="backup/metadata/0/latest"),
        "key of nobody": good.request(object_key="staging//"),
    }
    for why, request in refused.items():
        results = wire.ask(request).batches
        assert {r.error_code for r in results} == {ErrorCode.INVALID_REQUEST}, why
        assert {r.assigned_base_offset for r in results} == {-1}
        assert len(results) == 2
    old = Upload(new_key(age_ms=700_000)).add(topic_id, [b"a"])
    late = wire.ask(old.request()).batches[0]
    assert late.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert found(wire, topic_id).high_watermark == 0


def test_offsets_are_listed(wire: Wire, name: str) -> None:
    # DC-15, Q29
    topic_id = new_topic(wire, name)
    for number in range(3):
        upload = Upload().add(topic_id, [b"v"] * 2, timestamp=1_000 * (number + 1))
        wire.ask(upload.request())
    assert deleted(wire, topic_id, 2) == (0, 2)
    assert listed(wire, topic_id, -1)[::2] == (0, 6)
    assert listed(wire, topic_id, -2)[::2] == (0, 2)
    assert listed(wire, topic_id, -3) == (0, 3_000, 5)
    assert listed(wire, topic_id, -4)[::2] == (0, 2)
    assert listed(wire, topic_id, -5)[::2] == (0, -1)
    assert listed(wire, topic_id, 2_500) == (0, 3_000, 4)
    assert listed(wire, topic_id, 3_001) == (0, -1, -1)
    assert listed(wire, Uuid(b"never-created---"), -1) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        -1,
        -1,
    )


def test_records_are_deleted_up_to_an_offset(wire: Wire, name: str) -> None:
    # DC-14, DC-19, Q28
    topic_id = new_topic(wire, name)
    uploads = [Upload().add(topic_id, [b"v"] * 4) for _ in range(2)]
    for upload in uploads:
        wire.ask(upload.request())
    keys = [upload.key for upload in uploads]
    assert deleted(wire, topic_id, 6) == (0, 6)  # the middle of the second batch
    batches = found(wire, topic_id, 6).batches
    assert [(b.base_offset, b.last_offset) for b in batches] == [(4, 7)]
    assert described(wire, *keys) == [(0, False), (0, True)]
    assert deleted(wire, topic_id, 3) == (0, 6)
    assert deleted(wire, topic_id, 9)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
    assert deleted(wire, topic_id, -1) == (0, 8)
    assert described(wire, *keys) == [(0, False), (0, False)]


def test_each_limit_of_a_find_cuts_the_list(wire: Wire, name: str) -> None:
    # DC-17, Q25
    topic_id = new_topic(wire, name)
    for _ in range(4):
        upload = Upload().add(topic_id, [b"v"])
        wire.ask(upload.request())
    size = upload.batches[0].size
    assert len(found(wire, topic_id).batches) == 4
    assert len(found(wire, topic_id, fetch_bytes=size * 2).batches) == 2
    assert len(found(wire, topic_id, partition_bytes=size * 3).batches) == 3
    assert len(found(wire, topic_id, batches=1).batches) == 1
    assert len(found(wire, topic_id, fetch_bytes=1, partition_bytes=1).batches) == 1
    assert [b.base_offset for b in found(wire, topic_id, 2).batches] == [2, 3]
    at_the_end = found(wire, topic_id, 4)
    assert (at_the_end.error_code, at_the_end.batches) == (0, [])
    assert found(wire, topic_id, 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_partitions_are_created_again_and_topics_deleted(wire: Wire, name: str) -> None:
    # DC-06, DC-07, Q6, Q7
    topic_id = new_topic(wire, name, 2)
    wanted = create.DisklessCreatableTopic(topic_id, name, 2)
    ahead = create.DisklessCreatableTopic(topic_id, name, 3)
    for _ in range(2):
        answer = wire.ask(create.DisklessCreatePartitionsRequest([wanted])).topics[0]
        assert (answer.topic_id, answer.error_code) == (topic_id, 0)
    # Metadata knows nothing of a third partition.
    answer = wire.ask(create.DisklessCreatePartitionsRequest([ahead])).topics[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for count in (0, -1):
        none = create.DisklessCreatableTopic(topic_id, name, count)
        answer = wire.ask(create.DisklessCreatePartitionsRequest([none])).topics[0]
        assert answer.error_code == ErrorCode.INVALID_PARTITIONS
    upload = Upload().add(topic_id, [b"v"])
    assert wire.ask(upload.request()).batches[0].error_code == 0
    gone = topics.DisklessDeleteTopicsRequest([topics.DisklessDeletableTopic(topic_id)])
    wire.ask(DeleteTopicsRequest([DeleteTopicState(topic_id=topic_id)]))
    for _ in range(2):
        assert wire.ask(gone).responses[0].error_code == 0
    assert found(wire, topic_id).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described(wire, upload.key) == [(0, False)]


def test_a_request_has_a_timeout(wire: Wire, name: str) -> None:
    # DC-04
    topic_id = new_topic(wire, name)
    upload = Upload().add(topic_id, [b"v"])
    result = wire.ask(upload.request(timeout_ms=0)).batches[0]
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    # The outcome is unknown, not a refusal: a retry settles it.
    assert wire.ask(upload.request()).batches[0].assigned_base_offset == 0
    assert found(wire, topic_id).high_watermark == 1


def test_the_coordinator_is_found_by_its_number(broker: Broker, wire: Wire, name: str) -> None:
    # DC-24, Q10
    new_topic(wire, name)
    request = FindCoordinatorRequest(key_type=COORDINATOR_TYPE, coordinator_keys=["0", "1", "x"])
    known, missing, nonsense = wire.ask(request).coordinators
    assert f"{known.host}:{known.port}" == broker.address("BROKERS")
    assert (known.error_code, known.node_id) == (0, 1)
    assert missing.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert nonsense.error_code == ErrorCode.INVALID_REQUEST
