"""Replicas of diskless partitions whose brokers are offline."""

from __future__ import annotations

import pytest

from skylog.controller.machine import ControllerMachine
from skylog.controller.requests import Loaded
from skylog.controller.settings import ReplicaPacing
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.unit.controller.racks_support import (
    F6,
    OFFLINE_TIMER,
    DisklessConfigs,
    RackBench,
    diskless,
)
from tests.unit.controller.support import topic

AT_ONCE = ReplicaPacing(grace_ms=0, settle_ms=0, interval_ms=1)


def test_a_partition_of_another_cluster_is_placed_anew() -> None:
    # MRF-33 partly, MRF-34 partly
    bench = RackBench()
    bench.load("foo", [3])
    bench.look()
    assert bench.replicas("foo") == [[3]], "registrations have not settled"
    bench.wait(30_000)
    found = bench.partition("foo")
    assert (found.replicas, found.isr, found.leader) == ((101, 103, 105), (101, 103, 105), 101)
    assert bench.notes == [
        "Detected diskless partition 'foo-0' with non-existent broker (broker 3 not registered)",
        "Reassigned diskless partition 'foo-0' to RF=3, replicas=[101,103,105]",
    ]
    assert bench.replaced == 3


def test_it_waits_for_the_last_broker_that_is_new() -> None:
    bench = RackBench({101: "A"})
    bench.load("foo", [3])
    bench.wait(20_000)
    bench.add(103, "B")
    bench.look()
    bench.wait(20_000)
    assert bench.replicas("foo") == [[3]]
    assert bench.timers[OFFLINE_TIMER].delay_ms == 10_000
    bench.wait(10_000)
    assert sorted(bench.replicas("foo")[0]) == [101, 103]


def test_living_replicas_of_a_mixed_list_are_kept() -> None:
    bench = RackBench(pacing=AT_ONCE)
    bench.load("foo", [3, 102, 104])
    bench.look()
    assert set(bench.replicas("foo")[0]) == {102, 104, 105}
    assert bench.replaced == 1


def test_an_unregistered_broker_is_unknown() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.reassign("foo", 0, [101, 103])
    bench.kill(103)
    bench.wait(30_000)
    assert bench.replicas("foo") == [[101, 103]]
    bench.ask(UnregisterBrokerRequest(103))
    bench.look()
    assert set(bench.replicas("foo")[0]) == {101, 104, 105}


def test_one_that_is_away_is_replaced_in_its_rack_after_a_grace() -> None:
    # MRF-35 partly, MRF-36 partly, MRF-38 partly
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.kill(101)
    assert bench.replicas("foo") == [[101, 103, 105]]
    assert bench.timers[OFFLINE_TIMER].delay_ms == 60_000
    bench.wait(59_999)
    assert bench.replicas("foo") == [[101, 103, 105]]
    bench.wait(1)
    found = bench.partition("foo")
    assert (found.replicas, found.isr) == ((102, 103, 105), (102, 103, 105))
    assert bench.notes == [
        "Detected diskless partition 'foo-0' with offline replica (broker 101)",
        "Reassigned diskless partition 'foo-0' replica: broker 101 → 102",
    ]
    assert bench.replaced == 1


def test_a_broker_that_returns_in_time_keeps_its_replicas() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.kill(101)
    bench.wait(30_000)
    bench.revive(101)
    bench.wait(60_000)
    assert bench.replicas("foo") == [[101, 103, 105]]
    # A second absence counts from its own start.
    bench.kill(101)
    bench.wait(59_000)
    assert bench.replicas("foo") == [[101, 103, 105]]


def test_a_broker_that_returns_late_gets_nothing_back() -> None:
    bench = RackBench(pacing=AT_ONCE)  # MRF-41 partly
    bench.create(diskless("foo"))
    bench.kill(101)
    after = bench.replicas("foo")
    assert after == [[102, 103, 105]]
    bench.revive(101)
    bench.wait(10**6)
    assert bench.replicas("foo") == after


def test_a_single_replica_moves_at_once_and_stays_single() -> None:
    bench = RackBench()  # MRF-35 partly, MRF-40 partly
    bench.create(diskless("foo"))
    bench.reassign("foo", 0, [101])
    bench.kill(101)
    found = bench.partition("foo")
    assert (found.replicas, found.isr, found.leader) == ((102,), (102,), 102)


def test_of_a_partition_without_any_living_replica_one_moves_at_once() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.kill(101, 103, 105)
    found = bench.partition("foo")
    assert (found.replicas, found.isr, found.leader) == ((102, 103, 105), (102,), 102)
    bench.wait(60_000)
    assert bench.replicas("foo") == [[102, 104, 106]]


def test_a_cluster_that_is_shut_down_broker_by_broker_keeps_its_racks() -> None:
    bench = RackBench()
    bench.create(diskless("foo", 6))
    for broker in F6:
        bench.kill(broker)
    for replicas in bench.replicas("foo"):
        assert sorted(bench.racks_of(replicas)) == ["A", "B", "C"]


def test_racks_are_given_up_only_after_the_grace() -> None:
    bench = RackBench()
    bench.create(diskless("foo"))
    bench.reassign("foo", 0, [101, 102])
    bench.kill(101, 102)
    assert bench.replicas("foo") == [[101, 102]]
    bench.wait(60_000)
    assert not {101, 102} & set(bench.replicas("foo")[0])


def test_a_lost_rack_goes_elsewhere_with_a_warning() -> None:
    bench = RackBench(pacing=AT_ONCE)  # MRF-37 partly, MRF-42 partly
    bench.create(diskless("foo"))
    bench.kill(101, 102)
    replicas = bench.replicas("foo")[0]
    assert len(replicas) == len(set(replicas)) == 3
    assert set(bench.racks_of(replicas)) == {"B", "C"}
    assert [note for note in bench.notes if "non-rack-aware" in note]
    bench.revive(101)
    bench.revive(102)
    bench.wait(10**6)
    assert bench.replicas("foo")[0] == replicas


def test_without_other_brokers_a_replica_waits_for_one() -> None:
    bench = RackBench({1: "A", 2: "B", 3: "C"}, pacing=AT_ONCE)
    bench.create(diskless("foo"))
    bench.kill(1)
    before = len(bench.log)
    bench.wait(60_000)
    assert bench.replicas("foo") == [[1, 2, 3]]
    assert len(bench.log) == before
    bench.add(4, "A")
    bench.look()
    assert bench.replicas("foo") == [[4, 2, 3]]


def test_classic_topics_are_left_alone() -> None:
    bench = RackBench(pacing=AT_ONCE)  # MRF-32 partly
    bench.create(topic("classic", assignments={0: [101, 103]}), diskless("foo"))
    bench.kill(101)
    assert bench.replicas("classic") == [[101, 103]]
    assert bench.replicas("foo") == [[102, 103, 105]]


def test_many_are_done_in_batches() -> None:
    pacing = ReplicaPacing(grace_ms=0, batch_size=50, interval_ms=1_000)
    bench = RackBench(pacing=pacing)  # MRF-44
    bench.create(diskless("foo", 1_000))
    affected = sum(101 in replicas for replicas in bench.replicas("foo"))
    before = len(bench.log)
    bench.kill(101)
    moved = [bench.replaced]
    while bench.replaced < affected:
        assert bench.timers[OFFLINE_TIMER].delay_ms <= 1_000
        bench.look()  # too early: something else has happened to brokers
        assert bench.replaced == moved[-1]
        bench.wait(1_000)
        moved.append(bench.replaced)
    assert moved == [min(50 * (step + 1), affected) for step in range(len(moved))]
    assert not any(101 in replicas for replicas in bench.replicas("foo"))
    assert len(bench.log) > before


def test_those_without_a_leader_go_first() -> None:
    bench = RackBench(pacing=ReplicaPacing(grace_ms=0, batch_size=1, interval_ms=1_000))
    bench.load("shared", [101, 103])
    bench.load("alone", [101])
    bench.kill(101)
    assert (bench.replicas("alone"), bench.replicas("shared")) == ([[102]], [[101, 103]])


def test_looking_again_changes_nothing() -> None:
    bench = RackBench(pacing=AT_ONCE)  # MRF-45
    bench.create(diskless("foo", 10), topic("classic", 3, 1))
    bench.kill(101)
    bench.wait(10)
    before = len(bench.log)
    for _ in range(5):
        bench.wait(60_000)
    assert len(bench.log) == before


def test_a_single_replica_on_a_living_broker_is_never_touched() -> None:
    bench = RackBench(pacing=AT_ONCE)  # MRF-46
    bench.load("foo", [103])
    bench.wait(10**6)
    assert bench.replicas("foo") == [[103]]
    bench.kill(103)
    assert bench.replicas("foo") == [[104]]


def test_a_new_controller_takes_over_and_repairs() -> None:
    bench = RackBench()  # MRF-43 partly, MRF-04 partly
    bench.create(diskless("foo", 3), diskless("bar"))
    bench.kill(101)
    before = bench.replicas("foo"), bench.replicas("bar")
    settings = bench.machine.state.settings
    bench.machine = ControllerMachine(settings, DisklessConfigs())
    for offset, record in enumerate(bench.log):
        bench.machine.apply(record, offset)
    bench.run(Loaded())
    assert bench.timers[OFFLINE_TIMER].delay_ms == 0
    bench.look()
    assert (bench.replicas("foo"), bench.replicas("bar")) == before
    assert bench.replaced == 0
    bench.wait(60_000)
    assert not any(101 in replicas for replicas in bench.replicas("foo"))
    assert bench.replaced > 0


def test_a_cluster_without_living_brokers_waits() -> None:
    bench = RackBench(pacing=AT_ONCE)
    bench.load("foo", [3])
    bench.kill(*F6)
    assert bench.replicas("foo") == [[3]]
    bench.revive(104)
    assert len(bench.replicas("foo")[0]) == 3
    assert bench.partition("foo").leader == 104


@pytest.mark.parametrize("event", ["fence", "unfence", "register", "unregister"])
def test_each_change_of_brokers_makes_the_controller_look(event: str) -> None:
    bench = RackBench()  # MRF-43 partly
    bench.kill(102)
    bench.timers.pop(OFFLINE_TIMER)
    match event:
        case "fence":
            bench.beat(101, want_fence=True)
        case "unfence":
            bench.join(102, rack="A", life=1)
        case "register":
            bench.register(107, rack="D")
        case "unregister":
            bench.ask(UnregisterBrokerRequest(102))
    assert bench.timers[OFFLINE_TIMER].delay_ms == 0
