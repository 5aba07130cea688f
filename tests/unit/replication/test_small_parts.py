"""Bytes that wait to be committed, and throttled replication."""

from __future__ import annotations

import pytest

from skylog.kernel.clock import ManualClock
from skylog.replication import uncommitted
from skylog.replication.throttle import ReplicationQuota, throttled_partitions
from skylog.replication.uncommitted import Uncommitted


def test_bytes_are_readable_once_they_are_committed() -> None:
    waiting = Uncommitted()
    for end, size in ((3, 100), (5, 50), (9, 7)):
        waiting.add(end, size)
    assert waiting.take(2) == 0
    assert waiting.take(5) == 150
    assert waiting.take(5) == 0
    assert waiting.take(100) == 7
    waiting.add(10, 1)
    waiting.clear()
    assert waiting.take(100) == 0


def test_a_watermark_that_stands_still_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncommitted, "_APPENDS_MAX", 3)
    waiting = Uncommitted()
    for end in range(1, 11):
        waiting.add(end, 1)
    assert len(waiting) == 3
    assert waiting.take(9) == 2
    assert waiting.take(10) == 8


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("*", None),
        ("0:1,1:2,2:1", {0, 2}),
        (" 0:1 , 5:1", {0, 5}),
        ("3:2", set()),
        ("", set()),
    ],
)
def test_which_partitions_are_throttled_here(text: str, found: set[int] | None) -> None:
    assert throttled_partitions(text, node_id=1) == found


def test_a_rate_is_exceeded_by_throttled_partitions_alone() -> None:
    clock = ManualClock()
    quota = ReplicationQuota(2, 1_000, clock)
    quota.record("t", 0, 10**9)
    assert not quota.exceeded
    quota.update(1_000, {"t": frozenset({1}), "all": None})
    assert [quota.is_throttled("t", n) for n in (0, 1)] == [False, True]
    assert quota.is_throttled("all", 7)
    assert not quota.is_throttled("u", 1)
    quota.record("t", 0, 10**6)
    assert not quota.exceeded
    quota.record("t", 1, 10_000)
    assert quota.exceeded
    clock.advance(30_000)
    assert not quota.exceeded
