"""Metadata of diskless partitions as clients see it."""

from __future__ import annotations

from collections import Counter

import pytest

from skylog.controller.image.topics import Partition
from skylog.kernel.ids import Uuid
from skylog.routing.transformer import Route, locate

TOPIC = Uuid(b"0123456789abcdef")
F6: dict[int, str | None] = {101: "A", 102: "A", 103: "B", 104: "B", 105: "C", 106: "C"}


def partition(*replicas: int, leader: int = -2) -> Partition:
    return Partition(
        replicas,
        (TOPIC,) * len(replicas),
        replicas,
        replicas[0] if leader == -2 else leader,
        7,
        0,
        diskless_coordinator=0,
    )


@pytest.mark.parametrize(("zone", "local"), [("A", 101), ("B", 103), ("C", 105)])
def test_a_client_sees_only_the_replica_in_its_zone(zone: str, local: int) -> None:
    # MRF-55 partly, MRF-24 partly: whoever leads
    for leader in (101, 103, 105):
        found = locate(TOPIC, 0, partition(101, 103, 105, leader=leader), zone, F6)
        assert found is not None
        assert (found.route, found.leader) == (Route.LOCAL, local)
        assert (found.replicas, found.isr, found.offline) == ((local,), (local,), ())


@pytest.mark.parametrize(("zone", "route"), [("D", Route.REMOTE), (None, Route.UNAWARE)])
def test_without_a_local_replica_everything_is_as_it_is(zone: str | None, route: Route) -> None:
    state = partition(101, 103, 105, leader=103)  # MRF-56 partly
    found = locate(TOPIC, 0, state, zone, F6)
    assert found is not None
    assert (found.route, found.leader) == (route, 103)
    assert (found.replicas, found.isr) == (state.replicas, state.isr)


def test_a_dead_local_replica_counts_as_none() -> None:
    alive = {broker: rack for broker, rack in F6.items() if broker != 101}
    found = locate(TOPIC, 0, partition(101, 103, 105, leader=103), "A", alive)
    assert found is not None
    assert (found.route, found.leader, found.offline) == (Route.REMOTE, 103, [101])


def test_without_a_leader_a_live_replica_is_returned() -> None:
    alive = {broker: rack for broker, rack in F6.items() if broker != 101}
    for leader in (-1, 101):
        found = locate(TOPIC, 0, partition(101, 103, 105, leader=leader), None, alive)
        assert found is not None
        assert found.leader == 103


def test_several_local_replicas_share_the_partitions() -> None:
    leaders = Counter()
    for index in range(200):
        found = locate(TOPIC, index, partition(102, 101, 105), "A", F6)
        assert found is not None
        leaders[found.leader] += 1
    assert set(leaders) == {101, 102}
    assert min(leaders.values()) > 50


@pytest.mark.parametrize(
    ("zone", "candidates"),
    [("B", {103, 104}), ("D", set(F6)), (None, set(F6))],
)
def test_orphans_are_served_by_any_broker_near_the_client(
    zone: str | None, candidates: set[int]
) -> None:
    # MRF-57 partly, MRF-05 partly
    leaders = set()
    for index in range(100):
        found = locate(TOPIC, index, partition(3), zone, F6)
        assert found is not None
        assert found.route is Route.ORPHANED
        assert found.replicas == found.isr == (found.leader,)
        leaders.add(found.leader)
    assert leaders == candidates


def test_all_brokers_agree_on_who_serves_an_orphan() -> None:
    # The hash is Kafka's murmur2 of "<topic id>-<partition>": it must never change.
    found = [locate(TOPIC, index, partition(3), "B", F6) for index in range(8)]
    assert [one.leader for one in found if one] == [103, 104, 104, 103, 103, 104, 104, 104]


def test_the_placement_is_not_worked_out_while_replicas_live() -> None:
    # MRF-54: whatever the topic id, the answer is the controller's.
    answers = {
        str(locate(Uuid(bytes([byte]) * 16), index, partition(102, 104, 106), "B", F6))
        for byte in range(16)
        for index in range(16)
    }
    assert len(answers) == 1


def test_brokers_without_a_rack_are_a_zone() -> None:
    racks: dict[int, str | None] = {1: None, 2: "b"}
    found = locate(TOPIC, 0, partition(2, 1), "unknown", racks)
    assert found is not None
    assert found.leader == 1


def test_without_brokers_there_is_nothing_to_tell() -> None:
    assert locate(TOPIC, 0, partition(1), "A", {}) is None
