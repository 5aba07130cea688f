"""Where replicas of diskless partitions go."""

from __future__ import annotations

from collections import Counter

import pytest

from skylog.controller.racks import RackBroker, RackPlacer, rack_aware, rack_name
from tests.unit.controller.racks_support import F6


def placer(
    racks: dict[int, str | None] = F6,  # type: ignore[assignment]
    *,
    away: tuple[int, ...] = (),
    full: tuple[int, ...] = (),
    replicas: dict[int, int] | None = None,
    leaders: dict[int, int] | None = None,
) -> RackPlacer:
    brokers = (
        RackBroker(broker, rack_name(rack), broker not in away, broker not in full)
        for broker, rack in racks.items()
    )
    return RackPlacer(brokers, replicas or {}, leaders or {})


def test_each_rack_gets_one_and_the_first_rack_changes() -> None:
    chooser = placer({1: "a", 3: "b", 5: "c"})
    assert [chooser.one_per_rack() for _ in range(4)] == [
        [1, 3, 5],
        [3, 5, 1],
        [5, 1, 3],
        [1, 3, 5],
    ]


def test_brokers_without_a_rack_are_a_rack() -> None:
    assert placer({1: "a", 2: "b", 3: None, 4: None}).rack_count == 3
    assert placer({1: None, 2: None}).one_per_rack() == [1]


def test_the_least_loaded_broker_of_a_rack_is_chosen() -> None:
    # MRF-71: the load of all replicas, then fewest leaders, then the lowest id.
    assert placer(replicas={101: 5, 104: 1}).one_per_rack() == [102, 103, 105]
    assert placer(leaders={101: 1, 102: 0}).one_per_rack() == [103, 105, 102]
    assert placer(replicas={101: 2, 102: 2}, leaders={101: 1}).one_per_rack()[-1] == 102


def test_what_was_handed_out_counts() -> None:
    chooser = placer()
    counts = Counter(broker for _ in range(60) for broker in chooser.one_per_rack())
    assert set(counts.values()) == {30}


def test_the_rack_that_leads_least_begins() -> None:
    assert placer(leaders={101: 3, 103: 1, 105: 2}).one_per_rack()[0] == 104


def test_brokers_that_are_away_are_taken_last() -> None:
    assert placer(away=(101,)).one_per_rack() == [102, 103, 105]
    assert 101 in placer(away=(101, 102)).one_per_rack()


def test_a_rack_without_active_brokers_does_not_begin() -> None:
    assert placer(away=(101, 102)).one_per_rack()[0] == 103


def test_brokers_that_take_nothing_are_taken_only_when_alone() -> None:
    assert placer(full=(101,)).one_per_rack() == [102, 103, 105]
    assert placer(full=(101, 102)).one_per_rack() == [101, 103, 105]


def test_replicas_that_are_kept_stay_in_their_rack() -> None:
    assert sorted(placer().one_per_rack(keep=[104, 103, 102])) == [102, 104, 105]


@pytest.mark.parametrize(
    ("away", "gone", "replicas", "expected"),
    [
        ((101,), 101, [101, 103, 105], 102),
        # Its rack has no other broker: a rack without a replica is preferred to one with some.
        ((101, 102), 101, [101, 103], 105),
        ((101, 102), 101, [101, 103, 105], 104),
        ((101, 102, 104, 106), 101, [101, 103, 105], None),
    ],
)
def test_a_replacement(
    away: tuple[int, ...], gone: int, replicas: list[int], expected: int | None
) -> None:
    assert placer(away=away).replacement(gone, replicas) == expected


def test_a_replacement_in_the_same_rack_only() -> None:
    assert placer(away=(101,)).replacement(101, [101, 103], in_rack=True) == 102
    assert placer(away=(101, 102)).replacement(101, [101, 103], in_rack=True) is None


def test_replacements_are_shared_out() -> None:
    chooser = placer({1: "a", 2: "a", 3: "a", 4: "b"}, away=(1,), replicas={1: 4})
    assert Counter(chooser.replacement(1, [1, 4]) for _ in range(4)) == {2: 2, 3: 2}


@pytest.mark.parametrize(("racks", "aware"), [(["a", "b"], True), (["a", "a"], False), ([], True)])
def test_rack_awareness_is_that_no_rack_is_shared(racks: list[str], aware: bool) -> None:
    assert rack_aware(racks) is aware
