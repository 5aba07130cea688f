"""Packing splits into tasks: every offset once, by bytes, within the requested bounds."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from skylog.bulk.plan import Task, plan_tasks
from skylog.client.bulk import Split
from skylog.kernel.ids import Uuid

MIB = 1024 * 1024
ID = Uuid(bytes(range(16)))


def split(partition: int, start: int, end: int, size: int) -> Split:
    return Split("t", ID, partition, start, end, size, True)


@st.composite
def splits(draw: st.DrawFn) -> list[Split]:
    """Of some partitions, in order, with gaps where older batches were left out."""
    found = []
    for partition in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, 10**6))
        for _ in range(draw(st.integers(0, 4))):
            length = draw(st.integers(1, 10_000))
            found.append(split(partition, start, start + length, draw(st.integers(0, 10**9))))
            start += length + draw(st.integers(0, 5))
    return found


def offsets(tasks: list[Task]) -> dict[int, list[tuple[int, int]]]:
    """The ranges of each partition, joined where they touch."""
    joined: dict[int, list[tuple[int, int]]] = {}
    for one in (part for task in tasks for part in task.splits):
        assert one.start_offset < one.end_offset
        ranges = joined.setdefault(one.partition, [])
        if ranges and ranges[-1][1] == one.start_offset:
            ranges[-1] = (ranges[-1][0], one.end_offset)
        else:
            ranges.append((one.start_offset, one.end_offset))
    return joined


@given(splits(), st.integers(10**7, 2 * 10**9), st.integers(0, 60), st.sampled_from([0, 700, 5000]))
def test_each_offset_is_in_one_task(found, task_bytes, min_tasks, max_records) -> None:  # type: ignore[no-untyped-def]
    tasks = plan_tasks(found, task_bytes=task_bytes, min_tasks=min_tasks, max_records=max_records)
    assert offsets(tasks) == offsets([Task((one,)) for one in found])
    assert sum(task.bytes for task in tasks) == sum(one.bytes for one in found)
    total = sum(one.end_offset - one.start_offset for one in found)
    assert len(tasks) >= min(min_tasks, total)
    if max_records:
        assert all(task.records <= max_records for task in tasks)


@given(splits(), st.integers(10**6, 2 * 10**9))
def test_tasks_are_of_about_the_size_asked_for(found: list[Split], task_bytes: int) -> None:
    tasks = plan_tasks(found, task_bytes=task_bytes)
    for task in tasks:
        # One offset cannot be split; otherwise a part is less than twice the requested size.
        largest = max(math.ceil(one.bytes / (one.end_offset - one.start_offset)) for one in found)
        assert task.bytes <= max(2 * task_bytes, 2 * largest)
    total = sum(one.bytes for one in found)
    assert len(tasks) <= max(math.ceil(total / task_bytes), 1)


def test_a_split_without_bytes_is_no_task_of_its_own() -> None:
    whole = [split(0, 0, 10, 100), split(1, 0, 10, 0)]
    assert plan_tasks(whole, task_bytes=100) == [Task(tuple(whole))]
    assert plan_tasks(whole[1:], task_bytes=100) == [Task((whole[1],))]


def test_a_hot_partition_becomes_many_tasks() -> None:
    hot = [split(0, at * 1000, at * 1000 + 1000, 64 * MIB) for at in range(16)]
    assert len(plan_tasks(hot, task_bytes=64 * MIB)) == 16
    # Splits that are larger than requested are split as well.
    assert len(plan_tasks([split(0, 0, 16_000, 1024 * MIB)], task_bytes=64 * MIB)) == 16


def test_tasks_of_a_partition_are_even() -> None:
    """A partition of 70 MiB is not one task of 64 and one of 6."""
    fine = [split(0, at * 100, at * 100 + 100, 7 * MIB) for at in range(10)]
    tasks = plan_tasks(fine, task_bytes=64 * MIB)
    assert [task.bytes for task in tasks] == [35 * MIB, 35 * MIB]
    assert tasks[0].splits == (split(0, 0, 500, 35 * MIB),)  # neighbours are one split


@given(st.lists(st.integers(1, 8 * MIB), min_size=1, max_size=300), st.integers(1, 64))
def test_tasks_are_as_even_as_splits_allow(sizes: list[int], cores: int) -> None:
    fine = [split(place, 0, 100, size) for place, size in enumerate(sizes)]
    tasks = plan_tasks(fine, task_bytes=64 * MIB, cores=cores)
    even = sum(sizes) / max(
        math.ceil(sum(sizes) / (64 * MIB)), min(cores, sum(sizes) // (8 * MIB)), 1
    )
    assert all(abs(task.bytes - even) <= max(sizes) + 1 for task in tasks[:-1])
    assert tasks[-1].bytes <= even + max(sizes)


def test_no_core_is_left_without_a_task() -> None:
    one = [split(0, at * 100, at * 100 + 100, 8 * MIB) for at in range(8)]
    assert [len(plan_tasks(one, cores=cores)) for cores in (1, 2, 4, 100)] == [1, 2, 4, 8]
    # Tasks of less than some megabytes are not worth it.
    assert len(plan_tasks([split(0, 0, 1000, 7 * MIB)], cores=8)) == 1
    assert len(plan_tasks([split(0, 0, 1000, 17 * MIB)], cores=8)) == 2


def test_a_thousand_small_partitions_become_few() -> None:
    small = [split(partition, 0, 100, 100_000) for partition in range(1000)]
    tasks = plan_tasks(small, task_bytes=64 * MIB)
    assert len(tasks) == 2
    assert [part.partition for task in tasks for part in task.splits] == list(range(1000))


def test_a_split_that_is_somewhat_too_large_stays_whole() -> None:
    uneven = [split(0, 0, 1000, 100), split(1, 0, 1000, 50)]
    assert plan_tasks(uneven, task_bytes=100) == [Task((one,)) for one in uneven]


def test_at_least_so_many_tasks_where_the_bytes_are() -> None:
    tasks = plan_tasks([split(0, 0, 1000, 900), split(1, 0, 1000, 100)], min_tasks=10)
    assert [task.splits[0].partition for task in tasks] == [0] * 9 + [1]
    assert all(99 <= task.bytes <= 101 for task in tasks)


def test_no_more_tasks_than_offsets() -> None:
    assert len(plan_tasks([split(0, 0, 3, 900)], min_tasks=10)) == 3


def test_nothing_to_read_is_no_task() -> None:
    assert plan_tasks([], min_tasks=5) == []
    assert plan_tasks([split(0, 5, 5, 0)], min_tasks=5) == []
