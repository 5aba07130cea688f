"""Elections, AlterPartition and reassignments."""

from __future__ import annotations

from typing import Any

import pytest

from skylog.controller.image.topics import RECOVERED, RECOVERING
from skylog.controller.requests import ElectPreferredLeaders, ElectUncleanLeaders, Loaded
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.messages import assign_replicas_to_dirs_request as assign
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from skylog.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.unit.controller.support import Bench, directory, topic

PREFERRED, UNCLEAN = 0, 1


def cluster(replicas: list[int], brokers: int = 3, **configs: str) -> Bench:
    bench = Bench(brokers=brokers)
    bench.create(topic("t", assignments={0: replicas}, **configs))
    return bench


def alter(bench: Bench, isr: list[int], *, leader: int | None = None, **changes: Any) -> Any:
    """A valid AlterPartition of the leader, except for ``changes``."""
    partition = bench.partition("t")
    data = PartitionData(
        0,
        partition.leader_epoch,
        new_isr_with_epochs=[BrokerState(one, bench.epochs.get(one, -1)) for one in isr],
        partition_epoch=partition.partition_epoch,
    )
    for name, value in changes.items():
        setattr(data, name, value)
    sender = partition.leader if leader is None else leader
    topic_id = bench.image.topic("t").topic_id
    request = AlterPartitionRequest(sender, bench.epochs[sender], [TopicData(topic_id, [data])])
    return bench.ask(request).topics[0].partitions[0]


def leave_and_return(bench: Bench, broker_id: int) -> None:
    bench.expire(broker_id)
    for other in bench.epochs:
        bench.beat(other)


def test_the_isr_shrinks_and_grows_as_the_leader_says() -> None:
    bench = cluster([1, 2, 3])
    result = alter(bench, [1, 2])
    assert (result.error_code, result.isr, result.partition_epoch) == (0, [1, 2], 1)
    assert (result.leader_id, result.leader_epoch) == (1, 0)
    assert bench.partition("t").isr == (1, 2)
    assert alter(bench, [1, 2, 3]).partition_epoch == 2
    assert bench.partition("t").isr == (1, 2, 3)


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([2], {"leader": 2}, ErrorCode.INVALID_REQUEST),
        ([2], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 3], {}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_a_report_that_cannot_be_is_refused(
    isr: list[int], changes: dict[str, Any], code: ErrorCode
) -> None:
    bench = cluster([1, 2, 3], brokers=4)
    bench.expire(3)
    bench.beat(1)
    before = len(bench.log)
    assert bench.partition("t").isr == (1, 2)
    for name in ("leader_epoch", "partition_epoch"):
        if name in changes:
            changes = {name: getattr(bench.partition("t"), name) + changes[name]}
    assert alter(bench, isr, **changes).error_code == code
    assert len(bench.log) == before


def test_a_replica_of_another_life_is_not_in_sync() -> None:
    bench = cluster([1, 2])
    assert alter(bench, [1]).error_code == 0
    stale = [BrokerState(1, -1), BrokerState(2, bench.epochs[2] + 1)]
    refused = alter(bench, [], new_isr_with_epochs=stale)
    assert refused.error_code == ErrorCode.INELIGIBLE_REPLICA


def test_old_reports_name_no_epochs() -> None:
    bench = cluster([1, 2])
    partition = bench.partition("t")
    data = PartitionData(0, partition.leader_epoch, new_isr=[1])
    topic_id = bench.image.topic("t").topic_id
    request = AlterPartitionRequest(1, bench.epochs[1], [TopicData(topic_id, [data])])
    assert bench.ask(request, 2).topics[0].partitions[0].isr == [1]


def test_reports_of_unknown_brokers_are_refused() -> None:
    bench = cluster([1, 2])
    unknown = TopicData(Uuid(b"x" * 16), [PartitionData(0)])
    response = bench.ask(AlterPartitionRequest(1, bench.epochs[1], [unknown]))
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    stale = AlterPartitionRequest(1, bench.epochs[1] + 1, [])
    assert bench.refused(stale).code is ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_that_has_recovered_says_so() -> None:
    bench = cluster([1], brokers=1)
    bench.expire(1)
    bench.join(1, life=1)
    assert bench.partition("t").leader_recovery_state == RECOVERING
    result = alter(bench, [1], leader_recovery_state=RECOVERED)
    assert (result.error_code, result.leader_recovery_state) == (0, RECOVERED)
    assert bench.partition("t").leader_recovery_state == RECOVERED


def elect(bench: Bench, election: int, *partitions: int, name: str = "t") -> list[int]:
    wanted = [TopicPartitions(name, list(partitions))]
    response = bench.ask(ElectLeadersRequest(election, wanted))
    return [one.error_code for one in response.replica_election_results[0].partition_result]


def test_the_preferred_leader_is_elected_when_it_is_in_sync() -> None:
    bench = cluster([1, 2])
    assert elect(bench, PREFERRED, 0) == [ErrorCode.ELECTION_NOT_NEEDED]
    leave_and_return(bench, 1)
    assert bench.partition("t").leader == 2
    assert elect(bench, PREFERRED, 0) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    alter(bench, [2, 1])
    assert elect(bench, PREFERRED, 0) == [0]
    assert (bench.partition("t").leader, bench.partition("t").isr) == (1, (2, 1))


def test_elections_of_what_is_not_there() -> None:
    bench = cluster([1, 2])
    assert elect(bench, PREFERRED, 7) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert elect(bench, PREFERRED, 0, name="u") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    nobody = ElectLeadersRequest(2, [TopicPartitions("t", [0])])
    assert bench.refused(nobody).code is ErrorCode.INVALID_REQUEST
    assert bench.ask(ElectLeadersRequest(2, [])).replica_election_results == []


def test_all_partitions_may_be_asked_for_and_settled_ones_are_not_shown() -> None:
    bench = Bench(brokers=2)
    bench.create(topic("t", assignments={0: [1, 2], 1: [2, 1]}))
    leave_and_return(bench, 1)
    response = bench.ask(ElectLeadersRequest(PREFERRED, None))
    shown = [
        (one.partition_id, one.error_code)
        for one in response.replica_election_results[0].partition_result
    ]
    assert shown == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]


def test_an_unclean_leader_is_elected_only_when_asked_for() -> None:
    bench = cluster([1, 2])
    alter(bench, [1])
    assert elect(bench, UNCLEAN, 0) == [ErrorCode.ELECTION_NOT_NEEDED]
    bench.expire(1)
    bench.beat(2)
    gone = bench.partition("t")
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (), (1,), (1,))
    assert elect(bench, UNCLEAN, 0) == [0]
    unclean = bench.partition("t")
    assert (unclean.leader, unclean.isr, unclean.elr) == (2, (2,), ())
    assert unclean.leader_recovery_state == RECOVERING


def test_no_leader_is_elected_without_a_live_replica() -> None:
    bench = cluster([1], brokers=1)
    bench.expire(1)
    assert elect(bench, UNCLEAN, 0) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_a_topic_may_allow_unclean_leaders_by_itself() -> None:
    bench = cluster([1, 2], unclean_leader_election_enable="true")
    alter(bench, [1])
    bench.expire(1)
    bench.beat(2)
    assert bench.partition("t").leader == 2


def test_partitions_go_back_to_their_preferred_leaders_in_time() -> None:
    bench = cluster([1, 2])
    leave_and_return(bench, 1)
    alter(bench, [2, 1])
    assert bench.partition("t").leader == 2
    bench.run(ElectPreferredLeaders())
    assert bench.partition("t").leader == 1
    assert bench.timers["elect-preferred-leaders"].delay_ms == 300_000


def test_partitions_stay_where_they_are_if_that_is_set() -> None:
    bench = Bench(brokers=1, leader_rebalance_enable=False, unclean_election_interval_ms=7)
    bench.timers.clear()
    bench.run(Loaded())
    assert "elect-preferred-leaders" not in bench.timers
    assert bench.timers["elect-unclean-leaders"].delay_ms == 7
    bench.run(ElectUncleanLeaders())
    assert bench.timers["elect-unclean-leaders"].delay_ms == 7


def test_many_elections_are_made_in_steps() -> None:
    bench = Bench(brokers=2, elections_per_check_max=2)
    bench.create(topic("t", assignments={index: [1, 2] for index in range(3)}))
    leave_and_return(bench, 1)
    for index in range(3):
        partition = bench.partition("t", index)
        data = PartitionData(
            index,
            partition.leader_epoch,
            new_isr_with_epochs=[BrokerState(1), BrokerState(2)],
            partition_epoch=partition.partition_epoch,
        )
        topic_id = bench.image.topic("t").topic_id
        bench.ask(AlterPartitionRequest(2, bench.epochs[2], [TopicData(topic_id, [data])]))
    for left, delay_ms in ((1, 0), (0, 300_000)):
        bench.run(ElectPreferredLeaders())
        assert len(bench.image.topics.imbalanced) == left
        assert bench.timers["elect-preferred-leaders"].delay_ms == delay_ms


def reassign(bench: Bench, replicas: list[int] | None, index: int = 0, **options: Any) -> int:
    wanted = ReassignableTopic("t", [ReassignablePartition(index, replicas)])
    response = bench.ask(AlterPartitionReassignmentsRequest(topics=[wanted], **options))
    assert (response.error_code, response.error_message) == (0, None)
    return int(response.responses[0].partitions[0].error_code)


def ongoing(bench: Bench) -> list[tuple[list[int], list[int], list[int]]]:
    response = bench.ask(ListPartitionReassignmentsRequest())
    return [
        (one.replicas, one.adding_replicas, one.removing_replicas)
        for listed in response.topics
        for one in listed.partitions
    ]


def test_a_partition_moves_when_its_new_replicas_are_in_sync() -> None:
    bench = cluster([1, 2], brokers=4)
    assert reassign(bench, [3, 4]) == 0
    assert bench.partition("t").replicas == (3, 4, 1, 2)
    assert ongoing(bench) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    assert alter(bench, [1, 2, 3]).error_code == 0
    assert bench.partition("t").reassigning
    assert alter(bench, [1, 2, 3, 4]).error_code == ErrorCode.NEW_LEADER_ELECTED
    done = bench.partition("t")
    assert (done.replicas, done.isr, done.leader) == ((3, 4), (3, 4), 3)
    assert done.directories == (directory(3), directory(4))
    assert ongoing(bench) == []


def test_another_order_is_taken_at_once() -> None:
    bench = cluster([1, 2])
    assert reassign(bench, [2, 1]) == 0
    partition = bench.partition("t")
    assert (partition.replicas, partition.leader) == ((2, 1), 1)
    assert partition.directories == (directory(2), directory(1))
    assert not partition.reassigning


def test_fewer_replicas_are_taken_at_once_with_a_new_leader_epoch() -> None:
    bench = cluster([1, 2, 3])
    assert reassign(bench, [1, 2]) == 0
    partition = bench.partition("t")
    assert (partition.replicas, partition.isr, partition.leader_epoch) == ((1, 2), (1, 2), 1)


def test_what_is_so_already_changes_nothing() -> None:
    bench = cluster([1, 2])
    before = len(bench.log)
    assert reassign(bench, [1, 2]) == 0
    assert len(bench.log) == before


def test_a_reassignment_is_cancelled() -> None:
    bench = cluster([1, 2], brokers=4)
    assert reassign(bench, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(bench, [3, 4])
    alter(bench, [1, 2, 3])
    assert reassign(bench, None) == 0
    partition = bench.partition("t")
    assert (sorted(partition.replicas), partition.isr, partition.leader) == ([1, 2], (1, 2), 1)
    assert not partition.reassigning


def test_no_cancelling_where_only_newcomers_are_in_sync() -> None:
    bench = cluster([1], brokers=3)
    reassign(bench, [2, 3])
    alter(bench, [1, 2])
    bench.expire(1)
    bench.beat(2)
    bench.beat(3)
    assert bench.partition("t").isr == (2,)
    assert reassign(bench, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("replicas", "index", "code"),
    [
        ([], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_target_that_cannot_be_is_refused(
    replicas: list[int], index: int, code: ErrorCode
) -> None:
    assert reassign(cluster([1, 2]), replicas, index) == code


def test_the_replication_factor_may_be_kept() -> None:
    bench = cluster([1, 2])
    kept = {"allow_replication_factor_change": False}
    assert reassign(bench, [1, 2, 3], **kept) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(bench, [1, 3], **kept) == 0
    assert reassign(bench, [1], **kept) == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_partition_that_is_named_twice_is_not_moved() -> None:
    bench = cluster([1, 2])
    wanted = ReassignableTopic(
        "t", [ReassignablePartition(0, [1, 2, 3]), ReassignablePartition(0, [2, 1])]
    )
    response = bench.ask(AlterPartitionReassignmentsRequest(topics=[wanted]))
    codes = [one.error_code for one in response.responses[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
    assert not bench.partition("t").reassigning


def test_reassignments_are_listed_by_partition() -> None:
    bench = cluster([1, 2])
    reassign(bench, [1, 3])
    for name, indexes, found in (("t", [0, 9], 1), ("t", [], 0), ("u", [0], 0)):
        wanted = ListPartitionReassignmentsTopics(name, indexes)
        response = bench.ask(ListPartitionReassignmentsRequest(topics=[wanted]))
        assert len(response.topics) == found


def test_replicas_are_assigned_to_directories() -> None:
    bench = Bench(brokers=1)
    bench.join(2, log_dirs=[directory(2), directory(22)])
    bench.create(topic("t", assignments={0: [2, 1]}))
    topic_id = bench.image.topic("t").topic_id

    def put(where: Uuid, index: int = 0, broker_id: int = 2, topic_id: Uuid = topic_id) -> int:
        data = assign.TopicData(topic_id, [assign.PartitionData(index)])
        request = assign.AssignReplicasToDirsRequest(
            broker_id, bench.epochs[broker_id], [assign.DirectoryData(where, [data])]
        )
        return int(bench.ask(request).directories[0].topics[0].partitions[0].error_code)

    assert put(directory(22)) == 0
    assert bench.partition("t").directories == (directory(22), directory(1))
    assert put(directory(22), index=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert put(directory(22), topic_id=Uuid(b"x" * 16)) == ErrorCode.UNKNOWN_TOPIC_ID
    bench.join(3)
    assert put(directory(3), broker_id=3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert put(directory(99)) == 0
    assert (bench.partition("t").leader, bench.partition("t").isr) == (1, (1,))
