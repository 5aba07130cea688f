"""What the WAL has of a segment: its size, its time, and some of its batches to compare. Pure.

The bytes of a batch do not change their size on the way from the WAL into a segment, so that the
place of every batch in the log of the segment is known before anybody has assembled it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.assembly import RELATIVE_OFFSET_MAX, SEGMENT_BYTES_MAX
from skylog.wire.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from skylog.kernel.rng import Random
    from skylog.tiered.consolidation.grants import Asked

# Besides the first and the last batch of a segment.
DRAWN: Final = 16
SAMPLES_MAX: Final = DRAWN + 2


class StoredBatch(NamedTuple):
    """A batch in a WAL object, or adjacent ones; ``place`` is for whoever reads it."""

    base_offset: int
    last_offset: int
    size: int
    timestamp: int
    place: object


class Sample(NamedTuple):
    """A batch, and where its bytes are in the log of the segment."""

    position: int
    batch: StoredBatch

    @property
    def end(self) -> int:
        return self.position + self.batch.size


class Outline(NamedTuple):
    """A segment as it will be."""

    start_offset: int
    size: int
    max_timestamp: int
    samples: Sequence[Sample]


class Outlining:
    """Walks over the batches of a segment, page by page.

    A segment may be as large as its job likes, so the batches to be compared are drawn in one walk:
    each is replaced by a later one with the chance that makes all equally likely.
    """

    def __init__(self, asked: Asked, rng: Random) -> None:
        self._asked = asked
        self._rng = rng
        self._start = -1
        self._next = asked.start_offset
        self._size = 0
        self._timestamp = NO_TIMESTAMP
        self._first: Sample | None = None
        self._last: Sample | None = None
        self._drawn: list[Sample] = []
        self._count = 0

    def add(self, batches: Iterable[StoredBatch]) -> None:
        """The next ones; INVALID_REQUEST if they are no segment."""
        for batch in batches:
            if self._first is None:
                if not batch.base_offset <= self._next <= batch.last_offset:
                    raise _refused(f"the WAL has no batch with offset {self._next}")
                self._start = batch.base_offset
            elif batch.base_offset != self._next:
                raise _refused(f"the WAL has no batch at {self._next}")
            sample = Sample(self._size, batch)
            self._draw(sample)
            self._first = self._first or sample
            self._last = sample
            self._next = batch.last_offset + 1
            self._size += batch.size
            self._timestamp = max(self._timestamp, batch.timestamp)
            if self._size > SEGMENT_BYTES_MAX:
                raise _refused(f"a segment of more than {SEGMENT_BYTES_MAX} bytes")
            if batch.last_offset - self._start > RELATIVE_OFFSET_MAX:
                raise _refused(f"a segment of more than {RELATIVE_OFFSET_MAX} offsets")

    def _draw(self, sample: Sample) -> None:
        self._count += 1
        if len(self._drawn) < DRAWN:
            self._drawn.append(sample)
            return
        at = int(self._rng.random() * self._count)
        if at < DRAWN:
            self._drawn[at] = sample

    @property
    def next_offset(self) -> int:
        return self._next

    def finish(self) -> Outline:
        """INVALID_REQUEST if the segment does not end with a batch."""
        if self._first is None or self._last is None:
            raise _refused("a segment without batches")
        if self._next != self._asked.end_offset + 1:
            raise _refused(
                f"a segment that ends at {self._asked.end_offset}, within the batch that ends at"
                f" {self._next - 1}"
            )
        chosen = {sample.position: sample for sample in self._drawn}
        chosen[self._first.position] = self._first
        chosen[self._last.position] = self._last
        samples = tuple(chosen[position] for position in sorted(chosen))
        return Outline(self._start, self._size, self._timestamp, samples)


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
