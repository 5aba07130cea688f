"""Rebuilds a segment that may not be complete on disk, and its indexes, from its batches."""

from __future__ import annotations

from typing import Final

from skylog.log.epochs import LeaderEpochs
from skylog.log.files import Files
from skylog.log.markers import marker_of
from skylog.log.producers import Producers
from skylog.log.segment import RELATIVE_OFFSET_MAX, Segment
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, Batch, batch_size

_SCAN_BYTES: Final = 1 << 20


def rebuild(
    segment: Segment, files: Files, epochs: LeaderEpochs, producers: Producers
) -> tuple[int, int]:
    """Read a segment with its checksums, rebuild its indexes, truncate it at the first bad batch.

    ``producers`` are those before it. Returns the truncated bytes and the offset after the last
    good batch.
    """
    segment.create_indexes()
    segment.reset_indexes()
    segment.aborted.reset()
    position, next_offset = 0, segment.base_offset
    window, window_at = memoryview(b""), 0
    while position < segment.size:
        at = position - window_at
        left = segment.size - position
        size = batch_size(window, at) if len(window) - at >= LOG_OVERHEAD else 0
        if len(window) - at < max(size, HEADER_BYTES):
            if left < HEADER_BYTES or size > left:
                break
            window = files.read(segment.log_path, position, min(left, max(size, _SCAN_BYTES)))
            window_at, at = position, 0
            if len(window) < min(left, HEADER_BYTES):
                break
            size = batch_size(window, 0)
            if len(window) < size <= left:
                continue  # a batch larger than the window: read it whole
        batch = _good_batch(window[at : at + size], size, next_offset, segment.base_offset)
        if batch is None:
            break
        segment.note(batch, position)
        _follow(producers, batch, segment)
        if batch.leader_epoch > epochs.latest:
            epochs.assign(batch.leader_epoch, batch.base_offset)
        position += size
        next_offset = batch.next_offset
    cut = segment.size - position
    segment.size = position
    if cut:
        segment.cut_torn()
    segment.finish_indexes()
    return cut, next_offset


def _follow(producers: Producers, batch: Batch, segment: Segment) -> None:
    if batch.producer_id < 0:
        return
    done = producers.apply(batch, marker_of(batch) if batch.is_control else None)
    if done is not None and done.aborted:
        segment.note_aborted(done)


def _good_batch(buffer: memoryview, size: int, next_offset: int, base_offset: int) -> Batch | None:
    """The batch, if it is complete, of our format, undamaged and at its place."""
    if size < HEADER_BYTES or len(buffer) < size:
        return None
    batch = Batch(buffer)
    in_place = (
        batch.base_offset >= next_offset
        and batch.last_offset_delta >= 0
        and batch.last_offset - base_offset <= RELATIVE_OFFSET_MAX
    )
    return batch if batch.magic == MAGIC and in_place and batch.crc_ok() else None
