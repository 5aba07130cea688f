"""Which replicas are in sync and what is committed, decided without a log."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replication.leader import (
    IsrAnswer,
    IsrChange,
    Leader,
    Membership,
    find_divergence,
)

LAG = 100
OWN_EPOCH = 11


@dataclass
class World:
    """A leader of a partition on brokers 1, 2 and 3, and the time."""

    members: dict[int, Membership] = field(
        default_factory=lambda: {n: Membership(10 + n, active=True) for n in (1, 2, 3)}
    )
    now_ms: int = 1_000
    end_offset: int = 0
    high_watermark: int = 0

    def __post_init__(self) -> None:
        self.leader = Leader(1, LAG, self.members.get)

    def lead(
        self,
        epoch: int = 0,
        version: int = 0,
        isr: tuple[int, ...] = (1, 2, 3),
        replicas: tuple[int, ...] = (1, 2, 3),
    ) -> None:
        self.leader.lead((epoch, version), replicas, isr, self.end_offset, self.now_ms)

    def fetch(self, replica: int, offset: int, start: int = 0, epoch: int | None = None) -> None:
        known = 10 + replica if epoch is None else epoch
        self.leader.fetched(replica, offset, start, known, self.end_offset, self.now_ms)
        self.move()

    def move(self) -> int:
        found = self.leader.high_watermark(self.high_watermark, self.end_offset, self.now_ms)
        self.high_watermark = found
        return found

    def expand(self, replica: int) -> IsrChange | None:
        return self.leader.expansion(replica, self.high_watermark, OWN_EPOCH)

    def shrink(self) -> IsrChange | None:
        return self.leader.shrinkage(self.end_offset, self.now_ms, OWN_EPOCH)


def led(isr: tuple[int, ...] = (1, 2, 3)) -> World:
    world = World()
    world.lead(isr=isr)
    return world


def test_what_all_in_sync_have_is_committed() -> None:
    world = led()
    world.end_offset = 10
    assert world.move() == 0  # no follower has fetched yet
    world.fetch(2, 10)
    assert world.high_watermark == 0
    world.fetch(3, 7)
    assert world.high_watermark == 7
    world.fetch(3, 10)
    assert world.high_watermark == 10


def test_the_high_watermark_never_goes_back() -> None:
    world = led()
    world.end_offset = world.high_watermark = 10
    world.fetch(2, 4)
    world.fetch(3, 4)
    assert world.high_watermark == 10


def test_a_replica_out_of_sync_does_not_delay_it() -> None:
    world = led(isr=(1, 2))
    world.end_offset = 10
    world.fetch(2, 10)
    assert world.high_watermark == 10
    # The leader waits for a replica that has nearly caught up, or it would never join.
    world.fetch(3, 10)
    world.end_offset = 20
    world.fetch(2, 20)
    assert world.high_watermark == 10
    world.now_ms += LAG + 1
    assert world.move() == 20
    # It does not wait for a replica that may not join.
    world.fetch(3, 20)
    world.end_offset = 30
    world.members[3] = Membership(13, active=False)
    world.fetch(2, 30)
    assert world.high_watermark == 30


def test_a_replica_joins_when_it_has_reached_the_leaders_epoch() -> None:
    world = World(end_offset=10, high_watermark=4)
    world.lead(epoch=5, isr=(1,))
    world.fetch(2, 6)  # beyond the high watermark that the leader knows, before its epoch
    assert world.expand(2) is None
    world.fetch(2, 10)
    change = world.expand(2)
    assert change == IsrChange(5, 0, ((1, OWN_EPOCH), (2, 12)), added=2)
    assert world.expand(2) is None  # the change is pending


def test_while_a_replica_is_added_it_counts_already() -> None:
    world = led(isr=(1,))
    world.fetch(2, 0)
    assert world.expand(2) is not None
    world.end_offset = 5
    world.now_ms += 10 * LAG
    assert world.move() == 0
    world.fetch(2, 5)
    assert world.high_watermark == 5


def test_while_a_replica_is_removed_it_counts_still() -> None:
    world = led()
    world.end_offset = 5
    world.fetch(2, 5)
    world.now_ms += LAG + 1
    world.fetch(2, 5)
    change = world.shrink()
    assert change is not None
    assert (change.isr, change.removed) == (((1, OWN_EPOCH), (2, 12)), (3,))
    assert world.move() == 0
    assert world.leader.answered(change, IsrAnswer(0, 1, (1, 2))) is False
    assert world.move() == 5
    assert world.leader.isr == {1, 2}


def test_a_replica_with_everything_never_lags() -> None:
    world = led()
    world.end_offset = 5
    world.fetch(2, 5)
    world.fetch(3, 5)
    world.now_ms += 100 * LAG
    assert world.shrink() is None
    world.end_offset = 6
    assert world.shrink() is not None  # no fetch for so long


def test_a_quiet_follower_in_a_session_was_there_all_the_time() -> None:
    world = led()
    world.end_offset = 5
    world.fetch(2, 5)
    world.fetch(3, 5)
    world.now_ms += 100 * LAG
    for replica in (2, 3):
        world.leader.seen(replica, world.now_ms - 1, world.end_offset)
    world.leader.seen(9, world.now_ms, world.end_offset)  # an unknown replica
    world.end_offset = 6
    assert world.shrink() is None
    world.now_ms += LAG
    assert world.shrink() is not None


def test_a_follower_of_a_busy_leader_is_caught_up() -> None:
    """It reads up to where the leader was at the fetch before, never to the very end."""
    world = led(isr=(1, 2))
    for _ in range(10):
        before = world.end_offset
        world.end_offset += 7
        world.now_ms += LAG // 2
        world.fetch(2, before)
        assert world.shrink() is None


def test_a_slow_follower_leaves() -> None:
    world = led(isr=(1, 2))
    world.end_offset = 100
    for offset in range(10):  # it keeps fetching, but does not catch up
        world.now_ms += LAG // 4
        world.end_offset += 10
        world.fetch(2, offset)
    assert world.shrink() is not None


def test_a_restarted_follower_is_told_apart() -> None:
    world = led()
    world.members[2] = Membership(20, active=True)
    with pytest.raises(KafkaError) as refused:
        world.fetch(2, 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.fetch(2, 0, epoch=20)
    world.fetch(2, 0, epoch=-1)  # an old broker sends no epoch
    world.fetch(2, 0, epoch=21)  # newer than our metadata


@pytest.mark.parametrize(
    "member", [None, Membership(13, active=False), Membership(14, active=True)]
)
def test_replicas_that_may_not_join_the_isr(member: Membership | None) -> None:
    world = led(isr=(1, 2))
    world.fetch(3, 0)
    assert world.leader.expansion(3, 0, OWN_EPOCH) is not None
    world.leader.lead((0, 1), (1, 2, 3), (1, 2), 0, 0)
    world.members.pop(3)
    if member is not None:
        world.members[3] = member
    assert world.expand(3) is None


def test_a_new_leader_knows_nothing_of_others() -> None:
    world = World(end_offset=10, high_watermark=3)
    world.lead(epoch=4)
    assert world.move() == 3
    world.fetch(2, 10)
    assert world.shrink() is None  # they have time to join
    world.now_ms += LAG + 1
    change = world.shrink()
    assert change is not None
    assert change.removed == (3,)
    assert change.isr == ((1, OWN_EPOCH), (2, 12))


def test_members_that_have_not_fetched_yet_have_no_epoch() -> None:
    world = led(isr=(1, 3))
    world.fetch(2, 0)
    change = world.expand(2)
    assert change is not None
    assert change.isr == ((1, OWN_EPOCH), (2, 12), (3, -1))


def test_a_new_epoch_of_the_same_leader_keeps_what_is_known() -> None:
    world = led()
    world.end_offset = 5
    world.fetch(2, 5)
    world.fetch(3, 5)
    world.lead(epoch=1, version=1, isr=(1, 2))
    assert world.leader.epoch_start_offset == 5
    assert [each.end_offset for each in world.leader.followers.values()] == [5, 5]
    # A replica that is not in sync must fetch before it counts.
    assert world.leader.followers[3].caught_up_ms == 0
    world.lead(epoch=1, version=2, isr=(1, 2), replicas=(1, 2, 4))
    assert set(world.leader.followers) == {2, 4}


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_what_the_controller_refuses_is_as_before(error: ErrorCode) -> None:
    world = led(isr=(1, 2))
    world.fetch(3, 0)
    change = world.expand(3)
    assert change is not None
    assert world.leader.answered(change, error) is False
    assert world.leader.maximal_isr == {1, 2}
    assert world.expand(3) is not None


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False),
        (ErrorCode.NEW_LEADER_ELECTED, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False),
        (ErrorCode.NOT_CONTROLLER, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True),
    ],
)
def test_what_may_have_happened_stays_pending(error: ErrorCode, again: bool) -> None:
    world = led(isr=(1, 2))
    world.fetch(3, 0)
    change = world.expand(3)
    assert change is not None
    assert world.leader.answered(change, error) is again
    assert world.leader.pending is change
    assert world.leader.maximal_isr == {1, 2, 3}
    # Metadata ends it, and the controller's response comes too late.
    world.lead(version=1, isr=(1, 2))
    assert world.leader.pending is None
    assert world.leader.answered(change, IsrAnswer(0, 1, (1, 2, 3))) is False
    assert world.leader.isr == {1, 2}


def test_metadata_that_repeats_the_controllers_response_changes_nothing() -> None:
    """A later request may have taken effect: it counts until there is a response."""
    world = led(isr=(1,))
    world.fetch(2, 0)
    first = world.expand(2)
    assert first is not None
    world.leader.answered(first, IsrAnswer(0, 1, (1, 2)))
    world.fetch(3, 0)
    second = world.expand(3)
    assert second is not None
    world.lead(version=1, isr=(1, 2))
    assert world.leader.pending is second
    assert world.leader.maximal_isr == {1, 2, 3}
    world.lead(version=2, isr=(1, 2, 3))
    assert (world.leader.pending, world.leader.isr) == (None, {1, 2, 3})


def test_an_answer_of_another_time_changes_nothing() -> None:
    world = World()
    world.lead(epoch=2, version=5, isr=(1, 2))
    world.fetch(3, 0)
    change = world.expand(3)
    assert change is not None
    assert world.leader.answered(change, IsrAnswer(1, 6, (1, 2, 3))) is False
    assert world.leader.answered(change, IsrAnswer(2, 4, (1, 2, 3))) is False
    assert world.leader.isr == {1, 2}
    assert world.leader.answered(change, IsrAnswer(2, 6, (1, 2, 3))) is False
    assert (world.leader.isr, world.leader.partition_epoch) == ({1, 2, 3}, 6)


def test_records_are_gone_when_no_live_replica_has_them() -> None:
    world = led()
    world.end_offset = 10
    world.fetch(2, 10, start=3)
    assert world.leader.low_watermark(5) == -1  # of the third nothing is known
    world.fetch(3, 10, start=4)
    assert world.leader.low_watermark(5) == 3
    world.members[2] = Membership(12, active=False)
    assert world.leader.low_watermark(5) == 4


class Epochs:
    log_start_offset = 10

    def __init__(self, *known: tuple[int, int, int]) -> None:
        self._known = {asked: (epoch, end) for asked, epoch, end in known}

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self._known.get(epoch, (-1, -1))


def test_where_logs_part() -> None:
    log = Epochs((4, 4, 50), (3, 2, 20))
    assert find_divergence(log, 30, -1) is None
    assert find_divergence(log, 50, 4) is None
    assert find_divergence(log, 51, 4) == (4, 50)
    assert find_divergence(log, 15, 3) == (2, 20)
    for offset, epoch in ((30, 9), (9, 4)):
        with pytest.raises(KafkaError) as refused:
            find_divergence(log, offset, epoch)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
