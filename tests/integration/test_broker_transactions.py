"""The transaction coordinator through a broker's socket: what it accepts, keeps and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from skylog.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from skylog.wire.messages.end_txn_request import EndTxnRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.list_transactions_request import ListTransactionsRequest
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.integration.wire_client import Wire

SETTINGS = {"transaction.state.log.num.partitions": "3", "log.level": "ERROR"}
STATE_TOPIC = "__transaction_state"
TIMEOUT_MS = 60_000
TOPIC_RESOURCE = 2


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap) as connected:
        yield connected


def create(wire: Wire, name: str, **configs: str) -> None:
    settings = [CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()]
    topic = CreatableTopic(name, 2, 1, configs=settings)
    assert wire.ask(CreateTopicsRequest([topic], 10_000)).topics[0].error_code == 0


def start(wire: Wire, name: str) -> tuple[int, int]:
    """The id and epoch of a new producer."""
    found = wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
    assert found.coordinators[0].error_code == 0
    while True:  # the topic may still be loading
        answer = wire.ask(InitProducerIdRequest(name, TIMEOUT_MS))
        if answer.error_code == 0:
            return answer.producer_id, answer.producer_epoch
        assert answer.error_code in (
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )


def add(wire: Wire, name: str, producer: tuple[int, int], *topics: tuple[str, list[int]]) -> Any:
    asked = [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in topics]
    request = AddPartitionsToTxnRequest([], name, *producer, asked)
    return {
        (topic.name, found.partition_index): ErrorCode(found.partition_error_code)
        for topic in wire.ask(request, 3).results_by_topic_v3_and_below
        for found in topic.results_by_partition
    }


def state(wire: Wire, name: str) -> str:
    [found] = wire.ask(DescribeTransactionsRequest([name])).transaction_states
    return str(found.transaction_state)


def settled(wire: Wire, name: str) -> str:
    """The state once nothing is in progress."""
    while (found := state(wire, name)).startswith("Prepare"):
        pass
    return found


def test_the_topic_is_created_with_the_first_request(wire: Wire) -> None:
    start(wire, "id")
    [topic] = wire.ask(MetadataRequest([MetadataRequestTopic(name=STATE_TOPIC)])).topics
    assert topic.is_internal
    assert len(topic.partitions) == 3
    resource = DescribeConfigsResource(TOPIC_RESOURCE, STATE_TOPIC, None)
    [described] = wire.ask(DescribeConfigsRequest([resource])).results
    configs = {config.name: config.value for config in described.configs}
    assert configs["cleanup.policy"] == "compact"
    assert configs["compression.type"] == "uncompressed"
    assert configs["min.insync.replicas"] == "1"
    assert configs["segment.bytes"] == "104857600"
    assert configs["unclean.leader.election.enable"] == "false"


def test_a_diskless_partition_is_refused_in_transactions(wire: Wire) -> None:
    create(wire, "classic")
    create(wire, "diskless", diskless_enable="true")
    producer = start(wire, "id")
    found = add(wire, "id", producer, ("classic", [0]), ("diskless", [0, 9]))
    assert found == {
        ("classic", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("diskless", 0): ErrorCode.INVALID_REQUEST,
        ("diskless", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert state(wire, "id") == "Empty"
    from_broker = AddPartitionsToTxnTransaction(
        "id", *producer, False, [AddPartitionsToTxnTopic("diskless", [0])]
    )
    [result] = wire.ask(AddPartitionsToTxnRequest([from_broker])).results_by_transaction
    [partition] = result.topic_results[0].results_by_partition
    assert partition.partition_error_code == ErrorCode.INVALID_REQUEST


def test_a_transaction_ends_after_its_topic_is_deleted(wire: Wire) -> None:
    create(wire, "short")
    create(wire, "long")
    producer = start(wire, "id")
    assert set(add(wire, "id", producer, ("short", [0, 1]), ("long", [0])).values()) == {0}
    assert not wire.ask(DeleteTopicsRequest([DeleteTopicState("short")])).responses[0].error_code
    assert wire.ask(EndTxnRequest("id", *producer, True)).error_code == 0
    assert settled(wire, "id") == "CompleteCommit"


def test_ids_outlive_the_node(tmp_path: Path) -> None:
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create(wire, "topic")
        done, opened = start(wire, "done"), start(wire, "open")
        for name, producer in (("done", done), ("open", opened)):
            assert set(add(wire, name, producer, ("topic", [0, 1])).values()) == {0}
        assert wire.ask(EndTxnRequest("done", *done, False)).error_code == 0
        assert settled(wire, "done") == "CompleteAbort"
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        found = wire.ask(ListTransactionsRequest()).transaction_states
        assert {one.transactional_id: one.transaction_state for one in found} == {
            "done": "CompleteAbort",
            "open": "Ongoing",
        }
        assert wire.ask(EndTxnRequest("open", *opened, True)).error_code == 0
        assert settled(wire, "open") == "CompleteCommit"
        assert start(wire, "done") == (done[0], done[1] + 2), "its end and the new one"
