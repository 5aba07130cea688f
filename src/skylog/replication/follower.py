"""The follower's side of a partition: where to fetch from, and what to truncate. Pure.

A fetch has the epoch of the follower's last record. A leader whose log has another end for that
epoch returns it instead of records: the *diverging epoch*. The follower truncates its log to where
both agree as far as it knows, and fetches again, until they do.

=============  ===============================================================================
the leader     the follower
=============  ===============================================================================
sends records  appends them; high watermark and log start follow
diverges       truncates its log (``truncation_offset``), fetches again at once
out of range   asks for the leader's start and end, truncates or starts over (``out_of_range``)
moved to       skips what is in the object store (``tier_state.py``)
tiered storage
another error  fetches again after ``replica.fetch.backoff.ms``
=============  ===============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

NO_EPOCH: Final = -1


class EpochEnd(NamedTuple):
    """The end of an epoch in a log: the offset after its last record."""

    epoch: int
    end_offset: int


class EpochLog(Protocol):
    """What is needed of a follower's log."""

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def latest_epoch(self) -> int: ...

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]: ...


def truncation_offset(log: EpochLog, leader: EpochEnd) -> int:
    """Where to truncate if the leader's log has ``leader`` for the epoch of our request."""
    end_offset = log.log_end_offset
    if leader.end_offset < 0:
        return min(log.high_watermark, end_offset)
    epoch, epoch_end = log.epoch_end_offset(leader.epoch)
    if epoch == NO_EPOCH:
        return min(leader.end_offset, end_offset)
    if epoch != leader.epoch:
        # We do not have that epoch: keep the records of earlier ones, and ask about the last of
        # them.
        return min(epoch_end, end_offset)
    return min(epoch_end, leader.end_offset, end_offset)


class Reset(NamedTuple):
    """What to do with a log whose end the leader does not have."""

    offset: int
    # Everything is older than the leader's log: nothing of it is kept.
    fully: bool


def out_of_range(end_offset: int, leader_start: int, leader_end: int) -> Reset:
    """Where to continue if the leader has no ``end_offset``."""
    if leader_end < end_offset:
        return Reset(leader_end, fully=False)
    if leader_start > end_offset:
        return Reset(leader_start, fully=True)
    return Reset(end_offset, fully=False)


@dataclass(slots=True)
class FetchState:
    """One partition that is being fetched."""

    leader_epoch: int
    offset: int
    last_epoch: int
    # The end of the pause after an error.
    ready_ms: int = 0
    # The lag behind the leader's high watermark; None until it is known.
    lag: int | None = None

    @property
    def in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0

    def advance(self, log: EpochLog, leader_high_watermark: int) -> None:
        """Continue at the log's end."""
        self.offset = log.log_end_offset
        self.last_epoch = log.latest_epoch
        self.lag = max(leader_high_watermark - self.offset, 0)

    def restart(self, log: EpochLog) -> None:
        """Continue at the log's end, after it was truncated."""
        self.offset = log.log_end_offset
        self.last_epoch = log.latest_epoch
