"""The remote log of one partition, as the records of the metadata topic tell it. Pure.

``apply`` is the only mutation and total: hostile records are told apart and change nothing.

- A segment begins with record 0 (COPY_STARTED), goes on to COPY_FINISHED, DELETE_STARTED and
  DELETE_FINISHED (then it is forgotten), or from COPY_STARTED to DELETE_STARTED. The same state
  again is valid. Only COPY_FINISHED is visible to reads.
- The *fence* is the greatest leader epoch of a writer so far. An update of a writer below it is
  void: every reader agrees on that by the order of the topic. A segment that such a writer begins
  is listed, for it must be cleaned up, but its writer is told that it may not go on.
- Records without an epoch are Kafka's: never void, and they raise nothing.

A segment is kept as the bytes of a record 3 behind its id, and decoded when it is used: 100,000
segments take less than 30 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from heapq import nsmallest
from struct import Struct
from typing import Final, Protocol

from skylog.tiered.metadata.intervals import EpochIntervals, Interval
from skylog.tiered.metadata.records import (
    NO_EPOCH,
    NO_OFFSET,
    is_valid,
    runs_of,
    segment_of,
    snapshot_of,
)
from skylog.tiered.segments import (
    TRANSITIONS,
    PartitionDeleteState,
    RemoteSegment,
    SegmentState,
    TopicIdPartition,
)
from skylog.wire.codec import decode, encode
from skylog.wire.messages.remote_log_segment_metadata_record import (
    RemoteLogSegmentMetadataRecord as SegmentRecord,
)
from skylog.wire.messages.remote_log_segment_metadata_snapshot_record import (
    RemoteLogSegmentMetadataSnapshotRecord as SnapshotRecord,
)
from skylog.wire.messages.remote_log_segment_metadata_update_record import (
    RemoteLogSegmentMetadataUpdateRecord as UpdateRecord,
)
from skylog.wire.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord as DeletionRecord,
)
from skylog.wire.messages.remote_partition_snapshot_record import (
    HighestOffset,
    LogStart,
    RemotePartitionSnapshotRecord,
)
from skylog.wire.schema import Message

_VERSION: Final = 0
_ID_BYTES: Final = 16
# The writer of a log start that names no epoch: it counts for the whole log.
_ANY_EPOCH: Final = 2**31 - 1
# What a kept segment begins with.
_OFFSETS: Final = Struct(">qq")
_START: Final = Struct(">q")


class Outcome(Enum):
    """What a record did."""

    EFFECTIVE = "effective"
    # Its writer's epoch is below the fence.
    VOID = "void"
    # An update of a segment that is not known (any more).
    UNKNOWN = "unknown"
    # A state that cannot follow, or a segment that cannot be.
    INVALID = "invalid"
    # Applied before: the topic is read again for another partition.
    SEEN = "seen"


class Lineage(Protocol):
    """What the remote log asks of a log's leader epochs (``tiered/lineage.py``)."""

    def run_at(self, offset: int) -> tuple[int, int] | None:
        """The epoch of an offset of the log, and the end (exclusive) of that epoch."""
        ...


class RemoteLog:
    """The remote segments of a partition."""

    __slots__ = (
        "_epochs",
        "_highest",
        "_segments",
        "_unfinished",
        "delete_state",
        "fence",
        "finished",
        "finished_bytes",
        "has_overlaps",
        "log_starts",
        "next_offset",
        "partition",
        "topic",
    )

    def __init__(self, partition: TopicIdPartition, topic: str) -> None:
        self.partition = partition
        self.topic = topic
        # The offset of the metadata topic behind the last record applied.
        self.next_offset = 0
        self.fence = NO_EPOCH
        # The log starts that effective records carried, by the writer's epoch, which bounds what
        # they say: leaders after an unclean election may have written other records there. Of two,
        # the one of the older epoch is kept only if it is greater.
        self.log_starts: list[tuple[int, int]] = []
        self.delete_state: PartitionDeleteState | None = None
        # Bytes of all segments that are visible.
        self.finished_bytes = 0
        # By id; those that are finished in the order in which they were.
        self._segments: dict[bytes, bytes] = {}
        self._unfinished: dict[bytes, SegmentState] = {}
        self._epochs: dict[int, EpochIntervals] = {}
        self._highest: dict[int, int] = {}
        self.finished = 0  # ever: the rank of the last
        self.has_overlaps = False  # two leaders have copied the same offsets

    # --- Questions ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def log_start(self) -> int:
        """The greatest log start that an effective record carried; −1: none did."""
        return self.log_starts[0][1] if self.log_starts else NO_OFFSET

    def segment(self, id_: bytes) -> RemoteSegment | None:
        """A segment in any state, by its id."""
        return self._decoded(id_) if id_ in self._segments else None

    def has(self, epoch: int, offset: int) -> bool:
        return self._at(epoch, offset) is not None

    def segment_for(self, epoch: int, offset: int) -> RemoteSegment | None:
        """The finished segment to read an offset of an epoch from."""
        intervals = self._epochs.get(epoch)
        id_ = None if intervals is None else intervals.id_at(offset)
        return None if id_ is None else self._decoded(id_)

    def segments(self, epoch: int) -> Iterator[RemoteSegment]:
        """All with records of an epoch, in any state, by start offset; decoded one by one."""
        unfinished = [
            segment
            for segment in self.unfinished()
            if any(run[0] == epoch for run in runs_of(self._record(segment.id)))
        ]
        ids = [interval.id for interval in self._epochs.get(epoch, ())]
        if not unfinished:
            return map(self._decoded, ids)
        ids += [segment.id for segment in unfinished]
        return map(self._decoded, sorted(ids, key=self._offsets))

    def all(self) -> Iterator[RemoteSegment]:
        """All segments in any state, by start offset; decoded one by one."""
        return map(self._decoded, sorted(self._segments, key=self._offsets))

    def unfinished(self) -> list[RemoteSegment]:
        """Those that are being copied or deleted, or were when their writer died."""
        return sorted(map(self._decoded, self._unfinished), key=lambda one: one.start_offset)

    def page(
        self, start_offset: int, after_id: bytes, limit: int, *, finished_only: bool
    ) -> list[RemoteSegment]:
        """The first segments by start offset and id, behind that one."""
        spots = (
            (_START.unpack_from(kept)[0], id_)
            for id_, kept in self._segments.items()
            if not (finished_only and id_ in self._unfinished)
        )
        after = start_offset, bytes(after_id)
        first = nsmallest(limit, (spot for spot in spots if spot > after))
        return [self._decoded(id_) for _, id_ in first]

    def highest_offsets(self) -> list[tuple[int, int]]:
        """(epoch, highest offset) of each epoch that was ever copied."""
        return list(self._highest.items())

    def epochs(self) -> list[int]:
        """The epochs that finished segments have records of, ascending."""
        return sorted(self._epochs)

    def highest_offset(self, epoch: int) -> int | None:
        """The highest offset of an epoch that was ever copied, as Kafka remembers it."""
        return self._highest.get(epoch)

    def next_with_txn_index(self, epoch: int, offset: int) -> RemoteSegment | None:
        """The first segment from an offset on with aborted transactions, in a gapless run."""
        while found := self._at(epoch, offset):
            record = self._record(found.id)
            if not record.txn_index_empty:
                return segment_of(self.topic, self.partition, record)
            offset = found.end + 1
        return None

    def covered_end(self, from_offset: int, lineage: Lineage) -> int:
        """The end (exclusive) of the gapless run of finished segments of a lineage."""
        offset = from_offset
        while run := lineage.run_at(offset):
            epoch, end = run
            found = self._at(epoch, offset)
            if found is None:
                break
            offset = min(found.end + 1, end)
        return offset

    def run(self, epoch: int, offset: int) -> Iterator[Interval]:
        """All that offsets of an epoch are read from, from this one on up to the first gap."""
        intervals = self._epochs.get(epoch)
        return iter(()) if intervals is None else intervals.run(offset)

    # --- Changes -----------------------------------------------------------------------------

    def apply(self, record: Message, offset: int) -> Outcome:
        """Apply the record at an offset of the metadata topic."""
        if offset < self.next_offset:
            return Outcome.SEEN
        self.next_offset = offset + 1
        if isinstance(record, SegmentRecord):
            return self._begin(record)
        if isinstance(record, UpdateRecord):
            return self._update(record)
        if isinstance(record, DeletionRecord):
            return self._delete(record)
        return Outcome.INVALID

    def _begin(self, record: SegmentRecord) -> Outcome:
        is_void = self._is_void(record.copier_epoch)
        id_ = bytes(record.remote_log_segment_id.id)
        known = id_ in self._segments
        if not is_valid(record) or (
            known and self._unfinished.get(id_) is not SegmentState.COPY_STARTED
        ):
            return Outcome.INVALID
        self._keep(id_, snapshot_of(record))
        self._unfinished[id_] = SegmentState.COPY_STARTED
        if is_void:
            return Outcome.VOID
        self._note_start(record.log_start_offset, record.copier_epoch)
        return Outcome.EFFECTIVE

    def _update(self, record: UpdateRecord) -> Outcome:
        if self._is_void(record.copier_epoch):
            return Outcome.VOID
        try:
            state = SegmentState(record.remote_log_segment_state)
        except ValueError:
            return Outcome.INVALID
        id_ = bytes(record.remote_log_segment_id.id)
        if id_ not in self._segments:
            # Said again after the answer to the first record was lost.
            is_again = state is SegmentState.DELETE_FINISHED
            return Outcome.EFFECTIVE if is_again else Outcome.UNKNOWN
        before = self._unfinished.get(id_, SegmentState.COPY_FINISHED)
        if state is SegmentState.COPY_STARTED or state not in TRANSITIONS[before]:
            return Outcome.INVALID
        self._change(id_, before, state, record)
        self._note_start(record.log_start_offset, record.copier_epoch)
        return Outcome.EFFECTIVE

    def _delete(self, record: DeletionRecord) -> Outcome:
        try:
            state = PartitionDeleteState(record.remote_partition_delete_state)
        except ValueError:
            return Outcome.INVALID
        before = self.delete_state
        if state != (before or 0) and state != (-1 if before is None else before) + 1:
            return Outcome.INVALID
        self.delete_state = state
        return Outcome.EFFECTIVE

    def _is_void(self, copier_epoch: int) -> bool:
        if copier_epoch < 0:
            return False
        if copier_epoch < self.fence:
            return True
        self.fence = copier_epoch
        return False

    def _note_start(self, log_start_offset: int, copier_epoch: int) -> None:
        writer = copier_epoch if copier_epoch >= 0 else _ANY_EPOCH
        starts = self.log_starts
        if log_start_offset < 0 or any(
            epoch >= writer and start >= log_start_offset for epoch, start in starts
        ):
            return
        kept = [one for one in starts if one[0] > writer or one[1] > log_start_offset]
        self.log_starts = sorted([*kept, (writer, log_start_offset)])

    def _change(
        self, id_: bytes, before: SegmentState, state: SegmentState, update: UpdateRecord
    ) -> None:
        record = self._record(id_)
        record.broker_id = update.broker_id
        record.event_timestamp_ms = update.event_timestamp_ms
        record.custom_metadata = update.custom_metadata
        record.remote_log_segment_state = state
        record.copier_epoch = update.copier_epoch
        if state is not before:
            if before is SegmentState.COPY_FINISHED:
                self._hide(id_, record)
            if state is SegmentState.COPY_FINISHED:
                self._show(id_, record)
            else:
                self._unfinished[id_] = state
        if state is SegmentState.DELETE_FINISHED:
            del self._segments[id_], self._unfinished[id_]
        else:
            self._keep(id_, record)

    def _show(self, id_: bytes, record: SnapshotRecord) -> None:
        self.finished += 1
        self.finished_bytes += record.segment_size_in_bytes
        self._unfinished.pop(id_, None)
        # Taken out and put in again: the order of the finished ones is the order of finishing.
        self._segments.pop(id_, None)
        self._segments[id_] = b""
        for epoch, start, end in runs_of(record):
            intervals = self._epochs.setdefault(epoch, EpochIntervals())
            self.has_overlaps |= intervals.add(Interval(start, end, self.finished, id_))
            self._highest[epoch] = max(end, self._highest.get(epoch, end))

    def _hide(self, id_: bytes, record: SnapshotRecord) -> None:
        self.finished_bytes -= record.segment_size_in_bytes
        for epoch, start, _ in runs_of(record):
            intervals = self._epochs[epoch]
            intervals.remove(start, id_)
            if not intervals:
                del self._epochs[epoch]

    # --- Snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> tuple[RemotePartitionSnapshotRecord, list[bytes]]:
        """All of the state: what ``restored`` takes. The segments are encoded records 3."""
        head = RemotePartitionSnapshotRecord(
            self.partition.topic_id,
            self.partition.partition_index,
            self.topic,
            self.next_offset,
            self.fence,
            [LogStart(epoch, start) for epoch, start in self.log_starts],
            -1 if self.delete_state is None else self.delete_state,
            [HighestOffset(epoch, offset) for epoch, offset in self._highest.items()],
            len(self._segments),
        )
        return head, [id_ + kept for id_, kept in self._segments.items()]

    @classmethod
    def restored(cls, head: RemotePartitionSnapshotRecord, segments: Iterable[bytes]) -> RemoteLog:
        """The remote log of a snapshot; ValueError or ProtocolError if it cannot be one."""
        log = cls(TopicIdPartition(head.topic_id, head.partition_index), head.topic)
        log.next_offset = head.metadata_offset
        log.fence = head.fence
        log.log_starts = [(one.leader_epoch, one.offset) for one in head.log_starts]
        if head.delete_state >= 0:
            log.delete_state = PartitionDeleteState(head.delete_state)
        for encoded in segments:
            record = decode(SnapshotRecord, encoded, _VERSION)
            id_ = bytes(record.segment_id)
            state = SegmentState(record.remote_log_segment_state)
            if state is SegmentState.COPY_FINISHED:
                log._show(id_, record)
            else:
                log._unfinished[id_] = state
            log._segments[id_] = encoded[_ID_BYTES:]
        log._highest = {entry.leader_epoch: entry.offset for entry in head.highest_offsets}
        return log

    # --- Kept segments -----------------------------------------------------------------------

    def _at(self, epoch: int, offset: int) -> Interval | None:
        intervals = self._epochs.get(epoch)
        return None if intervals is None else intervals.at(offset)

    def _keep(self, id_: bytes, record: SnapshotRecord) -> None:
        self._segments[id_] = encode(record, _VERSION)[_ID_BYTES:]

    def _record(self, id_: bytes) -> SnapshotRecord:
        return decode(SnapshotRecord, id_ + self._segments[id_], _VERSION)

    def _decoded(self, id_: bytes) -> RemoteSegment:
        return segment_of(self.topic, self.partition, self._record(id_))

    def _offsets(self, id_: bytes) -> tuple[int, int]:
        start, end = _OFFSETS.unpack_from(self._segments[id_])
        return start, end
