"""Metadata, offsets and configs as a client sees them, over a socket."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.testing import Broker
from skylog.wire.messages import incremental_alter_configs_request as alter
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.integration.broker_client import NOW, Client, values

TOPIC, SET = 2, 0


# Metadata


def test_a_topic_that_may_be_created_is_there_at_once(client: Client) -> None:
    topic = client.metadata("made", create=True).topics[0]
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "made", False)
    assert topic.topic_id != ZERO_UUID
    partition = topic.partitions[0]
    assert (partition.error_code, partition.leader_id, partition.isr_nodes) == (0, 1, [1])
    assert client.produce("made", b"x").error_code == 0


def test_a_topic_that_may_not_be_created_is_unknown(client: Client) -> None:
    topic = client.metadata("unmade").topics[0]
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.metadata("unmade").topics[0].error_code != 0


def test_the_last_broker_that_shuts_down_stays_in_metadata() -> None:
    """librdkafka drops every broker that is not in the response, and would have none left."""
    with Broker() as broker, Client(broker.bootstrap) as client:
        client.metadata("kept", create=True)
        broker.run(broker.node._lifecycle.leave())
        waited_until = time.monotonic() + 30
        while (answer := client.metadata("kept")).topics[0].partitions[0].leader_id != -1:
            assert time.monotonic() < waited_until
        address = f"{answer.brokers[0].host}:{answer.brokers[0].port}"
        assert [node.node_id for node in answer.brokers] == [1]
        assert (address, answer.controller_id) == (broker.bootstrap, -1)


@pytest.mark.parametrize("name", ["", "a b", ".", "..", "x" * 250, "ü"])
def test_invalid_topic_names(client: Client, name: str) -> None:
    for create in (False, True):
        topic = client.metadata(name, create=create).topics[0]
        assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_concurrent_requests_for_a_new_topic_get_the_same(broker: Broker) -> None:
    found: list[Any] = []

    def ask() -> None:
        with Client(broker.bootstrap) as client:
            found.append(client.metadata("shared", create=True).topics[0])

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [topic.error_code for topic in found] == [0] * 10
    assert len({topic.topic_id for topic in found}) == 1


def test_topics_by_id(client: Client) -> None:
    known = client.create("identified")
    unknown = Uuid(bytes(range(16)))
    wanted = [MetadataRequestTopic(topic_id, None) for topic_id in (known, unknown)]
    topics = {topic.topic_id: topic for topic in client.ask(MetadataRequest(wanted, True)).topics}
    assert (topics[known].error_code, topics[known].name) == (0, "identified")
    assert topics[unknown].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert topics[unknown].name is None


def test_all_topics_or_none(client: Client) -> None:
    client.create("one-of-all")
    everything = client.ask(MetadataRequest(None))
    assert "one-of-all" in [topic.name for topic in everything.topics]
    assert client.ask(MetadataRequest([])).topics == []
    # The first version has no other way to request all.
    assert "one-of-all" in [topic.name for topic in client.ask(MetadataRequest([]), 0).topics]


def test_a_topic_named_twice_is_answered_once(client: Client) -> None:
    client.create("double")
    assert len(client.metadata("double", "double").topics) == 1


def test_brokers_and_controller(broker: Broker, client: Client) -> None:
    answer = client.metadata()
    host, _, port = broker.bootstrap.rpartition(":")
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, host, int(port))]
    assert answer.controller_id == 1
    assert answer.cluster_id


def test_a_topic_created_again_is_another(client: Client) -> None:
    first = client.create("phoenix")
    client.produce("phoenix", b"old")
    client.delete("phoenix")
    assert client.metadata("phoenix").topics[0].error_code
    assert client.create("phoenix") != first
    assert client.fetch("phoenix").high_watermark == 0
    assert client.produce("phoenix", b"new").base_offset == 0
    gone = client.fetch_all((first, 0, 0), version=13)
    assert gone.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


# Offsets


def test_the_ends_of_a_log(client: Client) -> None:
    client.create("ends")
    for number in range(5):
        client.produce("ends", b"x", timestamp=NOW + number)

    def at(timestamp: int) -> tuple[int, int, int]:
        found = client.offset("ends", timestamp)
        return found.offset, found.timestamp, found.leader_epoch

    assert at(-1) == (5, -1, 0)
    assert at(-2) == (0, -1, 0)
    assert at(-3) == (4, NOW + 4, 0)
    assert at(-4) == (0, -1, 0)
    assert at(-5) == (-1, -1, -1)
    assert at(-6) == (-1, -1, -1)
    assert at(NOW + 2) == (2, NOW + 2, 0)
    assert at(0) == (0, NOW, 0)
    assert at(NOW + 5) == (-1, -1, -1)
    assert at(-7)[0] == -1


def test_an_empty_log_has_no_latest_record(client: Client) -> None:
    client.create("nothing")
    for timestamp in (-3, 0, NOW):
        assert client.offset("nothing", timestamp).offset == -1
    assert client.offset("nothing", -1).offset == 0


@pytest.mark.parametrize(
    ("timestamp", "version"), [(-3, 5), (-3, 6), (-4, 7), (-5, 8), (-6, 10), (-9, 5), (-9, 10)]
)
def test_special_times_are_as_old_as_their_version(
    client: Client, timestamp: int, version: int
) -> None:
    client.metadata("special", create=True)
    found = client.offset("special", timestamp, version=version)
    assert found.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_partition_asked_for_twice_is_an_error(client: Client) -> None:
    client.metadata("asked", create=True)
    parts = [ListOffsetsPartition(index, -1, -1) for index in (0, 0, 1)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic("asked", parts)])
    answers = client.ask(request).topics[0].partitions
    assert sorted((answer.partition_index, answer.error_code) for answer in answers) == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_where_epochs_end(client: Client) -> None:
    client.create("epoch-ends")
    client.produce("epoch-ends", b"x")
    parts = [
        OffsetForLeaderPartition(0, -1, 0),
        OffsetForLeaderPartition(0, -1, 5),
        OffsetForLeaderPartition(0, 5, 0),
        OffsetForLeaderPartition(9, -1, 0),
    ]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("epoch-ends", parts)])
    answers = client.ask(request).topics[0].partitions
    found = [(a.error_code, a.leader_epoch, a.end_offset) for a in answers]
    assert found == [
        (0, 0, 1),
        (0, -1, -1),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_records_are_deleted_up_to_an_offset(client: Client) -> None:
    client.create("trimmed")
    client.create("kept", configs={"cleanup.policy": "compact"})
    client.metadata("__consumer_offsets", create=True)
    for _ in range(3):
        client.produce("trimmed", b"x")

    def delete(topic: str, offset: int, index: int = 0) -> tuple[int, int]:
        wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])
        answer = client.ask(DeleteRecordsRequest([wanted], 1000)).topics[0].partitions[0]
        return answer.error_code, answer.low_watermark

    assert delete("trimmed", 1) == (0, 1)
    assert delete("trimmed", 0) == (0, 1)
    assert delete("trimmed", 4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete("trimmed", -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete("trimmed", 0, index=5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete("kept", 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete("__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert delete("trimmed", -1) == (0, 3)
    assert client.offset("trimmed", -2).offset == 3
    client.produce("trimmed", b"new")
    assert values(client.fetch("trimmed", offset=3).records) == [b"new"]


def test_old_records_are_deleted_by_the_first_retention_pass(
    broker: Broker, client: Client
) -> None:
    client.create("ancient")
    client.create("lasting", configs={"retention.ms": "-1"})
    for topic in ("ancient", "lasting"):
        client.produce(topic, b"x", timestamp=NOW - 10**9)
    retention = broker.node._services.logs.run_retention()
    assert broker._loop is not None
    asyncio.run_coroutine_threadsafe(retention, broker._loop).result()
    # The active segment is deleted, too.
    assert client.fetch("ancient").error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.offset("ancient", -2).offset == client.offset("ancient", -1).offset == 1
    assert client.produce("ancient", b"y").base_offset == 1
    assert values(client.fetch("lasting").records) == [b"x"]


# Settings


def test_a_changed_setting_holds_for_the_next_batch(client: Client) -> None:
    client.create("changing")
    assert client.produce("changing", bytes(2000)).error_code == 0

    def limit(text: str) -> None:
        change = alter.AlterableConfig("max.message.bytes", SET, text)
        resource = alter.AlterConfigsResource(TOPIC, "changing", [change])
        answer = client.ask(alter.IncrementalAlterConfigsRequest([resource], False))
        assert answer.responses[0].error_code == 0

    limit("1000")
    assert client.produce("changing", bytes(2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    limit("5000")
    assert client.produce("changing", bytes(2000)).error_code == 0


def test_settings_go_with_their_topic(broker: Broker, client: Client) -> None:
    client.create("passing", configs={"max.message.bytes": "1000"})
    assert client.produce("passing", bytes(2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    client.delete("passing")
    assert "passing" not in broker.node._services.configs._topics
    client.create("passing")
    assert client.produce("passing", bytes(2000)).error_code == 0
