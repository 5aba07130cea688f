"""Diskless topics at the controller: how many replicas, where, and who is in sync."""

from __future__ import annotations

from collections import Counter

import pytest

from skylog.controller.settings import ReplicaPacing
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from tests.unit.controller.racks_support import (
    F6,
    OFFLINE_TIMER,
    WARNING_TIMER,
    RackBench,
    diskless,
)
from tests.unit.controller.support import directory, topic

FACTOR_TEXT = (
    "replication factor is system-managed for diskless topics; "
    "use replicationFactor=-1 or replicationFactor=1"
)
ASSIGNMENT_TEXT = (
    "replica assignments cannot be specified for diskless topics; "
    "placement is system-managed at creation time"
)
WARNING = (
    "[Controller] Diskless topic 'foo' partition 0 has non-rack-aware placement: replicas "
    "[101,102,105] map to racks [A,A,C]. Expected one replica per rack."
)
SINGLE = "Diskless topic 'foo' has RF=1; consider expanding to rack-aware placement"


# Creation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [-1, 1])
def test_a_topic_has_as_many_replicas_as_there_are_racks(factor: int) -> None:
    # MRF-12 partly, MRF-13 partly
    bench = RackBench()
    answer = bench.create(diskless("foo", 3, factor)).topics[0]
    assert (answer.error_code, answer.replication_factor) == (0, 3)
    assert {len(replicas) for replicas in bench.replicas("foo")} == {3}


@pytest.mark.parametrize(
    ("racks", "factor"),
    [
        ({1: "A", 2: "A", 3: "B"}, 2),
        ({1: "A", 2: "B", 3: None}, 3),  # MRF-09
        ({1: None, 2: None, 3: None}, 1),  # MRF-10
        ({1: ""}, 1),
    ],
)
def test_brokers_without_a_rack_are_one_rack_together(
    racks: dict[int, str | None], factor: int
) -> None:
    bench = RackBench(racks)
    bench.create(diskless("foo"))
    assert len(bench.partition("foo").replicas) == factor


def test_every_partition_has_one_replica_in_each_rack() -> None:
    bench = RackBench()
    bench.create(diskless("foo", 30))
    for replicas in bench.replicas("foo"):  # MRF-07
        assert sorted(bench.racks_of(replicas)) == ["A", "B", "C"]


def test_brokers_of_a_rack_share_its_replicas_evenly() -> None:
    bench = RackBench()
    bench.create(diskless("foo", 45), diskless("bar", 15))
    held = Counter(one for name in ("foo", "bar") for each in bench.replicas(name) for one in each)
    led = Counter(bench.partition("foo", index).leader for index in range(45))
    for first, second in ((101, 102), (103, 104), (105, 106)):  # MRF-08
        assert abs(held[first] - held[second]) <= 1
    assert max(led.values()) - min(led.values()) <= 1


def test_classic_replicas_count_as_load() -> None:
    bench = RackBench()
    bench.create(topic("classic", assignments={0: [101], 1: [101], 2: [103]}))
    bench.create(diskless("foo"))
    assert sorted(bench.replicas("foo")[0]) == [102, 104, 105]


def test_new_partitions_are_in_sync_and_rotate_their_first_replica() -> None:
    bench = RackBench({1: "A", 3: "B", 5: "C"})
    bench.create(diskless("foo", 3))
    assert bench.replicas("foo") == [[1, 3, 5], [3, 5, 1], [5, 1, 3]]  # MRF-66 partly
    for index in range(3):  # MRF-17 partly
        found = bench.partition("foo", index)
        assert (found.isr, found.leader) == (found.replicas, found.replicas[0])


@pytest.mark.parametrize("factor", [2, 3, 0, -2])
def test_a_replication_factor_of_the_clients_own_is_refused(factor: int) -> None:
    # MRF-14 partly: even the right number. MRF-15.
    bench = RackBench()
    before = len(bench.log)
    answer = bench.create(diskless("foo", 1, factor)).topics[0]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, FACTOR_TEXT)
    assert len(bench.log) == before


def test_an_assignment_of_the_clients_own_is_refused() -> None:
    bench = RackBench()  # MRF-16 partly
    before = len(bench.log)
    answer = bench.create(diskless("foo", assignments={0: [101, 103, 105]})).topics[0]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, ASSIGNMENT_TEXT)
    assert len(bench.log) == before


@pytest.mark.parametrize("count", [0, -2])
def test_partitions_must_be_some(count: int) -> None:
    answer = RackBench().create(diskless("foo", count)).topics[0]
    assert answer.error_code == ErrorCode.INVALID_PARTITIONS


def test_without_a_living_broker_nothing_is_created() -> None:
    bench = RackBench()
    bench.kill(*F6)
    answer = bench.create(diskless("foo")).topics[0]
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced" in answer.error_message


def test_a_rack_that_is_away_still_counts_but_does_not_lead() -> None:
    bench = RackBench()
    bench.kill(101, 102)
    bench.create(diskless("foo", 6))
    for index in range(6):
        found = bench.partition("foo", index)
        assert len(found.replicas) == 3
        assert bench.racks_of([found.leader]) != ["A"]
        assert set(bench.racks_of(found.isr)) == {"B", "C"}


def test_classic_topics_are_placed_as_before() -> None:
    bench = RackBench()
    answer = bench.create(topic("classic", 4, 2)).topics[0]
    assert answer.replication_factor == 2
    assert bench.create(topic("other", 1, 7)).topics[0].error_code == (
        ErrorCode.INVALID_REPLICATION_FACTOR
    )


def test_only_kafkas_own_records_are_written() -> None:
    bench = RackBench()  # MRF-02 partly
    before = len(bench.log)
    bench.create(diskless("foo", 3))
    bench.reassign("foo", 0, [102, 104, 106])
    bench.kill(103)
    bench.wait(60_000)
    kinds = {type(record).__name__ for record in bench.log[before:]}
    assert kinds == {
        "TopicRecord",
        "ConfigRecord",
        "PartitionRecord",
        "PartitionChangeRecord",
        "BrokerRegistrationChangeRecord",
    }


# Adding partitions ------------------------------------------------------------------------------


def grow(bench: RackBench, count: int, assignments: list[list[int]] | None = None) -> object:
    given = None if assignments is None else [CreatePartitionsAssignment(a) for a in assignments]
    request = CreatePartitionsRequest([CreatePartitionsTopic("foo", count, given)])
    return bench.ask(request).results[0]


def test_added_partitions_have_the_racks_of_now() -> None:
    bench = RackBench({1: "A", 2: "B"})
    bench.create(diskless("foo", 2))
    before = [bench.partition("foo", index) for index in range(2)]
    bench.add(3, "C")
    assert grow(bench, 4).error_code == 0  # type: ignore[attr-defined]
    # MRF-18 partly, MRF-19 partly, MRF-20 partly
    assert [bench.partition("foo", index) for index in range(2)] == before
    for replicas in bench.replicas("foo")[2:]:
        assert sorted(bench.racks_of(replicas)) == ["A", "B", "C"]


def test_added_partitions_cannot_be_assigned_by_hand() -> None:
    bench = RackBench()  # MRF-21 partly
    bench.create(diskless("foo", 2))
    answer = grow(bench, 3, [[101, 103, 105]])
    assert answer.error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]
    assert answer.error_message == ASSIGNMENT_TEXT  # type: ignore[attr-defined]
    assert len(bench.replicas("foo")) == 2


# Live replicas are in sync-----------------------------------------------------------------------


def test_a_stopped_broker_leaves_the_isr_and_returns_at_once() -> None:
    bench = RackBench()  # MRF-48 partly
    bench.create(diskless("foo"))
    bench.kill(101)
    found = bench.partition("foo")
    assert (found.isr, found.leader, found.elr) == ((103, 105), 103, ())
    bench.revive(101)
    found = bench.partition("foo")
    assert (found.replicas, found.isr) == ((101, 103, 105), (101, 103, 105))


def test_the_last_isr_stays_when_no_replica_is_left() -> None:
    bench = RackBench({1: "A", 2: "B"})
    bench.create(diskless("foo"))
    bench.kill(1, 2)
    found = bench.partition("foo")
    assert (found.leader, found.isr) == (-1, (2,))
    bench.revive(1)
    found = bench.partition("foo")
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), 0)


def test_a_controlled_shutdown_moves_leaders_first() -> None:
    bench = RackBench()  # MRF-27 partly
    bench.create(diskless("foo"))
    answer = bench.beat(101, want_shut_down=True)
    assert not answer.should_shut_down
    found = bench.partition("foo")
    assert (found.leader, found.isr) == (103, (103, 105))
    for other in (102, 103, 104, 105, 106):
        bench.beat(other)
    assert bench.beat(101, want_shut_down=True).should_shut_down


def test_brokers_do_not_report_isr_changes() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    found = bench.partition("foo")
    topic_id = bench.image.topic("foo").topic_id
    data = PartitionData(
        0, found.leader_epoch, new_isr_with_epochs=[BrokerState(101)], partition_epoch=0
    )
    request = AlterPartitionRequest(101, bench.epochs[101], [TopicData(topic_id, [data])])
    answer = bench.ask(request).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert bench.partition("foo") == found


def test_a_lost_directory_is_no_loss() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    before = bench.partition("foo")
    bench.beat(101, offline_log_dirs=[directory(101)])
    assert bench.partition("foo") == before


def test_leaders_are_elected_among_the_living() -> None:
    bench = RackBench()  # MRF-22 partly
    bench.create(diskless("foo"))
    bench.kill(101)
    bench.revive(101)
    assert bench.partition("foo").leader == 103
    answer = bench.ask(ElectLeadersRequest(0, [TopicPartitions("foo", [0])]))
    assert answer.replica_election_results[0].partition_result[0].error_code == 0
    assert bench.partition("foo").leader == 101


def test_an_unclean_election_is_never_needed() -> None:
    bench = RackBench({1: "A", 2: "B"})  # MRF-23 partly
    bench.create(diskless("foo", unclean_leader_election_enable="true"))
    bench.kill(1, 2)
    bench.revive(1)
    found = bench.partition("foo")
    assert (found.leader, found.leader_recovery_state) == (1, 0)


# Reassignment by operators ----------------------------------------------------------------------


def test_a_reassignment_is_done_at_once() -> None:
    bench = RackBench()  # MRF-29 partly
    bench.create(diskless("foo"))
    assert bench.reassign("foo", 0, [102, 104, 106]).error_code == 0
    found = bench.partition("foo")
    assert found.replicas == found.isr == (102, 104, 106)
    assert (found.leader, found.reassigning) == (102, False)
    assert bench.ask(ListPartitionReassignmentsRequest(topics=None)).topics == []
    assert bench.notes == []


def test_a_reassignment_changes_the_replication_factor() -> None:
    bench = RackBench()
    bench.load("foo", [103])
    assert bench.reassign("foo", 0, [101, 103, 105]).error_code == 0
    found = bench.partition("foo")
    assert (found.replicas, found.isr, found.leader) == ((101, 103, 105), (101, 103, 105), 103)


def test_a_broker_that_is_away_does_not_enter_the_isr() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.kill(102)
    assert bench.reassign("foo", 0, [102, 104, 106]).error_code == 0
    found = bench.partition("foo")
    assert (found.isr, found.leader) == ((104, 106), 104)


def test_a_reassignment_to_dead_brokers_is_refused() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    before = bench.partition("foo")
    bench.kill(102)
    answer = bench.reassign("foo", 0, [102])
    assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert bench.partition("foo") == before


@pytest.mark.parametrize("target", [[999], [], [101, 101]])
def test_a_reassignment_that_makes_no_sense_is_refused(target: list[int]) -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    before = len(bench.log)
    assert bench.reassign("foo", 0, target).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert len(bench.log) == before


def test_two_replicas_in_a_rack_are_accepted_and_warned_of() -> None:
    bench = RackBench()  # MRF-30 partly, MRF-58 partly
    bench.create(diskless("foo"))
    assert bench.reassign("foo", 0, [101, 102, 105]).error_code == 0
    assert bench.notes == [WARNING]


def test_the_warning_comes_again_while_it_lasts() -> None:
    bench = RackBench(pacing=ReplicaPacing(warning_interval_ms=5))  # MRF-59
    bench.create(diskless("foo"))
    bench.reassign("foo", 0, [101, 102, 105])
    for _ in range(2):
        assert bench.timers[WARNING_TIMER].delay_ms == 5
        bench.run(bench.timers[WARNING_TIMER].request)
    assert bench.notes == [WARNING] * 3
    bench.reassign("foo", 0, [101, 103, 105])
    bench.run(bench.timers[WARNING_TIMER].request)
    assert bench.notes == [WARNING] * 3


def test_a_single_replica_is_warned_of_where_there_are_racks() -> None:
    bench = RackBench()  # MRF-47 partly
    bench.create(diskless("foo"))
    bench.reassign("foo", 0, [101])
    bench.run(bench.timers[WARNING_TIMER].request)
    assert bench.notes == [SINGLE, SINGLE]
    bench.wait(10**9)
    assert bench.replicas("foo") == [[101]]  # and never expanded
    alone = RackBench({1: None})
    alone.create(diskless("foo"))
    alone.run(alone.timers[WARNING_TIMER].request)
    assert alone.notes == []


def test_of_very_many_warnings_only_some_are_written() -> None:
    bench = RackBench()
    bench.load("foo", *([[101, 102]] * 150))
    bench.run(bench.timers[WARNING_TIMER].request)
    assert len(bench.notes) == 101
    assert bench.notes[-1] == "50 more diskless placements are like these"


def test_what_paces_the_controller_changes_while_it_runs() -> None:
    bench = RackBench()
    bench.set_broker_config("diskless.placement.warning.interval.ms", "7")
    bench.set_broker_config("diskless.reassignment.grace.ms", "nonsense")
    bench.run(bench.timers[WARNING_TIMER].request)
    assert bench.timers[WARNING_TIMER].delay_ms == 7
    assert bench.machine.state.replica_pacing().grace_ms == 60_000


def test_topics_keep_their_racks_when_racks_come_and_go() -> None:
    bench = RackBench()  # MRF-11 partly, MRF-31 partly
    bench.create(diskless("foo", 3))
    before = bench.replicas("foo")
    bench.add(107, "D")
    bench.wait(10**6)
    assert bench.replicas("foo") == before
    bench.create(diskless("new"))
    assert len(bench.replicas("new")[0]) == 4
    bench.reassign("foo", 0, [101, 103, 105, 107])
    assert len(bench.replicas("foo")[0]) == 4


def test_the_controller_looks_when_it_starts() -> None:
    bench = RackBench({})
    assert {OFFLINE_TIMER, WARNING_TIMER} <= set(bench.timers)
