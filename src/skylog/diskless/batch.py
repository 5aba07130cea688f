"""A batch of a diskless topic: where its bytes are, and what is known of its records. Pure.

*Extent* and *stamp* stay with a batch from the writer to the reader; a commit changes only the
stamp. Messages and records have their own fields (``coordinator/wire.py``), and tables have a
column for each field.

One of each is created for every batch of a commit and of a find. A call by keyword takes more than
twice as long as ``tuple.__new__``, so there the values are passed in the order of the fields; only
this module and ``coordinator/wire.py`` do so, and ``test_batch.py`` checks the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from skylog.kernel.ids import Uuid

_new: Final = tuple.__new__

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1


class Extent(NamedTuple):
    """A range of bytes in an object."""

    object_key: str
    byte_offset: int
    byte_size: int

    @property
    def end(self) -> int:
        return self.byte_offset + self.byte_size


class Stamp(NamedTuple):
    """The offsets and timestamps of a batch.

    Before the commit the offsets are the producer's own and only give the number of records. The
    commit sets the first three fields.
    """

    base_offset: int
    last_offset: int
    log_append_timestamp: int = -1
    batch_max_timestamp: int = -1
    timestamp_type: int = CREATE_TIME
    magic: int = 2

    @property
    def record_count(self) -> int:
        return self.last_offset - self.base_offset + 1

    @property
    def timestamp(self) -> int:
        """The time used by retention and ListOffsets: the commit's time for LogAppendTime."""
        if self.timestamp_type == LOG_APPEND_TIME:
            return self.log_append_timestamp
        return self.batch_max_timestamp

    def committed(self, base_offset: int, now_ms: int) -> Stamp:
        last_offset = base_offset + self.last_offset - self.base_offset
        return _new(Stamp, (base_offset, last_offset, now_ms, *self[3:]))


class ProducerStamp(NamedTuple):
    """An idempotent producer's numbers for a batch; all are -1 for any other producer."""

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_sequence: int = -1

    @property
    def idempotent(self) -> bool:
        return self.producer_id >= 0 and self.producer_epoch >= 0


NO_PRODUCER: Final = ProducerStamp()


# Not frozen: one is created for every batch, and freezing takes four times as long.
@dataclass(slots=True, kw_only=True)
class BatchToCommit:
    """A batch in its file, before its commit."""

    topic_id: Uuid
    partition: int
    extent: Extent
    stamp: Stamp
    producer: ProducerStamp = NO_PRODUCER
    request_id: int = 0

    @property
    def topic_partition(self) -> tuple[Uuid, int]:
        return self.topic_id, self.partition


# A batch that has its offsets, on its way to the state.
Committed: TypeAlias = tuple[Extent, Stamp]
# The same in a plan, which must remember the producer.
Accepted: TypeAlias = tuple[Extent, Stamp, ProducerStamp]


class BatchCoordinate(NamedTuple):
    """Where a committed batch is stored, and its offsets and timestamps. Never changes."""

    batch_id: int
    extent: Extent
    stamp: Stamp

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> BatchCoordinate:
        """From its id and the fields of its extent and its stamp, in their order."""
        return _new(cls, (row[0], _new(Extent, row[1:4]), _new(Stamp, row[4:])))
