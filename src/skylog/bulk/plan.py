"""Packs splits into tasks by bytes: a large split into many, small ones together.

Pure. Every offset of the splits is in exactly one task, and tasks are as even as the splits allow:
the last one to end determines the total time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

from skylog.client.bulk import Split

# As much as Spark reads from files in one task; starting one takes tens of milliseconds.
TASK_BYTES: Final = 128 * 1024 * 1024
# Starting a task costs as much as reading a few megabytes.
TASK_BYTES_MIN: Final = 8 * 1024 * 1024
_SPLITS_PER_TASK: Final = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What one task reads, one split after another."""

    splits: tuple[Split, ...]

    @property
    def bytes(self) -> int:
        return sum(split.bytes for split in self.splits)

    @property
    def records(self) -> int:
        """Offsets; there are at most as many records."""
        return sum(split.end_offset - split.start_offset for split in self.splits)


def split_bytes(task_bytes: int) -> int:
    """How large splits should be for even tasks: brokers cut them between batches."""
    return max(task_bytes // _SPLITS_PER_TASK, 1)


def plan_tasks(
    splits: Sequence[Split],
    *,
    task_bytes: int = TASK_BYTES,
    min_tasks: int = 0,
    max_records: int = 0,
    cores: int = 1,
) -> list[Task]:
    """Tasks of about ``task_bytes``, in the order of the splits.

    Smaller ones, if some ``cores`` would get none. At least ``min_tasks`` if there are enough
    offsets, and none with more than ``max_records`` offsets; 0 means no limit.
    """
    whole = [split for split in splits if split.start_offset < split.end_offset]
    even = _even_bytes(sum(split.bytes for split in whole), task_bytes, cores)
    if max_records > 0:
        whole = [part for split in whole for part in _cut_by_records(split, max_records)]
    # A split that is only slightly too large stays whole: a batch at a cut is read twice.
    parts = [part for split in whole for part in _cut(split, split.bytes // even)]
    tasks = list(_pack(parts, even, max_records))
    if len(tasks) >= min_tasks or not whole:
        return tasks
    return _at_least(whole, min_tasks, max_records)


def _even_bytes(total: int, task_bytes: int, cores: int) -> int:
    """What a task has if all have the same."""
    count = max(_divided(total, task_bytes), min(cores, total // TASK_BYTES_MIN), 1)
    return max(_divided(total, count), 1)


def _divided(size: int, by: int) -> int:
    """Rounded up."""
    return -(-size // max(by, 1))


def _at_least(splits: Sequence[Split], min_tasks: int, max_records: int) -> list[Task]:
    """At least this many tasks: each split gets its share of them, and nothing is packed
    together."""
    if len(splits) >= min_tasks:
        share = max(sum(split.bytes for split in splits) // min_tasks, 1)
        tasks = list(_pack(splits, share, max_records))
        return tasks if len(tasks) >= min_tasks else [Task((split,)) for split in splits]
    wanted = [1] * len(splits)
    # The split with the largest parts gets one more, while it has enough offsets.
    heap = [_next_cut(split, 1, place) for place, split in enumerate(splits)]
    heapify(heap)
    missing = min_tasks - len(splits)
    while missing and heap:
        place = heappop(heap)[-1]
        split = splits[place]
        if wanted[place] == split.end_offset - split.start_offset:
            continue
        wanted[place] += 1
        missing -= 1
        heappush(heap, _next_cut(split, wanted[place], place))
    return [
        Task((part,))
        for split, count in zip(splits, wanted, strict=True)
        for part in _cut(split, count)
    ]


def _next_cut(split: Split, parts: int, place: int) -> tuple[float, float, int]:
    """The order of cutting: largest parts first, by bytes and then by offsets."""
    return -split.bytes / parts, -(split.end_offset - split.start_offset) / parts, place


def _pack(parts: Iterable[Split], task_bytes: int, max_records: int) -> Iterator[Task]:
    """A part belongs to the task in whose share of all bytes its middle is."""
    held: list[Split] = []
    before = records = number = 0
    for part in parts:
        length = part.end_offset - part.start_offset
        # A part without bytes goes with the previous one: it may be after the last share.
        turn = (before + part.bytes // 2) // task_bytes if part.bytes else number
        if held and (turn > number or 0 < max_records < records + length):
            yield Task(tuple(_joined(held)))
            held, records = [], 0
        held.append(part)
        number = turn
        before += part.bytes
        records += length
    if held:
        yield Task(tuple(_joined(held)))


def _joined(splits: Iterable[Split]) -> Iterator[Split]:
    """Adjacent parts of a partition merged."""
    last: Split | None = None
    for split in splits:
        if last is not None and _is_next(last, split):
            last = replace(last, end_offset=split.end_offset, bytes=last.bytes + split.bytes)
            continue
        if last is not None:
            yield last
        last = split
    if last is not None:
        yield last


def _is_next(split: Split, other: Split) -> bool:
    where = (split.topic, split.topic_id, split.partition, split.region, split.end_offset)
    following = (other.topic, other.topic_id, other.partition, other.region, other.start_offset)
    return where == following


def _cut_by_records(split: Split, max_records: int) -> list[Split]:
    return _cut(split, -(-(split.end_offset - split.start_offset) // max_records))


def _cut(split: Split, count: int) -> list[Split]:
    """Into ``count`` equal parts, or fewer if there are fewer offsets."""
    length = split.end_offset - split.start_offset
    count = min(max(count, 1), length)
    bounds = [split.start_offset + length * index // count for index in range(count + 1)]
    return [_part(split, start, end) for start, end in pairwise(bounds)]


def _part(split: Split, start: int, end: int) -> Split:
    """Some of a split's offsets, with the share of its bytes that they have if all are alike."""
    length = split.end_offset - split.start_offset
    before = split.bytes * (start - split.start_offset) // length
    until = split.bytes * (end - split.start_offset) // length
    return replace(split, start_offset=start, end_offset=end, bytes=until - before)
