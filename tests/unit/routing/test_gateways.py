"""Produce gateways: KIP-1164's scenarios, and coordinators that share a broker."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from skylog.routing.gateways import NO_HOST, assign_gateways, gateway_count, gateways_for

COORDINATORS = 12


def cluster(brokers: int, racks: int = 3) -> dict[int, str]:
    return {broker: "abcdef"[broker % racks] for broker in range(brokers)}


def spread(brokers: int, coordinators: int = COORDINATORS) -> list[int]:
    return [number % brokers for number in range(coordinators)]


def duties(gateways: list[dict[str, list[int]]]) -> dict[int, set[int]]:
    """The coordinators of each broker that is a gateway."""
    found: dict[int, set[int]] = defaultdict(set)
    for number, by_rack in enumerate(gateways):
        for brokers in by_rack.values():
            for broker in brokers:
                found[broker].add(number)
    return found


@pytest.mark.parametrize(
    ("brokers", "per_rack", "coordinators_max", "calls_max"),
    [(3, 1, 12, 3), (6, 1, 6, 3), (12, 1, 3, 3), (24, 1, 2, 2), (36, 1, 1, 1), (108, 3, 1, 1)],
)
def test_the_scenarios_of_the_proposal(
    brokers: int, per_rack: int, coordinators_max: int, calls_max: int
) -> None:
    # DC-57, DC-58. Below saturation calls are bounded by racks, not by brokers: DC-59.
    racks, hosts = cluster(brokers), spread(brokers)
    assert gateway_count(brokers, COORDINATORS, 3) == per_rack
    gateways = assign_gateways(racks, hosts)
    for by_rack in gateways:
        assert set(by_rack) == {"a", "b", "c"}
        for rack, chosen in by_rack.items():
            assert len(chosen) == len(set(chosen)) == per_rack
            assert {racks[broker] for broker in chosen} == {rack}
    found = duties(gateways)  # type: ignore[arg-type]
    assert set(found) == set(racks), "nobody is idle"
    assert max(map(len, found.values())) == coordinators_max
    assert min(map(len, found.values())) >= coordinators_max - 1
    calls = {broker: {hosts[number] for number in numbers} for broker, numbers in found.items()}
    assert max(map(len, calls.values())) == calls_max


def test_a_coordinators_own_broker_is_its_gateway_at_home() -> None:
    racks, hosts = cluster(6), spread(6)
    for number, by_rack in enumerate(assign_gateways(racks, hosts)):
        assert by_rack[racks[hosts[number]]] == [hosts[number]]


def test_coordinators_that_share_a_broker_share_their_gateways() -> None:
    racks = cluster(6)
    hosts = [0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5]
    gateways = assign_gateways(racks, hosts)
    by_host = defaultdict(set)
    for number, by_rack in enumerate(gateways):
        by_host[hosts[number]].add(str(by_rack))
    assert all(len(alike) == 1 for alike in by_host.values())
    found = duties(gateways)  # type: ignore[arg-type]
    for broker, numbers in found.items():
        assert len({hosts[number] for number in numbers}) <= 3
        assert len({hosts[number] for number in numbers} - {broker}) <= 2, "its own is no call"


def test_with_enough_brokers_none_serves_two_coordinators() -> None:
    found = duties(assign_gateways(cluster(36), [0] * COORDINATORS))  # type: ignore[arg-type]
    assert Counter(map(len, found.values())) == {1: 36}


def test_a_coordinator_that_is_nowhere_has_gateways_all_the_same() -> None:
    gateways = assign_gateways(cluster(6), [NO_HOST] * 4)
    assert all(set(by_rack) == {"a", "b", "c"} for by_rack in gateways)
    assert max(map(len, duties(gateways).values())) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(("brokers", "coordinators", "racks"), [(1, 1, 1), (2, 12, 2), (5, 3, 2)])
def test_any_cluster_has_gateways(brokers: int, coordinators: int, racks: int) -> None:
    gateways = assign_gateways(cluster(brokers, racks), spread(brokers, coordinators))
    assert len(gateways) == coordinators
    assert all(len(by_rack) == racks for by_rack in gateways)


def test_nothing_comes_of_nothing() -> None:
    assert assign_gateways({}, [1, 2]) == [{}, {}]
    assert assign_gateways({1: "a"}, []) == []


def test_a_zone_without_brokers_is_served_by_the_others() -> None:
    assert gateways_for({"a": [1], "b": [2, 3]}, "b") == [2, 3]
    assert gateways_for({"a": [1], "b": [2, 3]}, "z") == [1, 2, 3]
