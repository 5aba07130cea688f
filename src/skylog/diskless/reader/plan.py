"""Which ranges of which objects a fetch needs. Pure.

For each partition at most one range of an object: its batches are adjacent there. Ranges of one
object that touch or nearly touch are read together: a request costs more than the bytes between
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from skylog.diskless.batch import BatchCoordinate

# A gap of up to this many bytes is cheaper to read than to skip.
GAP_BYTES_MAX: Final = 64 * 1024


class Range(NamedTuple):
    """Bytes of one object."""

    key: str
    start: int
    end: int


def ranges_of(
    partitions: Iterable[Iterable[BatchCoordinate]], gap_bytes_max: int = GAP_BYTES_MAX
) -> list[Range]:
    """The ranges to read for the batches of several partitions, by object and position."""
    wanted: set[Range] = set()
    for coordinates in partitions:
        by_object: dict[str, tuple[int, int]] = {}
        for found in coordinates:
            key, start, size = found.extent
            low, high = by_object.get(key, (start, start))
            by_object[key] = min(low, start), max(high, start + size)
        wanted |= {Range(key, low, high) for key, (low, high) in by_object.items()}
    return merged(sorted(wanted), gap_bytes_max)


def merged(ranges: Iterable[Range], gap_bytes_max: int = GAP_BYTES_MAX) -> list[Range]:
    """Join neighbours; ``ranges`` are sorted."""
    joined: list[Range] = []
    for one in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.key == one.key and one.start - last.end <= gap_bytes_max:
            joined[-1] = Range(one.key, last.start, max(last.end, one.end))
        else:
            joined.append(one)
    return joined


def runs_of(batches: Sequence[BatchCoordinate]) -> Sequence[BatchCoordinate]:
    """Joins batches that are adjacent in their partition and in their object under one coordinate,
    so that they are handled together."""
    if len(batches) <= 1:
        return batches
    runs: list[BatchCoordinate] = []
    first = last = batches[0]
    # The properties that the next batch needs in order to follow.
    follows = first.extent.object_key, -1, -1, -1, -1
    for batch in batches:
        key, start, size = batch.extent
        base_offset, last_offset, appended_ms, _, kind, _ = batch.stamp
        if (key, start, base_offset, appended_ms, kind) != follows and batch is not first:
            runs.append(_run(first, last))
            first = batch
        last = batch
        follows = key, start + size, last_offset + 1, appended_ms, kind
    runs.append(_run(first, last))
    return runs


def _run(first: BatchCoordinate, last: BatchCoordinate) -> BatchCoordinate:
    if first is last:
        return first
    return first._replace(
        extent=first.extent._replace(byte_size=last.extent.end - first.extent.byte_offset),
        stamp=first.stamp._replace(last_offset=last.stamp.last_offset),
    )
