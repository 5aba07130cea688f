"""Pure: which remote segments of a partition are old enough to let go of the WAL below them.

A segment counts when this broker has had it as finished for the delay, on its own monotonic clock:
by then other brokers have heard of it, and backups have it. Times that others wrote say nothing.
"""

from __future__ import annotations

from collections import deque
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.kernel.limits import PRUNED_SEGMENTS_PER_PASS_MAX

if TYPE_CHECKING:
    from collections.abc import Collection

    from skylog.tiered.metadata.intervals import Interval
    from skylog.tiered.metadata.machine import RemoteLog

# Notes are not taken more often than this part of the delay: then there are few of them.
_NOTES_PER_DELAY: Final = 16
_ABOVE_ALL: Final = 2**63 - 1


class _Note(NamedTuple):
    """At this time, all segments up to this rank were finished."""

    at: float
    rank: int


class Ripening:
    """What one broker knows of one partition's remote log over time."""

    __slots__ = ("_ceiling", "_notes", "_remote")

    def __init__(self) -> None:
        self._notes: deque[_Note] = deque()
        # Ranks are those of one remote log; the metadata topic may be read again into another.
        self._remote: RemoteLog | None = None
        self._ceiling = _ABOVE_ALL

    def note(self, remote: RemoteLog, now: float, delay_seconds: float) -> None:
        """Must be called in each pass: what is there now will have been there since now."""
        if self._remote is not remote:
            self._remote = remote
            self._notes.clear()
        notes = self._notes
        if not notes or now - notes[-1].at >= delay_seconds / _NOTES_PER_DELAY:
            notes.append(_Note(now, remote.finished))
        # Of those that are old enough, the newest one says all.
        while len(notes) > 1 and now - notes[1].at >= delay_seconds:
            notes.popleft()

    def contradicted(self, high_watermark: int) -> bool:
        """There are segments above the high watermark, which was asked for after they were seen:
        of another history than the coordinator's, which may have been restored. What it commits
        from here on is not what they have, so nothing of that is ever pruned. True if it is new."""
        is_new = high_watermark < self._ceiling
        self._ceiling = min(self._ceiling, high_watermark)
        return is_new

    def ripe(
        self, epoch: int, wal_start: int, high_watermark: int, now: float, delay_seconds: float
    ) -> list[Interval]:
        """The first segments from the WAL start on, without a gap, that are old enough."""
        if self._remote is None or now - self._notes[0].at < delay_seconds:
            return []
        rank, end = self._notes[0].rank, min(high_watermark, self._ceiling)
        run = islice(self._remote.run(epoch, wal_start), PRUNED_SEGMENTS_PER_PASS_MAX)
        return list(takewhile(lambda one: one.rank <= rank and one.end < end, run))


def target(ripe: Collection[Interval], checked: Collection[bytes]) -> int | None:
    """Up to where the WAL may go: all segments below were read back; None if the first was not."""
    end = None
    for interval in ripe:
        if interval.id not in checked:
            break
        end = interval.end + 1
    return end
