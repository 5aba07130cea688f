"""The remote log of a partition: states, the fence, overlaps, and what hostile records do."""

from __future__ import annotations

from itertools import permutations

import pytest

from skylog.kernel.ids import ZERO_UUID
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.records import partition_deleted, segment_started
from skylog.tiered.segments import PartitionDeleteState, SegmentState, TopicIdPartition
from skylog.wire.messages.metadata_request import MetadataRequest
from tests.unit.tiered.remote_records import PARTITION, TOPIC, TOPIC_ID, History, segment, update

STARTED = SegmentState.COPY_STARTED
FINISHED = SegmentState.COPY_FINISHED
DELETING = SegmentState.DELETE_STARTED
DELETED = SegmentState.DELETE_FINISHED


def test_metadata_partitions_are_those_of_kafka() -> None:
    found = [metadata_partition(TopicIdPartition(TOPIC_ID, index), 50) for index in range(12)]
    assert found == [9, 49, 25, 46, 8, 10, 4, 43, 45, 8, 37, 30]
    assert metadata_partition(TopicIdPartition(ZERO_UUID, 0), 50) == 6


def test_only_finished_segments_are_read() -> None:
    history = History()
    one = segment(1, 0, 99)
    history.started(one)
    assert history.log.segment_for(0, 50) is None
    assert [found.state for found in history.log.unfinished()] == [STARTED]
    history.finished(one)
    found = history.log.segment_for(0, 50)
    assert found is not None
    assert (found.id, found.state, found.broker_id, found.event_timestamp_ms) == (
        one.id,
        FINISHED,
        2,
        2000,
    )
    assert history.log.finished_bytes == 100
    history.update(one, DELETING)
    assert history.log.segment_for(0, 50) is None
    assert [found.state for found in history.log.segments(0)] == [DELETING]
    history.update(one, DELETED)
    assert not list(history.log.all())
    assert history.log.finished_bytes == 0
    # What was copied is remembered, as Kafka does.
    assert history.log.highest_offset(0) == 99


def test_a_segment_that_finishes_late_hides_no_longer_one() -> None:
    """Kafka finds nothing at 150 then, and a consumer is told that the offset is out of range."""
    history = History()
    old, new = segment(1, 0, 100), segment(2, 0, 200)
    history.started(old)
    history.started(new)
    history.finished(new)
    history.finished(old)
    for offset in (0, 100, 101, 200):
        found = history.log.segment_for(0, offset)
        assert found is not None
        assert found.id == new.id
    history.deleted(new)
    found = history.log.segment_for(0, 100)
    assert found is not None
    assert found.id == old.id
    assert history.log.segment_for(0, 101) is None


def test_of_equal_segments_the_one_finished_last_is_read() -> None:
    for order in permutations(range(3)):
        history = History()
        segments = [segment(number, 0, 9) for number in range(3)]
        for one in segments:
            history.started(one)
        for number in order:
            history.finished(segments[number])
        found = history.log.segment_for(0, 5)
        assert found is not None
        assert found.id == segments[order[-1]].id


def test_the_update_of_an_older_leader_is_void() -> None:
    history = History()
    old, new = segment(1, 0, 99, copier_epoch=3), segment(2, 0, 99, copier_epoch=4)
    assert history.started(old) is Outcome.EFFECTIVE
    assert history.started(new) is Outcome.EFFECTIVE
    assert history.finished(old, epoch=3) is Outcome.VOID
    assert history.log.segment_for(0, 5) is None
    assert history.finished(new, epoch=4) is Outcome.EFFECTIVE
    assert history.log.fence == 4
    # The new one cleans up.
    history.deleted(old, epoch=4)
    assert [found.id for found in history.log.all()] == [new.id]


def test_a_segment_begun_below_the_fence_is_listed_but_its_writer_may_not_go_on() -> None:
    history = History()
    history.started(segment(1, 0, 99, copier_epoch=4), log_start=0)
    late = segment(2, 100, 199, copier_epoch=3)
    assert history.started(late, log_start=100) is Outcome.VOID
    assert [found.copier_epoch for found in history.log.unfinished()] == [4, 3]
    # A log start that only a deposed leader moved to is none.
    assert history.log.log_start == 0


def test_records_of_kafka_are_never_void_and_raise_nothing() -> None:
    history = History()
    history.started(segment(1, 0, 99, copier_epoch=7))
    history.copied(segment(2, 100, 199))
    assert history.log.fence == 7
    assert history.log.segment_for(0, 150) is not None


def test_any_record_raises_the_fence_even_one_that_does_nothing() -> None:
    history = History()
    one = segment(1, 0, 99, copier_epoch=1)
    history.started(one)
    assert history.finished(segment(9, 0, 99), epoch=5) is Outcome.UNKNOWN
    assert history.finished(one, epoch=1) is Outcome.VOID


def test_the_log_start_is_the_greatest_of_effective_records() -> None:
    history = History()
    one = segment(1, 0, 99, copier_epoch=2)
    assert history.log.log_start == -1
    history.started(one, log_start=10)
    history.finished(one, epoch=2)
    history.update(one, DELETING, epoch=2, log_start=100)
    assert history.log.log_start == 100
    history.started(segment(2, 100, 199, copier_epoch=2), log_start=50)
    assert history.log.log_start == 100
    history.update(one, DELETED, epoch=1, log_start=500)
    assert history.log.log_start == 100


def test_a_claim_is_accepted_and_forgotten() -> None:
    history = History()
    claim = segment(1, 10, 10, ((5, 10),), size=0, copier_epoch=5)
    assert history.started(claim, log_start=10) is Outcome.EFFECTIVE
    history.deleted(claim, epoch=5)
    assert (len(history.log), history.log.fence) == (0, 5)


TRANSITIONS = {
    (): {STARTED},
    (STARTED,): {STARTED, FINISHED, DELETING},
    (FINISHED,): {FINISHED, DELETING},
    (DELETING,): {DELETING, DELETED},
    (DELETED,): {STARTED, DELETED},
}
WAYS = {
    (): (),
    (STARTED,): (STARTED,),
    (FINISHED,): (STARTED, FINISHED),
    (DELETING,): (STARTED, DELETING),
    (DELETED,): (STARTED, DELETING, DELETED),
}


@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("state", SegmentState)
def test_states_follow_each_other_as_in_kafka(before: tuple, state: SegmentState) -> None:
    history = History()
    one = segment(1, 0, 99)
    for step in WAYS[before]:
        history.started(one) if step is STARTED else history.update(one, step)
    kept = list(history.log.all())
    outcome = history.started(one) if state is STARTED else history.update(one, state)
    if state in TRANSITIONS[before] or (state is DELETED and before == ()):
        assert outcome is Outcome.EFFECTIVE
    else:
        assert outcome in {Outcome.INVALID, Outcome.UNKNOWN}
        assert list(history.log.all()) == kept


def test_an_update_never_begins_a_segment() -> None:
    history = History()
    one = segment(1, 0, 99)
    assert history.update(one, STARTED) is Outcome.UNKNOWN
    history.started(one)
    assert history.update(one, STARTED) is Outcome.INVALID


@pytest.mark.parametrize(
    "changes",
    [
        {"start_offset": -1},
        {"start_offset": 100},
        {"segment_size_in_bytes": -1},
        {"segment_leader_epochs": []},
        {"remote_log_segment_state": 1},
        {"remote_log_segment_state": 9},
    ],
)
def test_segments_that_cannot_be_change_nothing(changes: dict[str, object]) -> None:
    history = History()
    record = segment_started(segment(1, 0, 99))
    for name, value in changes.items():
        setattr(record, name, value)
    assert history.add(record) is Outcome.INVALID
    assert not len(history.log)


@pytest.mark.parametrize(
    "epochs", [((1, 0), (1, 5)), ((2, 0), (1, 5)), ((0, 5), (1, 3)), ((0, 0), (1, 100)), ((-1, 0),)]
)
def test_epochs_that_do_not_ascend_are_refused(epochs: tuple[tuple[int, int], ...]) -> None:
    assert History().started(segment(1, 0, 99, epochs)) is Outcome.INVALID


def test_unknown_states_and_foreign_messages_change_nothing() -> None:
    history = History()
    one = segment(1, 0, 99)
    history.started(one)
    record = update(one, FINISHED)
    record.remote_log_segment_state = 17  # type: ignore[attr-defined]
    assert history.add(record) is Outcome.INVALID
    assert history.add(MetadataRequest()) is Outcome.INVALID
    deletion = partition_deleted(
        TOPIC, PARTITION, PartitionDeleteState.MARKED, broker_id=1, now_ms=1
    )
    deletion.remote_partition_delete_state = 5
    assert history.add(deletion) is Outcome.INVALID
    assert [found.state for found in history.log.all()] == [STARTED]


def test_a_partition_is_deleted_in_kafkas_steps() -> None:
    for states, expected in {
        (0, 1, 2): 2,
        (0, 0, 1, 1, 2, 2): 2,
        (1,): None,
        (2,): None,
        (0, 2): 0,
        (0, 1, 0): 1,
    }.items():
        history = History()
        for state in states:
            history.add(
                partition_deleted(
                    TOPIC, PARTITION, PartitionDeleteState(state), broker_id=1, now_ms=1
                )
            )
        assert history.log.delete_state == expected, states


def test_records_before_what_is_applied_are_not_applied_again() -> None:
    history = History()
    one = segment(1, 0, 99)
    history.copied(one)
    history.deleted(one)
    for offset, record in enumerate(history.records):
        assert history.log.apply(record, offset) is Outcome.SEEN
    assert not len(history.log)


def test_epochs_of_a_segment_are_found_each_by_itself() -> None:
    history = History()
    # Epoch 2 has no records; the first epoch is clipped to the segment's start.
    history.copied(segment(1, 10, 99, ((0, 3), (1, 40), (2, 60), (4, 60))))
    assert history.log.epochs() == [0, 1, 4]
    for epoch, offset, is_there in [
        (0, 9, False),
        (0, 10, True),
        (0, 39, True),
        (0, 40, False),
        (1, 40, True),
        (1, 60, False),
        (2, 60, False),
        (4, 60, True),
        (4, 99, True),
        (4, 100, False),
    ]:
        assert (history.log.segment_for(epoch, offset) is not None) is is_there, (epoch, offset)
    assert [history.log.highest_offset(epoch) for epoch in range(5)] == [39, 59, None, None, 99]


def test_the_next_segment_with_aborted_transactions() -> None:
    history = History()
    history.copied(
        segment(1, 0, 9, txn_index_empty=True),
        segment(2, 10, 19, txn_index_empty=True),
        segment(3, 20, 29),
        segment(4, 40, 49),
    )
    found = history.log.next_with_txn_index(0, 5)
    assert found is not None
    assert found.start_offset == 20
    assert history.log.next_with_txn_index(0, 30) is None
    assert history.log.next_with_txn_index(1, 5) is None


def test_coverage_ends_at_a_gap_at_the_end_of_an_epoch_and_at_the_log_end() -> None:
    history = History()
    history.copied(segment(1, 0, 9), segment(2, 10, 19), segment(3, 30, 39))
    lineage = Lineage([(0, 0)], 100)
    assert history.log.covered_end(0, lineage) == 20
    assert history.log.covered_end(19, lineage) == 20
    assert history.log.covered_end(20, lineage) == 20
    assert history.log.covered_end(30, lineage) == 40
    # The log left epoch 0 at 15: behind it, the segment is not of this log.
    assert history.log.covered_end(0, Lineage([(0, 0), (1, 15)], 100)) == 15
    assert history.log.covered_end(0, Lineage([(0, 0)], 13)) == 13
    assert history.log.covered_end(0, Lineage([], 100)) == 0


def test_an_empty_remote_log_answers() -> None:
    log = RemoteLog(PARTITION, TOPIC)
    assert log.segment_for(0, 0) is None
    assert list(log.segments(0)) == list(log.all()) == log.unfinished() == log.epochs() == []
    assert log.highest_offset(0) is None
