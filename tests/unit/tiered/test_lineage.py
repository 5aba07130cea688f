"""What of the object store belongs to a log; the cases of Kafka's RemoteLogManagerTest."""

from __future__ import annotations

import pytest

from skylog.log.epochs import LeaderEpochs
from skylog.tiered.lineage import Lineage
from skylog.tiered.segments import SegmentState
from tests.unit.tiered.remote_records import History, segment

LEADER = ((0, 0), (1, 10), (2, 20), (7, 30), (9, 40))


@pytest.mark.parametrize(
    ("start", "end", "epochs", "log_end", "within"),
    [
        (5, 9, ((0, 5),), 100, True),
        (5, 15, ((0, 5), (1, 10)), 100, True),
        (15, 35, ((1, 15), (2, 20), (7, 30)), 100, True),
        (45, 99, ((9, 45),), 100, True),
        # Ends behind the log.
        (45, 100, ((9, 45),), 100, False),
        # Epochs that this log never had.
        (15, 35, ((1, 15), (3, 20)), 100, False),
        (15, 19, ((8, 15),), 100, False),
        (45, 50, ((10, 45),), 100, False),
        # An epoch that begins elsewhere.
        (15, 35, ((1, 15), (2, 21), (7, 30)), 100, False),
        # An epoch left out.
        (15, 35, ((1, 15), (7, 30)), 100, False),
        # Runs on where the log went over to another epoch.
        (5, 10, ((0, 5),), 100, False),
        (15, 30, ((1, 15), (2, 20)), 100, False),
        # Begins before its epoch does in this log.
        (5, 15, ((1, 5),), 100, False),
        # An epoch without records does not matter.
        (15, 25, ((0, 15), (1, 15), (2, 20)), 100, True),
        (15, 25, ((1, 15), (2, 20)), 100, True),
    ],
)
def test_segments_within_the_leader_epochs(
    start: int, end: int, epochs: tuple, log_end: int, within: bool
) -> None:
    lineage = Lineage(LeaderEpochs(LEADER), log_end)
    assert lineage.contains(segment(1, start, end, epochs)) is within


def test_a_segment_that_reaches_below_the_first_epoch_of_the_log_is_within() -> None:
    """Expiry cut the epochs at 51; the overlapping segment began at 14 in an older one."""
    lineage = Lineage([(7, 51), (9, 100)], 210)
    assert lineage.contains(segment(2, 14, 150, ((5, 14), (7, 15), (9, 100))))
    assert not lineage.contains(segment(1, 5, 14, ((5, 5),)))
    assert not lineage.contains(segment(3, 14, 150, ((5, 14), (6, 15), (9, 90))))


def test_segments_of_a_log_without_epochs() -> None:
    assert not Lineage([], 100).contains(segment(1, 0, 9))


def test_epochs_of_offsets() -> None:
    lineage = Lineage([(1, 10), (4, 20)], 30)
    assert [lineage.epoch_of(offset) for offset in (9, 10, 19, 20, 29, 30)] == [
        None,
        1,
        1,
        4,
        4,
        None,
    ]
    assert [tuple(run) for run in lineage] == [(4, 20, 30), (1, 10, 20)]
    assert (lineage.earliest_epoch, lineage.latest_epoch) == (1, 4)


def test_the_highest_remote_offset_is_bounded_by_the_log() -> None:
    history = History()
    assert Lineage([(0, 0)], 50).highest_remote_offset(history.log) == (-1, -1)
    history.copied(segment(1, 0, 99))
    assert Lineage([(0, 0)], 200).highest_remote_offset(history.log) == (99, 0)
    # An unclean election: this log left epoch 0 at 50.
    assert Lineage([(0, 0), (1, 50)], 200).highest_remote_offset(history.log) == (49, 0)
    assert Lineage([(3, 0)], 200).highest_remote_offset(history.log) == (-1, -1)


def test_the_log_start_of_records_goes_before_kafkas_rule() -> None:
    history = History()
    lineage = Lineage([(0, 0)], 300)
    assert lineage.log_start_from(history.log, 7) == -1
    first, second = segment(1, 10, 99), segment(2, 100, 199)
    history.copied(first, second)
    assert lineage.log_start_from(history.log, 200) == 10
    # What is local is there though it was never copied.
    assert lineage.log_start_from(history.log, 5) == 5
    history.update(first, SegmentState.DELETE_STARTED)
    assert lineage.log_start_from(history.log, 200) == 100
    history.update(second, SegmentState.DELETE_STARTED)
    assert lineage.log_start_from(history.log, 200) == 200
    history.update(first, SegmentState.DELETE_STARTED, epoch=1, log_start=150)
    assert lineage.log_start_from(history.log, 140) == 150
