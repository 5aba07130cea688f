"""What a log tells of a closed segment to those that copy it."""

from __future__ import annotations

from typing import NamedTuple


class ClosedSegment(NamedTuple):
    """A rolled segment and the paths of its files; nothing is appended to it any more."""

    base_offset: int
    # The base of the segment behind it.
    next_offset: int
    size: int
    max_timestamp: int
    log: str
    offset_index: str
    time_index: str
    # None: no transaction was aborted.
    transaction_index: str | None
    # The producers' state as of ``next_offset``.
    producer_snapshot: str
