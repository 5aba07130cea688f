"""Finds the last batches of producers in the log.

A snapshot has only the last batch of each producer, but a producer that lost its connection may
repeat several: after a clean shutdown these would be out of sequence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from skylog.kernel.errors import KafkaError
from skylog.log.producers import REMEMBERED_BATCHES, Producers, RememberedBatch
from skylog.log.segment import Segment

# How far back to search: at least this many batches, or the bytes between this many index entries.
_INDEX_ENTRIES: Final = 64


def recall_batches(producers: Producers, segments: Sequence[Segment], end: int) -> None:
    """Add batches before ``end``, the offset of the snapshot of ``producers``. Blocks."""
    if not len(producers):
        return
    found: dict[int, list[RememberedBatch]] = {}
    # Two segments, as the last one may have just begun.
    for segment in [one for one in segments if one.base_offset < end and one.size][-2:]:
        # Damage is reported when it is read by a client; here it only ends the search.
        with contextlib.suppress(KafkaError):
            _look_through(producers, segment, end, found)
    for producer_id, earlier in found.items():
        entry = producers.get(producer_id)
        if entry is not None:
            entry.batches = (*earlier, *entry.batches)[-REMEMBERED_BATCHES:]


def _look_through(
    producers: Producers, segment: Segment, end: int, found: dict[int, list[RememberedBatch]]
) -> None:
    for header, _ in segment.headers(_begin(segment, end), segment.size):
        if header.base_offset >= end:
            return
        entry = producers.get(header.producer_id)
        if entry is None or header.is_control or header.producer_epoch != entry.epoch:
            continue
        if header.last_offset < entry.last_offset:
            known = RememberedBatch(
                header.last_sequence,
                header.last_offset,
                header.last_offset_delta,
                header.max_timestamp,
            )
            found.setdefault(header.producer_id, []).append(known)


def _begin(segment: Segment, end: int) -> int:
    """The position of a batch some distance before ``end``."""
    index = segment.offset_index(block=True)
    slot = index.slot_at_most(end - 1 - segment.base_offset, 0) - _INDEX_ENTRIES
    return index.at(slot)[1] if slot > 0 else 0
