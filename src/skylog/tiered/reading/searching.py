"""The first record of remote segments at or after a time. Pure."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

from skylog.kernel.ids import Uuid
from skylog.tiered.reading.needs import (
    DamagedSegmentError,
    FoundRecord,
    Need,
    Search,
    Segments,
    TimeSearch,
)
from skylog.tiered.reading.plan import epoch_of
from skylog.tiered.reading.scanning import Start, certain, offset_table, rebuild, scan, time_table
from skylog.tiered.reading.walk import Chunk, EpochWalk, joined
from skylog.tiered.segments import RemoteSegment, SegmentState
from skylog.wire.batch import Batch


def find_timestamp(
    remote: Segments, wanted: TimeSearch
) -> Generator[Need, object, FoundRecord | None]:
    for segment in candidates(remote, wanted):
        found = yield from _find_in(segment, wanted)
        if found is not None:
            return found
    return None


def candidates(remote: Segments, wanted: TimeSearch) -> list[RemoteSegment]:
    """The segments that may have such a record, by their start."""
    found: dict[Uuid, RemoteSegment] = {}
    first = epoch_of(wanted.epochs, wanted.offset_min)
    for epoch, _ in wanted.epochs:
        if epoch < first:
            continue
        for segment in remote.segments(epoch):
            if (
                segment.state is SegmentState.COPY_FINISHED
                and segment.max_timestamp_ms >= wanted.timestamp
                and segment.end_offset >= wanted.offset_min
                and segment.start_offset < wanted.local_start
            ):
                found[segment.id] = segment
    return sorted(found.values(), key=lambda segment: segment.start_offset)


def _find_in(
    segment: RemoteSegment, wanted: TimeSearch
) -> Generator[Need, object, FoundRecord | None]:
    times = yield from time_table(segment)
    offsets = yield from offset_table(segment)
    # An entry means: up to this offset no timestamp is larger.
    before = max(times.floor(wanted.timestamp)[1], wanted.offset_min)
    entry = offsets.floor(before)
    start = Start(entry[1], entry[0]) if entry else Start(0)
    try:
        found, chunks = yield from scan(segment, start.position)
        misled = not start.is_batch(chunks)
    except DamagedSegmentError:
        if offsets.is_rebuilt or start.named < 0:
            raise
        misled = True
    if misled:
        offsets, times = yield from rebuild(segment)
        start = certain(offsets, max(times.floor(wanted.timestamp)[1], wanted.offset_min))
        found, chunks = yield from scan(segment, start.position)
    while True:
        for batch, at in found:
            record = yield from _find_in_batch(chunks, batch, at, wanted)
            if record is not None:
                return record
        position = at + batch.size
        if position >= segment.size:
            return None
        found, chunks = yield from scan(segment, position)


def _find_in_batch(
    chunks: Sequence[Chunk], batch: Batch, position: int, wanted: TimeSearch
) -> Generator[Need, object, FoundRecord | None]:
    if batch.max_timestamp < wanted.timestamp or batch.last_offset < wanted.offset_min:
        return None
    if EpochWalk(wanted.epochs, batch.base_offset).epoch != batch.leader_epoch:
        return None
    whole = Batch(joined(chunks, position, position + batch.size))
    found = cast(
        "tuple[int, int] | None", (yield Search(whole, wanted.timestamp, wanted.offset_min))
    )
    return None if found is None else FoundRecord(found[1], found[0], batch.leader_epoch)
