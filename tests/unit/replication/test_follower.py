"""Where a follower truncates its log, and where it resumes."""

from __future__ import annotations

import pytest

from skylog.log.epochs import LeaderEpochs
from skylog.replication.follower import (
    EpochEnd,
    FetchState,
    Reset,
    out_of_range,
    truncation_offset,
)


class Log:
    """Epochs ``(epoch, start)`` up to an end."""

    def __init__(self, end: int, *epochs: tuple[int, int], high_watermark: int = 0) -> None:
        self.log_end_offset = end
        self.high_watermark = high_watermark
        self._epochs = LeaderEpochs(epochs)

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self._epochs.end_of(epoch, self.log_end_offset)


@pytest.mark.parametrize(
    ("log", "leader", "offset"),
    [
        # The leader's epoch ended earlier, or later, than ours.
        (Log(20, (1, 0), (2, 10)), EpochEnd(2, 15), 15),
        (Log(20, (1, 0), (2, 10)), EpochEnd(1, 12), 10),
        (Log(20, (1, 0), (2, 10)), EpochEnd(1, 7), 7),
        # We do not know its epoch: truncate to the end of the one before, and ask again.
        (Log(20, (1, 0), (3, 10)), EpochEnd(2, 15), 10),
        # Our log is shorter than all of it.
        (Log(5, (1, 0)), EpochEnd(1, 9), 5),
        # It knows nothing so old, or we know no epoch at all.
        (Log(20, (3, 0)), EpochEnd(1, 12), 0),
        (Log(20), EpochEnd(1, 12), 12),
        (Log(20, (1, 0), high_watermark=4), EpochEnd(-1, -1), 4),
    ],
)
def test_where_a_log_is_cut(log: Log, leader: EpochEnd, offset: int) -> None:
    assert truncation_offset(log, leader) == offset


def test_where_to_go_on_when_the_leader_has_no_such_offset() -> None:
    assert out_of_range(20, leader_start=0, leader_end=15) == Reset(15, fully=False)
    assert out_of_range(20, leader_start=30, leader_end=45) == Reset(30, fully=True)
    assert out_of_range(20, leader_start=10, leader_end=45) == Reset(20, fully=False)
    assert out_of_range(20, leader_start=20, leader_end=20) == Reset(20, fully=False)


def test_how_far_a_follower_is() -> None:
    state = FetchState(leader_epoch=3, offset=0, last_epoch=-1)
    assert not state.in_sync
    state.advance(Log(7, (2, 0)), leader_high_watermark=10)
    assert (state.offset, state.last_epoch, state.lag, state.in_sync) == (7, 2, 3, False)
    state.advance(Log(12, (2, 0), (3, 8)), leader_high_watermark=10)
    assert (state.offset, state.last_epoch, state.lag, state.in_sync) == (12, 3, 0, True)
    state.restart(Log(8, (2, 0)))
    assert (state.offset, state.last_epoch) == (8, 2)
