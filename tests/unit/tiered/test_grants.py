"""Grants: one run from the end of what is covered, one job, one epoch, for a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.tiered.consolidation.grants import Asked, Grant, Grants, GrantStage
from skylog.tiered.segments import RemoteSegment, TopicIdPartition

JOB, OTHER = Uuid(b"job-0123456789ab"), Uuid(b"job-ba9876543210")
LEASE = 3600.0


def id_of(number: int) -> Uuid:
    return Uuid(b"%016d" % number)


def run_of(start: int, *lengths: int, first_id: int = 0) -> list[Asked]:
    found = []
    for number, length in enumerate(lengths, first_id):
        found.append(Asked(id_of(number), start, start + length - 1))
        start += length
    return found


def segment(asked: Asked) -> RemoteSegment:
    return RemoteSegment(
        topic="t",
        partition=TopicIdPartition(Uuid(b"0123456789abcdef"), 0),
        id=asked.id,
        start_offset=asked.start_offset,
        end_offset=asked.end_offset,
        broker_id=1,
        max_timestamp_ms=0,
        event_timestamp_ms=0,
        epochs=((0, asked.start_offset),),
        size=1,
        txn_index_empty=True,
    )


def table(open_max: int = 4) -> Grants[int]:
    return Grants(leader_epoch=3, open_max=open_max, lease_seconds=LEASE)


def grant(
    grants: Grants[int], asked: Sequence[Asked], covered: int = 0, job: Uuid = JOB, now: float = 0
) -> list[Grant[int]]:
    grants.check(job, asked, covered, now)
    found = [grants.grant(job, one, segment(one), (), now) for one in asked]
    for one in found:
        one.stage = GrantStage.OPEN
    return found


def refused(grants: Grants[int], asked: Sequence[Asked], covered: int = 0, job: Uuid = JOB) -> str:
    with pytest.raises(KafkaError) as caught:
        grants.check(job, asked, covered, 0)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    return caught.value.message or ""


def test_a_run_begins_where_the_covered_part_ends() -> None:
    assert table().next_offset(100) == 100
    grants = table()
    grant(grants, run_of(100, 10, 20), covered=100)
    assert grants.next_offset(100) == 130
    assert "the next one begins at 100" in refused(table(), run_of(99, 10), covered=100)
    assert "overlaps" in refused(table(), run_of(99, 10), covered=100)
    assert "leaves a gap" in refused(table(), run_of(101, 10), covered=100)


def test_the_next_run_begins_behind_what_is_granted() -> None:
    grants = table()
    grant(grants, run_of(0, 10, 10))
    assert "overlaps" in refused(grants, run_of(0, 10, first_id=7))
    assert "overlaps" in refused(grants, run_of(10, 10, first_id=7))
    assert "leaves a gap" in refused(grants, run_of(21, 10, first_id=7))
    grant(grants, run_of(20, 10, first_id=7))
    assert grants.next_offset(0) == 30


def test_a_run_has_no_gap_overlap_or_empty_segment_within() -> None:
    first, second = run_of(0, 10, 10)
    assert "leaves a gap" in refused(table(), [first, second._replace(start_offset=11)])
    assert "overlaps" in refused(table(), [first, second._replace(start_offset=9)])
    assert "from 0 to -1" in refused(table(), [first._replace(end_offset=-1)])
    assert "one id" in refused(table(), [first, second._replace(id=first.id)])
    assert "without an id" in refused(table(), [first._replace(id=ZERO_UUID)])


def test_only_so_many_are_open() -> None:
    grants = table(open_max=2)
    assert "2 at a time" in refused(grants, run_of(0, 1, 1, 1))
    grant(grants, run_of(0, 1, 1))
    assert "2 at a time" in refused(grants, run_of(2, 1, first_id=5))


def test_one_job_at_a_time_unless_another_takes_over() -> None:
    grants = table()
    grant(grants, run_of(0, 10, 10))
    assert "another job assembles offsets 0 to 19: it has 3600 s left" in refused(
        grants, run_of(20, 10, first_id=5), job=OTHER
    )
    taken = grants.take_over(OTHER)
    assert [one.segment.id for one in taken] == [id_of(0), id_of(1)]
    assert not len(grants)
    grant(grants, run_of(0, 10, first_id=5), job=OTHER)
    with pytest.raises(KafkaError, match="not granted here"):
        grants.granted(id_of(0), JOB)


def test_what_is_being_finished_is_not_taken_back() -> None:
    grants = table()
    first, _ = grant(grants, run_of(0, 10, 10))
    grants.finish(first, 0, 0)
    assert [one.segment.id for one in grants.take_over(OTHER)] == [id_of(1)]
    assert grants.expired(LEASE * 2) == []
    assert grants.give_up(id_of(0)) == []
    assert grants.get(id_of(0)) is first


def test_a_repeated_request_gets_the_same_grants() -> None:
    grants, asked = table(), run_of(0, 10, 10)
    made = grant(grants, asked)
    assert grants.repeated(JOB, asked) == made
    assert grants.repeated(JOB, run_of(20, 10, first_id=5)) is None
    for other in (asked[:1] + run_of(10, 5, first_id=1), [asked[0]._replace(end_offset=8)]):
        with pytest.raises(KafkaError, match="id of a segment is in use"):
            grants.repeated(JOB, other)
    with pytest.raises(KafkaError, match="id of a segment is in use"):
        grants.repeated(OTHER, asked)


def test_segments_are_finished_in_their_order() -> None:
    grants = table()
    first, second = grant(grants, run_of(0, 10, 10))
    with pytest.raises(KafkaError, match="to be finished first"):
        grants.finish(second, 0, 0)
    grants.finish(first, 0, 0)
    grants.ended(first.segment.id)
    grants.finish(second, 10, 0)
    assert second.stage is GrantStage.FINISHING


def test_what_somebody_else_has_covered_is_not_finished() -> None:
    grants = table()
    (only,) = grant(grants, run_of(0, 10))
    for covered, log_start in ((10, 0), (5, 0), (10, 10), (12, 12), (8, 5)):
        with pytest.raises(KafkaError, match=f"the next one begins at {covered}"):
            grants.finish(only, covered, log_start)
    # A log start within it: the rest is still wanted.
    grants.finish(only, 9, 9)


def test_what_has_not_begun_is_not_finished() -> None:
    grants = table()
    (only,) = grant(grants, run_of(0, 10))
    only.stage = GrantStage.STARTING
    with pytest.raises(KafkaError, match="not started yet"):
        grants.granted(only.segment.id, JOB)


def test_a_lease_ends_with_all_that_is_behind() -> None:
    grants = table()
    grant(grants, run_of(0, 10, 10), now=0)
    grant(grants, run_of(20, 10, first_id=5), now=100)
    assert grants.expired(LEASE - 1) == []
    assert grants.next_end == LEASE
    # The one behind would have had time, but could never join what is covered.
    late = grants.expired(LEASE)
    assert [one.segment.id for one in late] == [id_of(0), id_of(1), id_of(5)]
    assert grants.next_end is None
    assert grants.next_offset(0) == 0


class Jobs:
    """Two jobs and a leader that do whatever they may."""

    def __init__(self) -> None:
        self.grants = table()
        self.covered, self.now, self.ids = 0, 0.0, 0

    @property
    def open(self) -> list[Uuid]:
        return [one for one in map(id_of, range(self.ids)) if self.grants.get(one) is not None]

    def ask(self, which: int, length: int) -> None:
        start = self.grants.next_offset(self.covered) + which // 2
        asked = Asked(id_of(self.ids), start, start + length - 1)
        self.ids += 1
        with suppress(KafkaError):
            grant(self.grants, [asked], self.covered, (JOB, OTHER)[which % 2], self.now)

    def finish(self, which: int, length: int) -> None:
        if not self.open:
            return
        wanted = self.open[which % len(self.open)]
        found = self.grants.get(wanted)
        assert found is not None
        try:
            self.grants.finish(found, self.covered, 0)
        except KafkaError:
            assert wanted != self.open[0]
            return
        assert found.start_offset == self.covered
        self.grants.ended(wanted)
        self.covered = found.next_offset

    def give_up(self, which: int, length: int) -> None:
        if self.open:
            self.grants.give_up(self.open[which % len(self.open)])

    def wait(self, which: int, length: int) -> None:
        self.now += LEASE / 2
        self.grants.expired(self.now)

    def take_over(self, which: int, length: int) -> None:
        self.grants.take_over((JOB, OTHER)[which % 2])

    def check(self) -> None:
        position = self.covered
        for one in self.open:
            kept = self.grants.get(one)
            assert kept is not None
            assert kept.start_offset == position
            position = kept.next_offset
        assert self.grants.next_offset(self.covered) == position


MOVES = (Jobs.ask, Jobs.ask, Jobs.finish, Jobs.give_up, Jobs.wait, Jobs.take_over)
moves = st.tuples(st.sampled_from(MOVES), st.integers(0, 3), st.integers(1, 5))


@given(st.lists(moves, max_size=40))
def test_what_is_covered_and_granted_is_always_one_run(steps: list[tuple[Any, int, int]]) -> None:
    """Granted segments follow the covered part without gap, and the first one can be finished."""
    jobs = Jobs()
    for move, which, length in steps:
        move(jobs, which, length)
        jobs.check()
