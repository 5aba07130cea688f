"""Pure: batches of one partition → a Kafka-format segment with its indexes.

These are the files that ``kafka-dump-log`` reads and Kafka's remote log manager uploads: ``.log``,
``.index``, ``.timeindex``, ``.snapshot`` (the producer state at the segment's end) and
``leader-epoch-checkpoint``. The index rules are those of ``log/segment.py``; a test compares the
files of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.checkpoints import LEADER_EPOCH_CHECKPOINT, encode_epochs, encode_snapshot
from skylog.log.index import OffsetIndex, TimeIndex
from skylog.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from skylog.log.producers import REMEMBERED_BATCHES, ProducerEntry, Producers
from skylog.wire.batch import NO_TIMESTAMP, Batch
from skylog.wire.buffers import Buffer

INDEX_INTERVAL_BYTES: Final = 4096
# Indexes have 31 bits for positions and relative offsets.
SEGMENT_BYTES_MAX: Final = 2**31 - 1
RELATIVE_OFFSET_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment's data besides its log. ``producers`` is the state of its own batches alone."""

    base_offset: int
    last_offset: int
    size: int
    max_timestamp: int
    offset_index: bytes
    time_index: bytes
    producers: tuple[ProducerEntry, ...]
    epochs: tuple[tuple[int, int], ...]

    @property
    def log_name(self) -> str:
        return file_name(self.base_offset, LOG_SUFFIX)

    def files(self, snapshot: bytes) -> Mapping[str, bytes]:
        """The other files of the segment, by name."""
        name = file_name(self.base_offset, "")
        return {
            f"{name}{INDEX_SUFFIX}": self.offset_index,
            f"{name}{TIME_INDEX_SUFFIX}": self.time_index,
            f"{name}.{LEADER_EPOCH_CHECKPOINT}": encode_epochs(self.epochs).encode(),
            file_name(self.last_offset + 1, SNAPSHOT_SUFFIX): snapshot,
        }


@dataclass(slots=True)
class SegmentAssembler:
    """Takes batches in offset order, each as it is served to consumers.

    Their concatenated bytes are the log.
    """

    base_offset: int
    interval_bytes: int = INDEX_INTERVAL_BYTES
    size: int = 0
    _index: bytearray = field(default_factory=bytearray)
    _time_index: bytearray = field(default_factory=bytearray)
    _unindexed: int = 0
    _last_offset: int = -1
    _max_timestamp: int = NO_TIMESTAMP
    _max_timestamp_offset: int = 0
    _indexed_timestamp: int = NO_TIMESTAMP
    _producers: Producers = field(default_factory=Producers)
    _epochs: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last_offset = self.base_offset - 1
        self._max_timestamp_offset = self.base_offset

    @property
    def index_bytes(self) -> int:
        """The size of the larger index."""
        return max(len(self._index), len(self._time_index))

    def add(self, data: Buffer) -> None:
        """One batch with its real base offset; INVALID_REQUEST if it does not follow."""
        batch = Batch(data)
        if batch.base_offset <= self._last_offset:
            raise _refused(f"offset {batch.base_offset} after {self._last_offset}")
        if batch.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            raise _refused(f"offset {batch.last_offset} in the segment of {self.base_offset}")
        if self.size + batch.size > SEGMENT_BYTES_MAX:
            raise _refused(f"a segment of more than {SEGMENT_BYTES_MAX} bytes")
        self._note(batch)
        self._last_offset = batch.last_offset
        self.size += batch.size
        if batch.producer_id >= 0 and not batch.is_control:
            self._producers.apply(batch, None)
        if not self._epochs or batch.leader_epoch > self._epochs[-1][0]:
            self._epochs.append((batch.leader_epoch, batch.base_offset))

    def _note(self, batch: Batch) -> None:
        if batch.max_timestamp > self._max_timestamp:
            self._max_timestamp = batch.max_timestamp
            self._max_timestamp_offset = batch.last_offset
        if self._unindexed > self.interval_bytes:
            relative = batch.last_offset - self.base_offset
            self._index += OffsetIndex.entry.pack(relative, self.size)
            self._index_timestamp()
            self._unindexed = 0
        self._unindexed += batch.size

    def _index_timestamp(self) -> None:
        if self._max_timestamp > self._indexed_timestamp:
            relative = self._max_timestamp_offset - self.base_offset
            self._time_index += TimeIndex.entry.pack(self._max_timestamp, relative)
            self._indexed_timestamp = self._max_timestamp

    def finish(self) -> Segment:
        """The segment; INVALID_REQUEST if nothing was added."""
        if not self.size:
            raise _refused("a segment without batches")
        self._index_timestamp()
        return Segment(
            self.base_offset,
            self._last_offset,
            self.size,
            self._max_timestamp,
            bytes(self._index),
            bytes(self._time_index),
            tuple(self._producers),
            tuple(self._epochs),
        )


def snapshots(segments: Iterable[Segment], earlier: Iterable[ProducerEntry] = ()) -> list[bytes]:
    """The producer snapshot at the end of each segment, in order; ``earlier`` is the one before
    them. Segments are assembled independently; their producer states are combined here."""
    known = {entry.producer_id: entry for entry in earlier}
    made = []
    for segment in segments:
        for entry in segment.producers:
            known[entry.producer_id] = followed(known.get(entry.producer_id), entry)
        made.append(encode_snapshot(known.values()))
    return made


def followed(earlier: ProducerEntry | None, later: ProducerEntry) -> ProducerEntry:
    """A producer's state after a segment, from those before it and of the segment alone."""
    if earlier is None or earlier.epoch != later.epoch:
        return later
    batches = (*earlier.batches, *later.batches)[-REMEMBERED_BATCHES:]
    return ProducerEntry(
        later.producer_id,
        later.epoch,
        later.coordinator_epoch,
        later.last_timestamp,
        later.txn_first_offset,
        batches,
    )


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"cannot assemble {why}")
