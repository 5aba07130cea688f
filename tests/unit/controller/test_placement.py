from __future__ import annotations

from collections import Counter

import pytest

from skylog.controller.draws import Draws
from skylog.controller.placement import UsableBroker, place
from skylog.kernel.errors import ErrorCode, KafkaError


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(index, rack, index in fenced) for index, rack in enumerate(racks)]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_spread_evenly(seed: int) -> None:
    placed = place(brokers(*[None] * 6), 60, 3, Draws(bytes([seed])))
    assert all(len(set(replicas)) == 3 for replicas in placed)
    assert set(Counter(replicas[0] for replicas in placed[:6]).values()) == {1}
    assert set(Counter(broker for replicas in placed[:6] for broker in replicas).values()) == {3}


@pytest.mark.parametrize("seed", range(20))
def test_the_replicas_of_a_partition_lie_in_different_racks(seed: int) -> None:
    usable = brokers("a", "a", "b", "b", "c", "c")
    rack = {broker.broker_id: broker.rack for broker in usable}
    for replicas in place(usable, 40, 3, Draws(bytes([seed]))):
        assert len({rack[broker] for broker in replicas}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_come_last_and_never_lead(seed: int) -> None:
    usable = brokers(None, None, None, fenced=(2,))
    draws = Draws(bytes([seed]))
    assert all(2 not in replicas for replicas in place(usable, 10, 2, draws))
    for replicas in place(usable, 10, 3, draws):
        assert replicas[2] == 2
    lonely = brokers("a", "b", "c", fenced=(0, 1))
    assert all(replicas[0] == 2 for replicas in place(lonely, 10, 3, draws))


def test_one_broker_takes_everything() -> None:
    assert place(brokers(None), 5, 1, Draws(b"")) == [[0]] * 5


def test_the_same_seed_places_alike() -> None:
    usable = brokers("a", "b", None, "b")
    assert place(usable, 20, 3, Draws(b"x")) == place(usable, 20, 3, Draws(b"x"))
    assert place(usable, 20, 3, Draws(b"x")) != place(usable, 20, 3, Draws(b"y"))


@pytest.mark.parametrize(
    ("usable", "replicas"),
    [
        ([], 1),
        (brokers(None, fenced=(0,)), 1),
        (brokers(None), 2),
        (brokers(None), 0),
        (brokers(None), -1),
    ],
)
def test_what_cannot_be_placed_is_refused(usable: list[UsableBroker], replicas: int) -> None:
    with pytest.raises(KafkaError) as refused:
        place(usable, 1, replicas, Draws(b""))
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_draws_are_uniform_enough_and_ids_are_valid() -> None:
    draws = Draws(b"seed")
    counts = Counter(draws.randrange(4) for _ in range(4_000))
    assert all(900 < counts[number] < 1_100 for number in range(4))
    assert all(0 <= draws.random() < 1 for _ in range(100))
    ids = {draws.uuid() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert not any(str(found).startswith("-") for found in ids)
    items = list(range(50))
    draws.shuffle(items)
    assert sorted(items) == list(range(50)) != items
