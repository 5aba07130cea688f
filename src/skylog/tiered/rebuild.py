"""The metadata of remote segments from what is in the store, when the metadata topic is gone.

Manifests are the truth of what is finished: put last, deleted first, and each describes its
segment. A snapshot of the remote logs (of a backup) spares reading them one by one, and has what
manifests do not: how far the log start had moved. So a segment of which

- both know is taken as the snapshot has it,
- only the store knows is read from its manifest: it was finished after the backup,
- only the snapshot knows is left out, and told: it was deleted since, or its objects are lost.

Every node that restores writes the same records in the same order, so that replicas agree. They
carry no epoch of a leader: the fence of the old cluster does not hold the new one back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple, Protocol

from skylog.kernel.errors import StorageError
from skylog.objects.holds import Hold
from skylog.objects.store import NotFound, ObjectStore
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.records import NO_EPOCH, NO_OFFSET, segment_started, segment_updated
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.storage import DamagedSegment, read_manifest
from skylog.tiered.stored import StoredSegment, stored_segments
from skylog.wire.metadata_records import encode_remote_log

_VALUES_PER_APPEND: Final = 500


@dataclass(slots=True)
class RebuiltLogs:
    """What the metadata topic is to say, and what it cannot."""

    # By partition, in order of start offset and id.
    segments: dict[TopicIdPartition, list[RemoteSegment]] = field(default_factory=dict)
    log_starts: dict[TopicIdPartition, int] = field(default_factory=dict)
    # Taken though the snapshot does not have them.
    newer: list[StoredSegment] = field(default_factory=list)
    # In the snapshot, but not whole in the store any more.
    missing: list[RemoteSegment] = field(default_factory=list)
    # They reach above what was restored of their partition, now or by an earlier restore, and wait
    # for the operator.
    held: list[StoredSegment] = field(default_factory=list)
    # Left out: what they have of a diskless partition is elsewhere, too, and that is newer.
    spare: list[StoredSegment] = field(default_factory=list)
    # Whole by their objects, but what they are cannot be told.
    unreadable: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.segments.values()))

    def values(self, partitions: int) -> dict[int, list[bytes]]:
        """The values of the metadata topic, by its partition."""
        found: dict[int, list[bytes]] = {}
        for partition in sorted(self.segments):
            target = found.setdefault(metadata_partition(partition, partitions), [])
            log_start = self.log_starts.get(partition, NO_OFFSET)
            for segment in self.segments[partition]:
                target += _records(segment, log_start)
        return found


class WritableTopic(Protocol):
    """What a rebuild needs of ``MetadataTopic``."""

    @property
    def partition_count(self) -> int: ...
    async def create(self) -> None: ...
    async def append(self, partition: int, values: Sequence[bytes]) -> int: ...
    async def end_offset(self, partition: int) -> int: ...


class RestoredLog(NamedTuple):
    """What a diskless partition has besides its remote segments: from ``start`` to ``end``
    (exclusive). ``is_there``: now, and not only by a backup."""

    start: int
    end: int
    is_there: bool = False


class _Spans:
    """Offsets as ranges that do not touch each other; ends are exclusive."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def has_all(self, start: int, end: int) -> bool:
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._ends[at]

    def has_any(self, start: int, end: int) -> bool:
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end

    def add(self, start: int, end: int) -> None:
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if low < high:
            start, end = min(start, self._starts[low]), max(end, self._ends[high - 1])
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]


async def rebuild_logs(
    store: ObjectStore,
    snapshots: Iterable[RemoteLog] = (),
    restored: Callable[[TopicIdPartition], RestoredLog | None] = lambda partition: None,
    holds: Sequence[Hold] = (),
) -> RebuiltLogs:
    """Read the store; ``ObjectError`` if it does not answer. ``restored`` is what was restored of a
    partition; None if it has no other records than its remote segments. ``holds`` are of restores
    from before the snapshots: what they cover and no snapshot knows is of an older history, in
    whose place other records may have been written since."""
    known = merged(snapshots)
    rebuilt = RebuiltLogs()
    listed: set[bytes] = set()
    unknown: dict[TopicIdPartition, list[tuple[StoredSegment, RemoteSegment]]] = {}
    async for stored in stored_segments(store):
        before = known.get(stored.partition)
        snapshot = before.segment(stored.id) if before is not None else None
        segment = await _described(store, stored, snapshot, rebuilt)
        if segment is None:
            continue
        listed.add(segment.id)
        log = restored(segment.partition)
        is_newer = snapshot is None or snapshot.state is not SegmentState.COPY_FINISHED
        is_above = log is not None and segment.end_offset >= log.end
        if is_above or (is_newer and any(hold.covers(stored.modified_ms) for hold in holds)):
            rebuilt.held.append(stored)
            continue
        if is_newer and log is not None:
            unknown.setdefault(segment.partition, []).append((stored, segment))
            continue
        if is_newer:
            rebuilt.newer.append(stored)
        rebuilt.segments.setdefault(segment.partition, []).append(segment)
    for partition, found in unknown.items():
        _take_needed(found, restored(partition), rebuilt)
    for segments in rebuilt.segments.values():
        segments.sort(key=lambda one: (one.start_offset, one.id))
    for partition, remote in known.items():
        rebuilt.log_starts[partition] = remote.log_start
        left = rebuilt.segments.get(partition)
        if left and remote.log_start != NO_OFFSET:
            # What lies below the first segment was deleted since, or is lost: unless the log has
            # it, it is nowhere.
            log = restored(partition)
            first = left[0].start_offset if log is None else min(left[0].start_offset, log.start)
            rebuilt.log_starts[partition] = max(remote.log_start, first)
        rebuilt.missing += [
            segment
            for segment in remote.all()
            if segment.state is SegmentState.COPY_FINISHED and segment.id not in listed
        ]
    return rebuilt


def _take_needed(
    found: list[tuple[StoredSegment, RemoteSegment]],
    log: RestoredLog | None,
    rebuilt: RebuiltLogs,
) -> None:
    """Of a diskless partition: what no snapshot knows may be of a history that a restore has ended,
    and is in the store until it is cleaned. Others have been put in its place since: it is taken
    only if something would be missing without it."""
    partition = found[0][1].partition
    newer = _Spans(map(_offsets, rebuilt.segments.get(partition, ())))
    if log is not None and log.is_there:
        newer.add(log.start, log.end)
    found.sort(key=lambda one: (-one[0].modified_ms, one[1].id))
    for at, (stored, segment) in enumerate(found, 1):
        offsets = _offsets(segment)
        if newer.has_any(*offsets):
            # An older one that overlaps what is newer may itself be the one to leave out.
            older = [_offsets(one) for _, one in found[at:]]
            others = chain(newer, (one for one in older if not newer.has_any(*one)))
            if _Spans(others).has_all(*offsets):
                rebuilt.spare.append(stored)
                continue
        newer.add(*offsets)
        rebuilt.newer.append(stored)
        rebuilt.segments.setdefault(partition, []).append(segment)


def _offsets(segment: RemoteSegment) -> tuple[int, int]:
    return segment.start_offset, segment.end_offset + 1


def merged(snapshots: Iterable[RemoteLog]) -> Mapping[TopicIdPartition, RemoteLog]:
    """Pure: of several snapshots of a partition, the one that has read furthest."""
    found: dict[TopicIdPartition, RemoteLog] = {}
    for log in snapshots:
        other = found.get(log.partition)
        if other is None or log.next_offset > other.next_offset:
            found[log.partition] = log
    return found


async def write_metadata(topic: WritableTopic, rebuilt: RebuiltLogs) -> int:
    """Write the records to the metadata topic, which must be empty; returns how many."""
    await topic.create()
    count = topic.partition_count
    for partition in range(count):
        end = await topic.end_offset(partition)
        if end:
            raise StorageError(
                f"partition {partition} of the metadata topic has {end} records: a rebuild needs"
                " an empty one, for what it has may contradict the store"
            )
    written = 0
    for partition, values in rebuilt.values(count).items():
        for first in range(0, len(values), _VALUES_PER_APPEND):
            page = values[first : first + _VALUES_PER_APPEND]
            await topic.append(partition, page)
            written += len(page)
    return written


async def _described(
    store: ObjectStore, stored: StoredSegment, snapshot: RemoteSegment | None, rebuilt: RebuiltLogs
) -> RemoteSegment | None:
    """The segment as it was finished; None if it never was, or cannot be told."""
    is_known = snapshot is not None and snapshot.state is SegmentState.COPY_FINISHED
    if stored.has_layout_with_manifest and stored.manifest is None:
        return None
    if not stored.has_log:
        # A put that arrived after the deletion of its segment, or a loss.
        rebuilt.unreadable.append(f"{stored.topic} {stored.id}: its log is not in the store")
        return None
    if is_known:
        return snapshot
    if stored.manifest is None:
        rebuilt.unreadable.append(f"{stored.topic} {stored.id}: this layout has no manifests")
        return None
    try:
        found = (await read_manifest(store, stored.manifest.key)).segment
    except (NotFound, DamagedSegment) as error:
        # Any other error says nothing of the segment: left out, it would be lost.
        rebuilt.unreadable.append(str(error))
        return None
    if found is None or not _agrees(found, stored):
        rebuilt.unreadable.append(f"{stored.manifest.key} does not describe its segment")
        return None
    return found


def _agrees(segment: RemoteSegment, stored: StoredSegment) -> bool:
    named = (segment.topic, segment.partition, segment.start_offset, segment.id)
    return named == (stored.topic, stored.partition, stored.start_offset, stored.id)


def _records(segment: RemoteSegment, log_start: int) -> Sequence[bytes]:
    fresh = replace(segment, copier_epoch=NO_EPOCH)
    finished = segment_updated(
        fresh,
        SegmentState.COPY_FINISHED,
        broker_id=segment.broker_id,
        now_ms=segment.event_timestamp_ms,
    )
    return [
        encode_remote_log(segment_started(fresh, log_start)),
        encode_remote_log(finished),
    ]
