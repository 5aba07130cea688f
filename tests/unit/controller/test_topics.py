from __future__ import annotations

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.topic_record import TopicRecord
from tests.unit.controller.racks_support import DisklessConfigs, diskless
from tests.unit.controller.support import Bench, directory, topic


def outcome(response: object) -> list[tuple[str, int]]:
    return [(result.name, result.error_code) for result in response.topics]  # type: ignore[attr-defined]


def test_a_topic_is_created_with_its_configs_and_partitions() -> None:
    bench = Bench(brokers=3)
    response = bench.create(topic("orders", 4, 3, retention_ms="5"))

    (result,) = response.topics
    created = bench.image.topic("orders")
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (4, 3)
    assert result.topic_id == created.topic_id != ZERO_UUID
    configs = {found.name: (found.value, found.config_source) for found in result.configs}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert bench.image.topic_configs("orders") == {"retention.ms": "5"}
    for partition in created.partitions.values():
        assert sorted(partition.replicas) == [1, 2, 3]
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert partition.directories == tuple(directory(one) for one in partition.replicas)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert {partition.leader for partition in created.partitions.values()} == {1, 2, 3}


def test_records_of_a_topic_stand_in_kafkas_order() -> None:
    bench = Bench(brokers=1)
    before = len(bench.log)
    bench.create(topic("orders", 2, retention_ms="5"))
    kinds = [type(record).__name__ for record in bench.log[before:]]
    assert kinds == ["TopicRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]


def test_the_defaults_are_the_settings() -> None:
    bench = Bench(brokers=2, partition_count_default=5, replication_factor_default=2)
    (result,) = bench.create(CreatableTopic("orders", -1, -1)).topics
    assert (result.num_partitions, result.replication_factor) == (5, 2)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("größe"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a\n"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("there_is"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("there.is"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (topic("t", no_such_key="1"), ErrorCode.INVALID_CONFIG),
        (topic("t", assignments={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assignments={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assignments={0: [7]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assignments={0: [1], 1: [1, 2]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assignments={0: [1], 2: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assignments={0: [3]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_cannot_be_is_refused(wanted: CreatableTopic, code: ErrorCode) -> None:
    bench = Bench(brokers=2)
    bench.register(3)  # registered, but fenced
    bench.create(topic("there.is"))
    before = len(bench.log)

    response = bench.create(wanted)

    assert outcome(response) == [(wanted.name, code)]
    assert response.topics[0].error_message
    assert len(bench.log) == before


def test_the_longest_name_is_allowed() -> None:
    bench = Bench(brokers=1)
    assert outcome(bench.create(topic("x" * 249))) == [("x" * 249, 0)]


@pytest.mark.parametrize(("partitions", "replicas"), [(1, -1), (-1, 1)])
def test_an_assignment_leaves_no_room_for_counts(partitions: int, replicas: int) -> None:
    bench = Bench(brokers=1)
    wanted = topic("t", assignments={0: [1]})
    wanted.num_partitions, wanted.replication_factor = partitions, replicas
    assert outcome(bench.create(wanted)) == [("t", ErrorCode.INVALID_REQUEST)]


def test_a_partition_assigned_twice_is_refused() -> None:
    bench = Bench(brokers=1)
    wanted = topic("t", assignments={0: [1]})
    wanted.assignments *= 2
    assert outcome(bench.create(wanted)) == [("t", ErrorCode.INVALID_REPLICA_ASSIGNMENT)]


def test_an_assignment_is_taken_as_it_is() -> None:
    bench = Bench(brokers=3)
    bench.expire(2)
    bench.beat(1)
    bench.create(topic("t", assignments={1: [3, 1], 0: [2, 3]}))
    assert bench.partition("t", 0).replicas == (2, 3)
    assert (bench.partition("t", 0).isr, bench.partition("t", 0).leader) == ((3,), 3)
    assert bench.partition("t", 1).replicas == (3, 1)


def test_topics_of_one_request_succeed_and_fail_each_by_itself() -> None:
    bench = Bench(brokers=1)
    response = bench.create(topic("a"), topic("b", 1, 2), topic("c"), topic("a"))
    assert outcome(response) == [
        ("b", ErrorCode.INVALID_REPLICATION_FACTOR),
        ("c", 0),
        ("a", ErrorCode.INVALID_REQUEST),
    ]
    assert bench.image.topic_names() == ["c"]


def test_validation_alone_changes_nothing_and_answers_the_same() -> None:
    bench = Bench(brokers=1)
    before = len(bench.log)
    (result,) = bench.create(topic("a", 3), validate_only=True).topics
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert len(bench.log) == before


def test_without_a_living_broker_nothing_is_created() -> None:
    bench = Bench()
    bench.register(1)
    (result,) = bench.create(topic("a")).topics
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("partitions", "refused"), [(10_000, True), (10_001, True), (9_999, False)]
)
def test_one_request_is_bounded(partitions: int, refused: bool) -> None:
    """Ten thousand partitions and their topic are one record too many."""
    bench = Bench(brokers=1)
    request = CreateTopicsRequest([topic("t", partitions)])
    if refused:
        assert bench.refused(request).code is ErrorCode.POLICY_VIOLATION
    else:
        assert outcome(bench.ask(request)) == [("t", 0)]


def test_a_quota_refuses_the_topics_it_has_no_room_for() -> None:
    bench = Bench(brokers=1)
    left = 3

    def charge(partitions: int) -> None:
        nonlocal left
        if partitions > left:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        left -= partitions

    request = bench.request(CreateTopicsRequest([topic("a", 2), topic("b", 2), topic("c", 1)]))
    object.__setattr__(request, "charge", charge)
    response = bench.run(request)
    assert outcome(response) == [("a", 0), ("b", ErrorCode.THROTTLING_QUOTA_EXCEEDED), ("c", 0)]


def grow(
    name: str, count: int, assignments: list[list[int]] | None = None
) -> CreatePartitionsTopic:
    given = None if assignments is None else [CreatePartitionsAssignment(a) for a in assignments]
    return CreatePartitionsTopic(name, count, given)


def test_partitions_are_added_with_the_topics_replication_factor() -> None:
    bench = Bench(brokers=3)
    bench.create(topic("t", 2, 2))
    response = bench.ask(CreatePartitionsRequest([grow("t", 5)]))
    assert [(one.name, one.error_code) for one in response.results] == [("t", 0)]
    assert sorted(bench.image.topic("t").partitions) == [0, 1, 2, 3, 4]
    assert all(len(p.replicas) == 2 for p in bench.image.topic("t").partitions.values())
    bench.ask(CreatePartitionsRequest([grow("t", 6, [[3, 1]])]))
    assert bench.partition("t", 5).replicas == (3, 1)


def test_the_metadata_topic_of_remote_segments_keeps_its_partitions() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("__remote_log_metadata", 2))
    (result,) = bench.ask(CreatePartitionsRequest([grow("__remote_log_metadata", 3)])).results
    assert result.error_code == ErrorCode.INVALID_PARTITIONS
    assert "cannot change" in result.error_message
    assert len(bench.image.topic("__remote_log_metadata").partitions) == 2


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (grow("t", 2), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 1), ErrorCode.INVALID_PARTITIONS),
        (grow("t", -1), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (grow("none", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grow("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [[2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(
    wanted: CreatePartitionsTopic, code: ErrorCode
) -> None:
    bench = Bench(brokers=1)
    bench.register(2)
    bench.create(topic("t", 2))
    before = len(bench.log)
    (result,) = bench.ask(CreatePartitionsRequest([wanted])).results
    assert result.error_code == code
    assert len(bench.log) == before


def test_a_topic_that_is_named_twice_does_not_grow() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("t"))
    response = bench.ask(CreatePartitionsRequest([grow("t", 2), grow("t", 3)]))
    assert [(one.name, one.error_code) for one in response.results] == [
        ("t", ErrorCode.INVALID_REQUEST)
    ]


def test_checking_growth_changes_nothing() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("t"))
    bench.ask(CreatePartitionsRequest([grow("t", 2)], validate_only=True))
    assert len(bench.image.topic("t").partitions) == 1


def test_topics_are_deleted_by_name_and_by_id_with_their_configs() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("a", retention_ms="5"), topic("b"), topic("c"))
    by_id = bench.image.topic("b").topic_id
    response = bench.ask(
        DeleteTopicsRequest([DeleteTopicState("a"), DeleteTopicState(None, by_id)])
    )
    assert {(one.name, one.error_code) for one in response.responses} == {("a", 0), ("b", 0)}
    assert bench.image.topic_names() == ["c"]
    assert bench.image.topic_configs("a") == {}
    assert bench.image.topics.partition_count == 1


def test_deletions_that_make_no_sense_are_refused() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("a"), topic("b"))
    a, b = bench.image.topic("a").topic_id, bench.image.topic("b").topic_id
    unknown = directory(9)
    response = bench.ask(
        DeleteTopicsRequest(
            [
                DeleteTopicState(None, ZERO_UUID),
                DeleteTopicState("a", a),
                DeleteTopicState("none"),
                DeleteTopicState(None, unknown),
                DeleteTopicState("b"),
                DeleteTopicState(None, b),
                DeleteTopicState("twice"),
                DeleteTopicState("twice"),
            ]
        )
    )
    results = {(one.name, one.topic_id): one.error_code for one in response.responses}
    assert results == {
        (None, ZERO_UUID): ErrorCode.INVALID_REQUEST,
        ("a", a): ErrorCode.INVALID_REQUEST,
        ("none", ZERO_UUID): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (None, unknown): ErrorCode.UNKNOWN_TOPIC_ID,
        ("b", b): ErrorCode.INVALID_REQUEST,
        ("twice", ZERO_UUID): ErrorCode.INVALID_REQUEST,
    }
    assert bench.image.topic_names() == ["a", "b"]


def test_an_id_that_is_named_twice_is_refused() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("a"))
    a = bench.image.topic("a").topic_id
    response = bench.ask(DeleteTopicsRequest([DeleteTopicState(None, a)] * 2))
    assert [one.error_code for one in response.responses] == [ErrorCode.INVALID_REQUEST]
    assert bench.image.topic_names() == ["a"]


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_switched_off(version: int, code: ErrorCode) -> None:
    bench = Bench(brokers=1, delete_topic_enable=False)
    assert bench.refused(DeleteTopicsRequest(topic_names=["a"]), version).code is code


def test_a_name_is_free_again_after_deletion() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("a.b"))
    bench.ask(DeleteTopicsRequest(topic_names=["a.b"]), 5)
    assert outcome(bench.create(topic("a_b"))) == [("a_b", 0)]
    names = [record.name for record in bench.log if isinstance(record, TopicRecord)]
    assert names == ["a.b", "a_b"]


@pytest.mark.parametrize(
    ("brokers", "chosen", "refused"),
    [(1, False, False), (1, True, True), (2, False, True), (3, False, False)],
)
def test_coordinators_need_their_replicas_unless_one_node_is_all(
    brokers: int, chosen: bool, refused: bool
) -> None:
    settings = {"diskless_metadata_replicas": 3, "diskless_metadata_replicas_chosen": chosen}
    bench = Bench(brokers, configs=DisklessConfigs(), **settings)
    code = bench.create(diskless("t")).topics[0].error_code
    assert code == (ErrorCode.INVALID_REPLICATION_FACTOR if refused else ErrorCode.NONE)
