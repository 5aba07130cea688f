"""When a group counts as settled, and the figures of its phases."""

from __future__ import annotations

from typing import Any

import pytest

from bench.group_load import Phase
from bench.group_members import PARTITIONS, ConsumerMember, Group
from bench.groups import _rows, _values


def group(*owned: range, epochs: tuple[int, ...], before: int = 0) -> Group:
    connection: Any = None
    made = Group("g", epoch_before=before)
    for partitions, epoch in zip(owned, epochs, strict=True):
        member = ConsumerMember(made, connection)
        member.owned, member.epoch = frozenset(partitions), epoch
        made.members.append(member)
    return made


HALF = PARTITIONS // 2


def test_a_group_is_settled_once_each_partition_has_one_owner() -> None:
    first, second = range(HALF), range(HALF, PARTITIONS)
    assert group(first, second, epochs=(3, 3)).settled
    assert not group(first, range(HALF + 1, PARTITIONS), epochs=(3, 3)).settled  # one has none
    assert not group(first, range(HALF - 1, PARTITIONS), epochs=(3, 3)).settled  # one has two
    assert not group(range(PARTITIONS), range(0), epochs=(3, 3)).settled  # a member has nothing
    assert not group(epochs=()).settled


def test_a_group_is_not_settled_before_all_know_of_the_change() -> None:
    first, second = range(HALF), range(HALF, PARTITIONS)
    assert not group(first, second, epochs=(3, 4)).settled
    assert not group(first, second, epochs=(3, 3), before=3).settled
    assert group(first, second, epochs=(4, 4), before=3).settled


def test_what_is_made_of_the_phases() -> None:
    phases = {
        "form": Phase(6.0, 9.0, 100),
        "steady": Phase(10.0, 2.0, 20_000),
        "join": Phase(8.0, 2.6, 18_000),
        "leave": Phase(7.0, 2.0, 16_000),
    }
    share, per_thousand, formed, joined, left, rebalance = _values(phases, count=100)
    assert (formed, joined, left) == (6.0, 8.0, 7.0)
    assert share == pytest.approx(20.0)
    assert per_thousand == pytest.approx(100.0)
    assert rebalance == pytest.approx(26.0)
    assert len(_rows("consumer", 100)) == len(_values(phases, 100))
