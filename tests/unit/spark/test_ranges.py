"""Offsets, ranges, losses, rate limits and filters of reads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ConfigError
from skylog.spark.filters import Bounds, bounds_of
from skylog.spark.positions import AtOffsets, AtTime, AtTimes, Everywhere, from_json, to_json
from skylog.spark.ranges import (
    Log,
    Range,
    batch_ranges,
    resolve_end,
    resolve_start,
    stream_ranges,
    times_asked,
)
from skylog.spark.rate import TriggerDelay, available, rate_limit

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
LOGS = {A0: Log(10, 100), A1: Log(0, 50)}


# Offsets of a checkpoint ------------------------------------------------------------------


def test_offsets_look_as_those_of_sparks_own_source() -> None:
    offsets = {B0: 3, A1: 2, A0: 1}
    assert to_json(offsets) == {"a": {"0": 1, "1": 2}, "b": {"0": 3}}
    assert list(to_json(offsets)) == ["a", "b"]
    assert from_json(to_json(offsets)) == offsets
    assert from_json({}) == {}


@pytest.mark.parametrize(
    "value", [None, [], {"a": 1}, {"a": {"x": 1}}, {"a": {"0": -1}}, {"a": {"0": "1"}}]
)
def test_checkpoints_of_other_sources_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="another source"):
        from_json(value)


# Batch queries ----------------------------------------------------------------------------


def start_of(position: Any, at_times: dict[TopicPartition, int] | None = None) -> Any:
    return resolve_start(position, LOGS, at_times or {}, latest_if_no_match=True)


def test_positions_are_resolved() -> None:
    assert start_of(Everywhere(-2)) == {A0: 10, A1: 0}
    assert start_of(Everywhere(-1)) == {A0: 100, A1: 50}
    assert start_of(AtOffsets({A0: -2, A1: -1})) == {A0: 10, A1: 50}
    assert start_of(AtOffsets({A0: 5, A1: 7})) == {A0: 5, A1: 7}
    assert start_of(AtTime(9), {A0: 30, A1: -1}) == {A0: 30, A1: 50}
    assert resolve_end(AtTime(9), LOGS, {A0: 30, A1: -1}) == {A0: 30, A1: 50}


def test_times_to_ask_for() -> None:
    assert times_asked(AtTime(9), LOGS, "starting") == {A0: 9, A1: 9}
    assert times_asked(AtTimes({A0: 1, A1: 2}), LOGS, "ending") == {A0: 1, A1: 2}
    assert times_asked(Everywhere(-1), LOGS, "starting") == {}
    with pytest.raises(ConfigError, match="endingOffsetsByTimestamp does not name a-1"):
        times_asked(AtTimes({A0: 1}), LOGS, "ending")


def test_a_starting_time_after_the_last_record_is_an_error_unless_allowed() -> None:
    with pytest.raises(ConfigError, match=r"a-1.*startingOffsetsByTimestampStrategy=latest"):
        resolve_start(AtTime(9), LOGS, {A0: 30, A1: -1}, latest_if_no_match=False)


def test_all_partitions_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"does not name a-1; .*-2 is earliest"):
        start_of(AtOffsets({A0: 1}))
    with pytest.raises(ConfigError, match="names b-0"):
        start_of(AtOffsets({A0: 1, A1: 1, B0: 1}))


def test_ranges_of_a_batch_query() -> None:
    found = batch_ranges({A0: 20, A1: 50}, {A0: 30, A1: 50}, LOGS, by_time=False)
    assert found.ranges == [Range(A0, 20, 30)]
    assert found.losses == []


def test_what_is_not_there_is_a_loss() -> None:
    found = batch_ranges({A0: 5, A1: 0}, {A0: 20, A1: 60}, LOGS, by_time=False)
    assert found.ranges == [Range(A0, 10, 20), Range(A1, 0, 50)]
    assert [loss.split(":")[0] for loss in found.losses] == [
        "offsets 5 to 9 of a-0 are gone",
        "offsets up to 59 of a-1 are asked for, but it ends before 50",
    ]
    everything = batch_ranges({A0: 1, A1: 0}, {A0: 5, A1: 0}, LOGS, by_time=False)
    assert everything.ranges == []
    assert len(everything.losses) == 1


def test_a_start_above_the_end_is_an_error_but_not_by_time() -> None:
    with pytest.raises(ConfigError, match="30 of a-0 is above its ending offset 20"):
        batch_ranges({A0: 30}, {A0: 20}, LOGS, by_time=False)
    assert batch_ranges({A0: 30}, {A0: 20}, LOGS, by_time=True).ranges == []


# Micro-batches ----------------------------------------------------------------------------


def test_ranges_of_a_micro_batch() -> None:
    found = stream_ranges({A0: 20, A1: 3}, {A0: 30, A1: 3}, LOGS, is_first=False)
    assert (found.ranges, found.losses) == ([Range(A0, 20, 30)], [])


def test_added_partitions_are_read_from_their_beginning() -> None:
    found = stream_ranges({A0: 20}, {A0: 20, A1: 5}, LOGS, is_first=False)
    assert (found.ranges, found.losses) == ([Range(A1, 0, 5)], [])
    late = stream_ranges({A1: 5}, {A0: 20, A1: 5}, LOGS, is_first=False)
    assert late.ranges == [Range(A0, 10, 20)]
    assert late.losses == ["a-0 is new but begins at 10 instead of 0"]


def test_deleted_partitions_are_losses() -> None:
    found = stream_ranges({A0: 20, A1: 0, B0: 1}, {A1: 5}, LOGS, is_first=False)
    assert found.ranges == [Range(A1, 0, 5)]
    assert found.losses == ["a-0, b-0 are deleted, or no longer subscribed to"]
    gone = stream_ranges({B0: 1}, {B0: 2}, LOGS, is_first=False)
    assert (gone.ranges, gone.losses) == ([], ["b-0 is deleted"])


def test_a_partition_made_anew_is_read_from_its_beginning() -> None:
    found = stream_ranges({A1: 70}, {A1: 40}, LOGS, is_first=False)
    assert found.ranges == [Range(A1, 0, 40)]
    assert "created again" in found.losses[0]


def test_retention_that_overtook_the_query_is_a_loss() -> None:
    found = stream_ranges({A0: 4}, {A0: 30}, LOGS, is_first=False)
    assert found.ranges == [Range(A0, 10, 30)]
    assert len(found.losses) == 1


def test_the_first_micro_batch_again() -> None:
    """Its start is newer than its end, and knows partitions that the end does not."""
    found = stream_ranges({A0: 100, A1: 50}, {A0: 90}, LOGS, is_first=True)
    assert (found.ranges, found.losses) == ([], [])


# Rate limits ------------------------------------------------------------------------------


def test_a_limit_is_shared_by_what_waits() -> None:
    latest = {A0: 100, A1: 300, B0: 600}
    limited = rate_limit(100, {A0: 0, A1: 0, B0: 0}, latest, {})
    assert limited == {A0: 10, A1: 30, B0: 60}


def test_small_partitions_do_not_starve() -> None:
    assert rate_limit(10, {A0: 0, A1: 0}, {A0: 1, A1: 10_000}, {}) == {A0: 1, A1: 9}


def test_new_partitions_count_from_their_beginning() -> None:
    assert rate_limit(10, {A0: 0}, {A0: 100, A1: 110}, {A1: 10}) == {A0: 5, A1: 15}
    assert available({A0: 90}, {A0: 100, A1: 110}, {A1: 10}) == 110


def test_a_partition_that_went_back_is_taken_whole() -> None:
    assert rate_limit(5, {A0: 50, A1: 0}, {A0: 20, A1: 100}, {}) == {A0: 20, A1: 5}


@given(
    st.integers(1, 2**40),
    st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 2**50)), min_size=1, max_size=20),
)
def test_limits_keep_within_bounds_and_move_on(most: int, parts: list[tuple[int, int]]) -> None:
    start = {TopicPartition("t", i): begin for i, (begin, _) in enumerate(parts)}
    latest = {TopicPartition("t", i): begin + size for i, (begin, size) in enumerate(parts)}
    limited = rate_limit(most, start, latest, {})
    assert all(start[key] <= limited[key] <= latest[key] for key in latest)
    taken = available(start, limited, {})
    assert taken <= most + len(parts)
    assert (taken > 0) == (available(start, latest, {}) > 0)
    assert all(limited[key] > start[key] for key in latest if latest[key] > start[key])


def test_a_trigger_waits_for_enough_but_not_for_ever() -> None:
    delay = TriggerDelay(10, 1000)
    assert not delay.holds_back(1, now_ms=5)
    assert delay.holds_back(9, now_ms=6)
    assert not delay.holds_back(10, now_ms=7)
    assert delay.holds_back(1, now_ms=1006)
    assert not delay.holds_back(1, now_ms=1007)


# Filters ----------------------------------------------------------------------------------


def at(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


@pytest.mark.parametrize(
    ("filters", "bounds"),
    [
        ([], Bounds()),
        ([EqualTo(("partition",), 3)], Bounds(partitions=frozenset({3}))),
        (
            [In(("partition",), (1, 2)), In(("partition",), (2, 3))],
            Bounds(partitions=frozenset({2})),
        ),
        ([EqualTo(("topic",), "t")], Bounds(topics=frozenset({"t"}))),
        ([EqualTo(("offset",), 5)], Bounds(offset_min=5, offset_max=5)),
        ([In(("offset",), (9, 5))], Bounds(offset_min=5, offset_max=9)),
        (
            [GreaterThan(("offset",), 5), LessThan(("offset",), 9)],
            Bounds(offset_min=6, offset_max=8),
        ),
        (
            [GreaterThanOrEqual(("OFFSET",), 5), LessThanOrEqual(("offset",), 9)],
            Bounds(offset_min=5, offset_max=9),
        ),
        (
            [GreaterThan(("offset",), 5), GreaterThan(("offset",), 3)],
            Bounds(offset_min=6),
        ),
        ([GreaterThan(("timestamp",), at(5_000))], Bounds(timestamp_min=6)),
        ([GreaterThan(("timestamp",), at(5_001))], Bounds(timestamp_min=6)),
        ([GreaterThanOrEqual(("timestamp",), at(5_000))], Bounds(timestamp_min=5)),
        ([GreaterThanOrEqual(("timestamp",), at(5_001))], Bounds(timestamp_min=6)),
        ([LessThan(("timestamp",), at(5_000))], Bounds(timestamp_max=4)),
        ([LessThan(("timestamp",), at(5_001))], Bounds(timestamp_max=5)),
        ([LessThanOrEqual(("timestamp",), at(5_001))], Bounds(timestamp_max=5)),
        ([EqualTo(("timestamp",), at(5_000))], Bounds(timestamp_min=5, timestamp_max=5)),
        # What bounds nothing.
        ([GreaterThan(("timestamp",), at(5_000).replace(tzinfo=None))], Bounds()),
        ([Not(EqualTo(("offset",), 5))], Bounds()),
        ([IsNotNull(("offset",)), EqualTo(("key",), b"k")], Bounds()),
        ([EqualTo(("offset",), None), EqualTo(("offset", "x"), 1)], Bounds()),
    ],
)
def test_bounds_of_filters(filters: list[Filter], bounds: Bounds) -> None:
    assert bounds_of(filters) == bounds


def test_bounds_narrow_ranges() -> None:
    ranges = [Range(A0, 0, 10), Range(A1, 0, 10), Range(B0, 0, 10)]
    assert Bounds().narrow(ranges) == ranges
    assert Bounds(topics=frozenset({"b"})).narrow(ranges) == [Range(B0, 0, 10)]
    assert Bounds(partitions=frozenset({1})).narrow(ranges) == [Range(A1, 0, 10)]
    assert Bounds(offset_min=3, offset_max=5).narrow(ranges[:1]) == [Range(A0, 3, 6)]
    assert Bounds(offset_min=10).narrow(ranges) == []
