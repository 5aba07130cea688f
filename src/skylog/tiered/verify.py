"""Whether remote segments are what their records say: objects, sizes, checksums and coverage.

For ``skylog tiered verify``. It reads every byte of the logs, once and in pieces; nothing is
changed. What is wrong with one segment does not stop the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from skylog.log.checkpoints import Malformed, decode_epochs, decode_snapshot
from skylog.log.index import OffsetIndex, TimeIndex
from skylog.objects.store import NotFound, ObjectError
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.wire.batch import HEADER_BYTES, MAGIC, Batch, batch_size

_PIECE_BYTES: Final = 8 * 1024 * 1024
_PROBLEMS_PER_SEGMENT_MAX: Final = 20


class Problem(NamedTuple):
    """``segment`` is None for offsets that no segment has."""

    segment: RemoteSegment | None
    text: str


@dataclass(slots=True)
class VerifyReport:
    """Damage, and what was looked at."""

    problems: list[Problem] = field(default_factory=list)
    segments: int = 0
    bytes: int = 0

    def add(self, other: VerifyReport) -> None:
        self.problems += other.problems
        self.segments += other.segments
        self.bytes += other.bytes


async def verify_partition(
    storage: ObjectRemoteStorage,
    segments: Iterable[RemoteSegment],
    *,
    start: int,
    end: int,
    logs: bool = True,
) -> VerifyReport:
    """Verify the finished segments among ``segments``, and that they have all offsets from
    ``start`` (the log start) to ``end`` (the local log start). Without ``logs`` only objects,
    sizes and indexes are looked at."""
    report = VerifyReport()
    finished = [one for one in segments if one.state is SegmentState.COPY_FINISHED]
    for segment in finished:
        report.segments += 1
        problems = await _verify_objects(storage, segment)
        if not problems and logs:
            problems = await _verify_log(storage, segment)
            report.bytes += segment.size
        report.problems += [Problem(segment, text) for text in problems]
    report.problems += [
        Problem(None, f"offsets {first} to {behind - 1} are in no remote segment")
        for first, behind in gaps(finished, start, end)
    ]
    return report


def gaps(segments: Sequence[RemoteSegment], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Pure: the ranges from ``start`` to ``end`` (exclusive) that no segment has."""
    at = start
    for segment in sorted(segments, key=lambda one: one.start_offset):
        if segment.start_offset > at and at < end:
            yield at, min(segment.start_offset, end)
        at = max(at, segment.end_offset + 1)
    if at < end:
        yield at, end


async def _verify_objects(storage: ObjectRemoteStorage, segment: RemoteSegment) -> list[str]:
    """Manifest, sizes and indexes."""
    problems: list[str] = []
    try:
        manifest = await storage.read_manifest(segment)
        stored = (await storage.store.head(storage.layout.log_key(segment))).size
        expected = segment.size if manifest is None else manifest.chunks.object_size
        if stored != expected:
            problems.append(f"the log has {stored} bytes instead of {expected}")
        for kind in IndexType:
            problems += await _verify_index(storage, segment, kind)
    except ObjectError as error:
        problems.append(str(error))
    return problems


async def _verify_index(
    storage: ObjectRemoteStorage, segment: RemoteSegment, kind: IndexType
) -> list[str]:
    try:
        data = bytes(await storage.fetch_index(segment, kind))
    except NotFound:
        needed = kind is not IndexType.TRANSACTION or not segment.txn_index_empty
        return [f"no {kind.value} index"] if needed else []
    try:
        match kind:
            case IndexType.OFFSET:
                return _offset_index_faults(segment, data)
            case IndexType.TIMESTAMP:
                size = TimeIndex.entry.size
                return [f"time index of {len(data)} bytes"] if len(data) % size else []
            case IndexType.LEADER_EPOCH:
                decode_epochs(data.decode())
            case IndexType.PRODUCER_SNAPSHOT:
                decode_snapshot(data)
            case _:
                pass
    except (Malformed, ValueError) as error:
        return [f"{kind.value} index: {error}"]
    return []


def _offset_index_faults(segment: RemoteSegment, data: bytes) -> list[str]:
    if len(data) % OffsetIndex.entry.size:
        return [f"offset index of {len(data)} bytes"]
    last, span = (-1, -1), segment.end_offset - segment.start_offset
    for relative, position in OffsetIndex.entry.iter_unpack(data):
        if relative <= last[0] or position <= last[1] or relative > span:
            return [f"offset index: {relative} at {position} behind {last[0]} at {last[1]}"]
        last = relative, position
    return [] if last[1] < segment.size else [f"offset index: position {last[1]} is behind the log"]


async def _verify_log(storage: ObjectRemoteStorage, segment: RemoteSegment) -> list[str]:
    """Every batch: whole, its checksum right, its offsets in order and within the segment."""
    walk = _Walk(segment)
    position, rest = 0, b""
    while position < segment.size and len(walk.problems) < _PROBLEMS_PER_SEGMENT_MAX:
        end = min(segment.size, position + max(_PIECE_BYTES, walk.wanted))
        try:
            piece = rest + bytes(await storage.fetch(segment, position, end))
        except ObjectError as error:
            return [*walk.problems, str(error)]
        position = end
        rest = walk.take(piece)
        if walk.lost:
            break
    if rest and not walk.lost:
        walk.problems.append(f"{len(rest)} bytes at the end are no whole batch")
    return walk.problems


class _Walk:
    """Over the batches of a segment, piece by piece."""

    def __init__(self, segment: RemoteSegment) -> None:
        self._segment = segment
        self._epochs = {epoch for epoch, _ in segment.epochs}
        self.next_offset = segment.start_offset
        self.problems: list[str] = []
        # Where the next batch begins cannot be told any more.
        self.lost = False
        # Bytes that the next piece should have at least.
        self.wanted = 0

    def take(self, piece: bytes) -> bytes:
        """Look at all whole batches; returns what is left."""
        view, at = memoryview(piece), 0
        self.wanted = 0
        while len(view) - at >= HEADER_BYTES and not self.lost:
            size = batch_size(view, at)
            if size < HEADER_BYTES or size > self._segment.size:
                self._fault(f"a batch of {size} bytes behind offset {self.next_offset - 1}")
                self.lost = True
                break
            if size > len(view) - at:
                self.wanted = size
                break
            self._look(view[at : at + size])
            at += size
        return bytes(view[at:])

    def _look(self, data: memoryview) -> None:
        batch = Batch(data)
        if batch.magic != MAGIC or batch.leader_epoch not in self._epochs:
            self._fault(
                f"a batch of version {batch.magic} and epoch {batch.leader_epoch} at offset"
                f" {batch.base_offset}"
            )
        if not batch.crc_ok():
            self._fault(f"the checksum of the batch at offset {batch.base_offset} is wrong")
        if batch.base_offset < self.next_offset or batch.last_offset > self._segment.end_offset:
            self._fault(
                f"a batch of offsets {batch.base_offset} to {batch.last_offset}"
                f" behind offset {self.next_offset - 1}"
            )
        self.next_offset = max(self.next_offset, batch.next_offset)

    def _fault(self, text: str) -> None:
        if len(self.problems) < _PROBLEMS_PER_SEGMENT_MAX:
            self.problems.append(text)
