"""Leaders and followers over real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.fetched import FetchedBatches, check_fetched
from skylog.replication.follower import EpochEnd, truncation_offset
from skylog.replication.leader import IsrAnswer, Membership, find_divergence
from skylog.replication.partition import Partition
from tests.unit.log.support import batch, open_log
from tests.unit.replication.support import LAG_MS, Host, state

TOPIC_ID = Uuid(b"t" * 16)
A, B, C = 1, 2, 3


class Replica:
    """One broker's replica of the partition."""

    def __init__(self, directory: Path, node_id: int, config: LogConfig | None = None) -> None:
        self.host = Host(node_id)
        log = open_log(directory / f"node-{node_id}" / "t-0", config)
        self.partition = Partition(self.host, "t", 0, TOPIC_ID, log)
        self.log = log

    def lead(
        self, epoch: int, isr: tuple[int, ...] = (A, B, C), version: int | None = None
    ) -> None:
        self.partition.update(state(self.host.node_id, epoch, (A, B, C), isr, version))

    def follow(self, leader: int, epoch: int) -> None:
        self.partition.update(state(leader, epoch, (A, B, C)))

    def produce(self, *values: bytes) -> None:
        self.partition.append([batch(*values)], 1)

    def fetch_from(self, leader: Replica) -> None:
        """One fetch, as a fetcher makes it."""
        log, source = self.log, leader.partition
        diverging = find_divergence(leader.log, log.log_end_offset, log.latest_epoch)
        if diverging is not None:
            self.partition.truncate_to(truncation_offset(log, EpochEnd(*diverging)))
            return
        offset, start, epoch = log.log_end_offset, log.log_start_offset, self.host.broker_epoch()
        source.fetched_by(self.host.node_id, offset, start, epoch)
        found = leader.log.reader.read(
            offset, 1 << 20, leader.log.log_end_offset, min_one=True, block=True
        )
        fetched = check_fetched(found.buffer, source.leader_epoch)
        self.partition.append_fetched(fetched, 1)
        self.partition.follow(leader.log.high_watermark, leader.log.log_start_offset)

    def contents(self) -> bytes:
        end = self.log.log_end_offset
        found = self.log.reader.read(
            self.log.log_start_offset, 1 << 20, end, min_one=True, block=True
        )
        return bytes(found.buffer)


@pytest.fixture
def trio(tmp_path: Path) -> tuple[Replica, Replica, Replica]:
    a, b, c = (Replica(tmp_path, node_id) for node_id in (A, B, C))
    a.lead(0)
    b.follow(A, 0)
    c.follow(A, 0)
    return a, b, c


def test_records_are_committed_when_all_have_fetched_them(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, b, c = trio
    a.produce(b"one", b"two")
    assert a.log.high_watermark == 0
    for follower in (b, c, b):
        follower.fetch_from(a)
    assert a.log.high_watermark == 0  # they have it; their next fetch reports it
    c.fetch_from(a)
    assert a.log.high_watermark == 2
    b.fetch_from(a)
    assert (b.log.high_watermark, c.log.high_watermark) == (2, 2)
    assert a.contents() == b.contents() == c.contents()


class Waiter:
    replica_id, fetched_ms = B, 0

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.watermarks = 0

    def partition_moved(self, appended_bytes: int) -> None:
        self.heard.append(appended_bytes)

    def high_watermark_moved(self) -> None:
        self.watermarks += 1


def test_followers_hear_of_appends_and_consumers_of_commits(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, b, c = trio
    follower, consumer = Waiter(), Waiter()
    a.partition.watch_appends(follower)
    a.partition.watch(consumer)
    a.produce(b"one")
    size = a.log.size
    assert (follower.heard, consumer.heard) == ([size], [])
    for each in (b, c, b, c):
        each.fetch_from(a)
    assert (follower.heard, follower.watermarks, consumer.heard) == ([size], 1, [size])
    near = Waiter()
    b.partition.watch(near)
    b.fetch_from(a)
    assert near.heard == [size]
    a.partition.unwatch(follower)
    a.partition.unwatch(consumer)
    a.produce(b"two")
    assert len(follower.heard) == len(consumer.heard) == 1


def test_the_loser_of_an_election_truncates_its_own_records(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, b, c = trio
    a.produce(b"kept")
    for each in (b, c, b, c):
        each.fetch_from(a)
    a.produce(b"lost")
    a.produce(b"lost too")
    b.lead(1, isr=(B, C))
    b.produce(b"instead")
    a.follow(B, 1)
    a.fetch_from(b)
    assert a.log.log_end_offset == 1
    c.follow(B, 1)
    for each in (a, c, a, c):
        each.fetch_from(b)
    assert a.contents() == b.contents() == c.contents()
    assert b.log.high_watermark == 2


def test_a_leader_that_wrote_nothing_follows_all_the_same(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, b, c = trio
    a.produce(b"one")
    for each in (b, c, b, c):
        each.fetch_from(a)
    b.lead(1)
    c.lead(2)
    c.produce(b"two")
    b.follow(C, 2)
    for _ in range(3):
        b.fetch_from(c)
    assert b.contents() == c.contents()
    assert b.log.latest_epoch == 2


def test_too_few_in_sync_take_no_writes_for_all(tmp_path: Path) -> None:
    a = Replica(tmp_path, A, LogConfig(min_insync_replicas=2))
    a.lead(0, isr=(A,))
    with pytest.raises(KafkaError) as refused:
        a.produce(b"one")
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert a.log.log_end_offset == 0
    a.partition.append([batch(b"one")], 1, acks_all=False)
    assert (a.log.log_end_offset, a.log.high_watermark) == (1, 0)  # nothing is committed
    a.partition.configure(LogConfig(min_insync_replicas=1))
    assert a.log.high_watermark == 1
    # min.insync.replicas is limited to the number of replicas.
    a.partition.configure(LogConfig(min_insync_replicas=9))
    a.partition.update(state(A, 1, (A, B), (A, B)))
    a.partition.require_in_sync()


def test_a_node_that_does_not_lead_refuses_writes(trio: tuple[Replica, Replica, Replica]) -> None:
    with pytest.raises(KafkaError) as refused:
        trio[1].produce(b"one")
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_replicas_leave_and_come_back(trio: tuple[Replica, Replica, Replica]) -> None:
    a, b, _ = trio
    a.produce(b"one")
    b.fetch_from(a)
    a.host.clock.advance(LAG_MS + 1)
    b.fetch_from(a)
    a.partition.shrink_isr()
    (change,) = a.host.asked
    assert change.removed == (C,)
    assert not a.partition.isr_answered(change, IsrAnswer(0, 1, (A, B)))
    assert (a.partition.isr, a.partition.partition_epoch) == ((A, B), 1)
    assert a.log.high_watermark == 1
    # Older metadata arrives after the controller's response.
    a.lead(0, version=0)
    assert a.partition.isr == (A, B)
    trio[2].fetch_from(a)
    trio[2].fetch_from(a)
    assert a.host.asked[-1].added == C
    a.partition.isr_answered(a.host.asked[-1], ErrorCode.INELIGIBLE_REPLICA)
    trio[2].fetch_from(a)
    assert len(a.host.asked) == 3
    a.partition.shrink_isr()
    assert len(a.host.asked) == 3


def test_a_quiet_session_keeps_its_follower_in_sync(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, b, c = trio
    sessions = [Waiter(), Waiter()]
    sessions[1].replica_id = C  # type: ignore[misc]
    for session, follower in zip(sessions, (b, c), strict=True):
        a.partition.watch_appends(session)
        follower.fetch_from(a)
    a.host.clock.advance(10 * LAG_MS)
    for session in sessions:
        session.fetched_ms = a.host.clock.now_ms()  # type: ignore[misc]
    a.produce(b"one")
    a.partition.shrink_isr()
    assert a.host.asked == []
    a.host.clock.advance(LAG_MS + 1)
    a.partition.shrink_isr()
    assert [change.removed for change in a.host.asked] == [(B, C)]


def test_a_quiet_follower_joins_when_its_broker_is_back(
    trio: tuple[Replica, Replica, Replica],
) -> None:
    a, _, c = trio
    session = Waiter()
    session.replica_id = C  # type: ignore[misc]
    a.partition.watch_appends(session)
    a.lead(0, isr=(A, B), version=1)
    a.host.members[C] = Membership(10 + C, active=False)
    c.fetch_from(a)
    session.fetched_ms = a.host.clock.now_ms()  # type: ignore[misc]
    a.partition.expand_isr()
    assert a.host.asked == []
    a.host.members.clear()
    a.partition.expand_isr()
    assert [change.added for change in a.host.asked] == [C]
    # Refused again, it is requested at the next tick, not at once.
    a.partition.isr_answered(a.host.asked[-1], ErrorCode.INELIGIBLE_REPLICA)
    assert len(a.host.asked) == 1
    a.partition.expand_isr()
    assert len(a.host.asked) == 2
    a.partition.isr_answered(a.host.asked[-1], ErrorCode.INELIGIBLE_REPLICA)
    # A replica that has not fetched for long does not join.
    a.host.clock.advance(LAG_MS + 1)
    a.partition.expand_isr()
    assert len(a.host.asked) == 2


async def test_records_are_deleted_everywhere(trio: tuple[Replica, Replica, Replica]) -> None:
    a, b, c = trio
    for value in (b"one", b"two", b"three"):
        a.produce(value)
    for each in (b, c, b, c):
        each.fetch_from(a)
    assert a.partition.delete_records_before(2) == 2
    wait = a.partition.deleted_everywhere(2)
    assert wait is not None
    for each in (b, c):
        each.fetch_from(a)
        assert each.log.log_start_offset == 2
    assert not wait.done()
    b.fetch_from(a)
    assert a.partition.low_watermark == 0
    c.fetch_from(a)
    assert a.partition.low_watermark == 2
    assert wait.done()
    assert a.partition.deleted_everywhere(2) is None
    lost = a.partition.deleted_everywhere(3)
    a.follow(B, 1)
    assert lost is not None
    assert isinstance(lost.exception(), KafkaError)


def test_of_the_dead_no_records_are_deleted(trio: tuple[Replica, Replica, Replica]) -> None:
    a, b, c = trio
    a.produce(b"one")
    for each in (b, c, b, c):
        each.fetch_from(a)
    a.host.members[C] = Membership(13, active=False)
    a.partition.delete_records_before(1)
    b.fetch_from(a)
    b.fetch_from(a)
    assert a.partition.low_watermark == 1


def test_a_log_that_begins_within_a_batch(tmp_path: Path) -> None:
    a, b = Replica(tmp_path, A), Replica(tmp_path, B)
    a.lead(0, isr=(A,))
    a.produce(b"one", b"two", b"three")
    a.partition.delete_records_before(2)
    b.follow(A, 0)
    b.partition.truncate_fully_and_start_at(2)
    b.fetch_from(a)
    assert (b.log.log_start_offset, b.log.log_end_offset) == (2, 3)
    assert a.contents() == b.contents()
    overlapping = check_fetched(a.contents(), 0)
    with pytest.raises(KafkaError) as refused:
        b.partition.append_fetched(overlapping, 1)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_what_is_fetched_fits_into_segments(tmp_path: Path) -> None:
    a = Replica(tmp_path, A)
    a.lead(0, isr=(A,))
    for number in range(20):
        a.produce(b"%d" % number)
    small = Replica(tmp_path, B, LogConfig(segment_bytes=300))
    small.follow(A, 0)
    small.fetch_from(a)
    assert len(small.log.segments) > 3
    assert small.log.log_end_offset == 20
    small.partition.append_fetched(FetchedBatches([], memoryview(b"")), 1)
