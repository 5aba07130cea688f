"""How a read of remote segments goes on, step by step. Pure.

A read is a generator. It yields what it needs next (an index, bytes of a segment), is sent that
from memory, a disk or the store, and returns the answer. So the same steps serve a read that has
everything at hand and one that waits for a bucket, and tests play them against a model.

    segment of (epoch of the offset in the lineage, offset)    none: a hole
      → position: where the last read ended, the segment's start, or by its offset index
      → bytes → whole batches within the lineage → aborted transactions, if asked for
    bytes that are wrong: forgotten and asked for once more; then, if only an index led there, the
    index is rebuilt from the segment; then the read fails
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Generator, Sequence
from typing import Final, cast

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.aborted import AbortedTransaction
from skylog.log.checkpoints import EpochStart
from skylog.tiered.reading.needs import (
    DamagedSegmentError,
    Forget,
    HoleError,
    Index,
    Need,
    RemoteData,
    RemoteRead,
    Segments,
)
from skylog.tiered.reading.scanning import Start, bytes_of, certain, offset_table, rebuild
from skylog.tiered.reading.tables import AbortedTable
from skylog.tiered.reading.walk import Bounds, Chunk, EpochWalk, Stop, Walk, Walked, slices
from skylog.tiered.segments import IndexType, RemoteSegment
from skylog.wire.batch import HEADER_BYTES
from skylog.wire.buffers import Buffer

# Positions that are remembered for readers that go on.
HINTS_MAX: Final = 4096
# An answer keeps at most this many times its size in memory.
USED_SHARE: Final = 4


class Hints:
    """Where batches begin that readers asked for next: who reads on needs no index."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: OrderedDict[tuple[Uuid, int], int] = OrderedDict()

    def get(self, segment: RemoteSegment, offset: int) -> int | None:
        return self._positions.get((segment.id, offset))

    def put(self, segment: RemoteSegment, offset: int, position: int) -> None:
        self._positions[segment.id, offset] = position
        if len(self._positions) > HINTS_MAX:
            self._positions.popitem(last=False)


# --- By offset ------------------------------------------------------------------------------------


def epoch_of(epochs: Sequence[EpochStart], offset: int) -> int:
    """The lineage's epoch; REPLICA_NOT_AVAILABLE while epochs that old are not known here."""
    slot = bisect_right(epochs, offset, key=lambda entry: entry[1]) - 1
    if slot < 0:
        raise KafkaError(
            ErrorCode.REPLICA_NOT_AVAILABLE, f"the leader epoch of offset {offset} is unknown"
        )
    return epochs[slot][0]


def segment_at(remote: Segments, wanted: RemoteRead, offset: int) -> RemoteSegment | None:
    return remote.segment_for(epoch_of(wanted.epochs, offset), offset)


def read(
    remote: Segments, wanted: RemoteRead, hints: Hints
) -> Generator[Need, object, tuple[RemoteData, RemoteSegment, int, int]]:
    """The answer, and the segment and positions that it came from."""
    offset = wanted.offset
    segment = segment_at(remote, wanted, offset)
    if segment is None:
        raise HoleError(wanted.partition, offset)
    while True:
        data, begin, end = yield from _read_segment(segment, wanted, offset, hints)
        if data.size or data.next_offset == offset:
            break
        # Compaction, before it was switched off, may have removed the end of a segment.
        offset = data.next_offset
        following = segment_at(remote, wanted, offset)
        if following is None:
            return data, segment, begin, end
        segment = following
    if wanted.read_committed and data.size:
        # As in Kafka, a batch that does not fit counts up to the limit.
        reached = min(begin + max(data.size, wanted.bytes_max), segment.size)
        data = yield from _with_aborted(remote, wanted, segment, data, reached)
    return data, segment, begin, end


def _read_segment(
    segment: RemoteSegment, wanted: RemoteRead, offset: int, hints: Hints
) -> Generator[Need, object, tuple[RemoteData, int, int]]:
    start = yield from _start(segment, offset, hints)
    bounds = Bounds(offset, wanted.bytes_max, wanted.min_one)
    room = max(wanted.bytes_max, HEADER_BYTES)
    end = min(start.position + room, segment.size)
    is_second = False
    while True:
        chunks = yield from bytes_of(segment, start.position, end)
        if start.is_batch(chunks):
            lineage = EpochWalk(wanted.epochs, offset)
            walked = Walk(segment, chunks, start.position, bounds, lineage).run()
            if walked.stop is Stop.BYTES and walked.first_offset < 0:
                end = walked.needed
                continue
            is_wrong = walked.stop is Stop.DAMAGE or (walked.stop is Stop.LINEAGE and not is_second)
            if not is_wrong or walked.first_offset >= 0:
                break
        if not is_second:
            is_second = True
            yield Forget(segment, start.position, end)
        elif start.named < 0:
            raise DamagedSegmentError(segment, f"batch at {start.position}")
        else:  # perhaps only the index is wrong
            table, _ = yield from rebuild(segment)
            start = certain(table, offset)
            end = min(start.position + room, segment.size)
    if walked.stop is Stop.DAMAGE:
        yield Forget(segment, walked.end, walked.end + 1)  # its next reader gets it anew
    return _answer(segment, wanted, offset, chunks, walked, hints)


def _answer(
    segment: RemoteSegment,
    wanted: RemoteRead,
    offset: int,
    chunks: Sequence[Chunk],
    walked: Walked,
    hints: Hints,
) -> tuple[RemoteData, int, int]:
    begin, end = walked.begin, walked.end
    if walked.first_offset >= 0:
        hints.put(segment, walked.next_offset, end)
        parts: list[Buffer] = list(slices(chunks, begin, end))
        if (end - begin) * USED_SHARE < sum(len(chunk.data) for chunk in chunks):
            # The client may take its time to read so little: it does not keep whole chunks alive.
            parts = [b"".join(parts)]
        data = RemoteData(parts, end - begin, walked.first_offset, walked.next_offset)
        return data, begin, end
    if walked.stop is Stop.LINEAGE:
        raise HoleError(wanted.partition, offset)
    following = segment.end_offset + 1 if walked.stop is Stop.SEGMENT else offset
    return RemoteData((), 0, -1, following), begin, end


def _start(segment: RemoteSegment, offset: int, hints: Hints) -> Generator[Need, object, Start]:
    position = hints.get(segment, offset)
    if position is not None:
        return Start(position)
    if offset <= segment.start_offset:
        return Start(0)
    table = yield from offset_table(segment)
    entry = table.floor(offset)
    if entry is None or table.is_rebuilt:
        return certain(table, offset)
    return Start(entry[1], entry[0])


# --- Aborted transactions -------------------------------------------------------------------------


def _with_aborted(
    remote: Segments, wanted: RemoteRead, segment: RemoteSegment, data: RemoteData, reached: int
) -> Generator[Need, object, RemoteData]:
    """Those of the segment, of later ones while that may add some, and up to the next entry of the
    offset index behind the answer."""
    offsets = yield from offset_table(segment)
    bound = offsets.ceiling_position(reached)
    end = segment.end_offset + 1 if bound is None else bound
    start = data.first_offset
    found: dict[AbortedTransaction, None] = {}
    current: RemoteSegment | None = segment
    if segment.txn_index_empty:
        current = _next_with_aborted(remote, wanted.epochs, segment.end_offset + 1)
    while current is not None:
        table = cast("AbortedTable | None", (yield Index(current, IndexType.TRANSACTION)))
        if table is None:
            # Without it, no transaction may be taken for committed.
            raise DamagedSegmentError(current, "transaction index")
        if table.collect(start, end, found):
            return data._replace(aborted=list(found))
        current = _next_with_aborted(remote, wanted.epochs, current.end_offset + 1)
    return data._replace(aborted=list(found), aborted_from=start, aborted_to=end)


def _next_with_aborted(
    remote: Segments, epochs: Sequence[EpochStart], offset: int
) -> RemoteSegment | None:
    first = max(bisect_right(epochs, offset, key=lambda entry: entry[1]) - 1, 0)
    for epoch, start in epochs[first:]:
        found = remote.next_with_txn_index(epoch, max(offset, start))
        if found is not None and found.end_offset >= offset:
            return found
    return None
