"""Follows producers through the batches of a log, from a snapshot on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import Malformed, decode_snapshot
from skylog.log.files import Files
from skylog.log.markers import marker_of
from skylog.log.producers import ProducerEntry, Producers
from skylog.log.segment import Segment

_logger = get_logger("log")


def read_snapshot(files: Files, path: str) -> list[ProducerEntry] | None:
    """None if there is no valid one."""
    content = files.read_small(path, LOG_CHECKPOINT_BYTES_MAX)
    if content is None:
        return None
    try:
        return decode_snapshot(content)
    except Malformed as fault:
        _logger.warning("producer snapshot damaged", path=path, fault=str(fault))
        return None


def replay(
    producers: Producers,
    start: int,
    segments: Sequence[Segment],
    at_roll: Callable[[Producers, int], object] | None = None,
) -> None:
    """Apply what was written from ``start`` on; ``at_roll`` is called before each segment behind
    it."""
    for number, segment in enumerate(segments):
        following = segments[number + 1 : number + 2]
        if following and following[0].base_offset <= start:
            continue
        if at_roll is not None and start < segment.base_offset:
            at_roll(producers, segment.base_offset)
        position = segment.position_of(max(start, segment.base_offset), block=True)
        if position is None:
            continue
        for header, at in segment.headers(position, segment.size):
            if header.producer_id < 0:
                continue
            marker = None
            if header.is_control:
                marker = marker_of(segment.batch_at(at, header.size, block=True))
            producers.apply(header, marker)


def producers_at(
    offset: int,
    segments: Sequence[Segment],
    read: Callable[[int], Producers | None],
    known: Iterable[int],
) -> Producers:
    """Producers at the base of a segment: by the latest of the ``known`` snapshots that ``read``
    can, and the batches behind it."""
    earlier = [segment for segment in segments if segment.base_offset < offset]
    first = segments[0].base_offset
    for at in sorted(known, reverse=True):
        if first <= at <= offset:
            found = read(at)
            if found is not None:
                if at < offset:
                    replay(found, at, earlier)
                return found
    found = Producers()
    replay(found, first, earlier)
    return found
