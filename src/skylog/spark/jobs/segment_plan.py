"""How segments of many partitions are assembled from WAL objects that are read once.

Pure. A WAL object has batches of many partitions. If every segment read its own batches, an object
would be read once for each of its partitions. Instead, a task takes a *slice*: the objects of a
while, in order, with the batches of all partitions in them, and assembles a segment of each
partition from it, or several of a large one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from skylog.client.bulk import BatchLocation, Split
from skylog.client.metadata import TopicPartition

# A gap in an object that is cheaper to read than to skip, and the most to read at once.
GAP_BYTES_MAX: Final = 1024 * 1024
EXTENT_BYTES_MAX: Final = 64 * 1024 * 1024
# What a task keeps on its disk.
SLICE_BYTES_MAX: Final = 2 * 1024 * 1024 * 1024
# Smaller segments than that are not worth another task.
AVERAGE_BYTES_MIN: Final = 8 * 1024 * 1024
# In one round: a leader grants a limited number of segments of a partition.
SLICES_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Run:
    """Batches of a partition that follow each other, in one object."""

    key: TopicPartition
    batches: tuple[BatchLocation, ...]

    @property
    def bytes(self) -> int:
        return sum(batch.byte_size for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Read:
    """An object, and what is needed of it."""

    object_key: str
    runs: tuple[Run, ...]

    @property
    def bytes(self) -> int:
        return sum(run.bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of an object that are read at once."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """``end_offset`` is inclusive."""

    key: TopicPartition
    start_offset: int
    end_offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The work of one task, and the segments that it makes, in the order of each partition."""

    reads: tuple[Read, ...]
    segments: tuple[PlannedSegment, ...]

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self.segments)


def round_ends(
    splits: Mapping[TopicPartition, Sequence[Split]], partition_bytes_max: int
) -> dict[TopicPartition, int]:
    """How far a round goes in each partition: the same share of each, so that partitions stay
    together in the objects that they share."""
    largest = max(sum(split.bytes for split in found) for found in splits.values())
    ends = {}
    for key, found in splits.items():
        total = sum(split.bytes for split in found)
        room = total if largest <= partition_bytes_max else total * partition_bytes_max // largest
        taken, end = 0, found[0].end_offset
        for split in found:
            taken += split.bytes
            if taken > room and end > found[0].start_offset and split is not found[0]:
                break
            end = split.end_offset
        ends[key] = end
    return ends


def in_order(backlog: Mapping[TopicPartition, Sequence[BatchLocation]]) -> list[Read]:
    """The objects such that the batches of each partition are in the order of their offsets.

    Commits through several coordinators may order two objects differently for two partitions; then
    one of them is read twice.
    """
    waiting = {key: deque(_runs(key, batches)) for key, batches in backlog.items() if batches}
    # How many of an object's runs cannot be taken yet, and those that can.
    missing: dict[str, int] = {}
    for runs in waiting.values():
        for run in runs:
            missing[_object(run)] = missing.get(_object(run), 0) + 1
    heads: dict[str, list[Run]] = {}
    ready: deque[str] = deque()

    def note_head(key: TopicPartition) -> None:
        if waiting[key]:
            name = _object(waiting[key][0])
            heads.setdefault(name, []).append(waiting[key][0])
            missing[name] -= 1
            if not missing[name]:
                ready.append(name)

    for key in waiting:
        note_head(key)
    found: list[Read] = []
    while heads:
        # Without one that is complete, the oldest is read for what can be taken of it.
        name = ready.popleft() if ready else next(iter(heads))
        taken = heads.pop(name)
        found.append(Read(name, tuple(taken)))
        for run in taken:
            waiting[run.key].popleft()
        for run in taken:
            note_head(run.key)
    return found


def _object(run: Run) -> str:
    return run.batches[0].object_key


def _runs(key: TopicPartition, batches: Sequence[BatchLocation]) -> Iterator[Run]:
    held: list[BatchLocation] = []
    for batch in batches:
        if held and held[-1].object_key != batch.object_key:
            yield Run(key, tuple(held))
            held = []
        held.append(batch)
    if held:
        yield Run(key, tuple(held))


def slices(reads: Sequence[Read], segment_bytes: int, cores: int) -> list[Slice]:
    """Cut between objects: as few as make segments of about ``segment_bytes`` within the disk of a
    task, but enough for all cores if the segments stay worth it."""
    total = sum(read.bytes for read in reads)
    partitions = len({run.key for read in reads for run in read.runs})
    if not total:
        return []
    largest = min(partitions * segment_bytes, SLICE_BYTES_MAX)
    count = max(-(-total // largest), min(cores, total // (partitions * AVERAGE_BYTES_MIN)), 1)
    share = -(-total // min(count, SLICES_MAX))
    return [_slice(part, segment_bytes) for part in _cut(reads, share)]


def _cut(reads: Iterable[Read], share: int) -> Iterator[tuple[Read, ...]]:
    """A read belongs to the share in which its middle is."""
    held: list[Read] = []
    before = number = 0
    for read in reads:
        turn = (before + read.bytes // 2) // share
        if held and turn > number:
            yield tuple(held)
            held = []
        held.append(read)
        number, before = turn, before + read.bytes
    if held:
        yield tuple(held)


def _slice(reads: tuple[Read, ...], segment_bytes: int) -> Slice:
    batches: dict[TopicPartition, list[BatchLocation]] = {}
    for read in reads:
        for run in read.runs:
            batches.setdefault(run.key, []).extend(run.batches)
    segments = [
        segment
        for key, found in batches.items()
        for segment in _segments(key, found, segment_bytes)
    ]
    return Slice(reads, tuple(segments))


def _segments(
    key: TopicPartition, batches: Sequence[BatchLocation], segment_bytes: int
) -> Iterator[PlannedSegment]:
    """Equal ones, none of them much larger than ``segment_bytes``."""
    total = sum(batch.byte_size for batch in batches)
    share = -(-total // max(round(total / segment_bytes), 1))
    start, size, before, number = batches[0].base_offset, 0, 0, 0
    for at, batch in enumerate(batches):
        turn = (before + batch.byte_size // 2) // share
        if size and turn > number:
            yield PlannedSegment(key, start, batches[at - 1].last_offset, size)
            start, size = batch.base_offset, 0
        size += batch.byte_size
        number, before = turn, before + batch.byte_size
    yield PlannedSegment(key, start, batches[-1].last_offset, size)


def extents(read: Read) -> list[Extent]:
    """The requests that cover all batches of a read: mostly one."""
    found: list[Extent] = []
    places = sorted(
        (batch.byte_offset, batch.byte_offset + batch.byte_size)
        for run in read.runs
        for batch in run.batches
    )
    start, end = places[0]
    for begin, until in places[1:]:
        if begin - end > GAP_BYTES_MAX or until - start > EXTENT_BYTES_MAX:
            found.append(Extent(start, end))
            start = begin
        end = max(end, until)
    found.append(Extent(start, end))
    return found


def only(part: Slice, keys: Collection[TopicPartition]) -> Slice:
    """The part of a slice that concerns some partitions."""
    reads = []
    for read in part.reads:
        runs = tuple(run for run in read.runs if run.key in keys)
        if runs:
            reads.append(replace(read, runs=runs))
    return Slice(tuple(reads), tuple(one for one in part.segments if one.key in keys))
