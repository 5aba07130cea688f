"""Tiered topics while brokers die: nothing is lost or left behind, and reads go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.tiered.segments import SegmentState, TopicIdPartition
from skylog.wire.batch import split_batches
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.integration.broker_client import values
from tests.integration.racks_cluster import ZoneClient, ask, described, reassign
from tests.integration.replicated_cluster import (
    QUICK,
    followers,
    in_sync,
    led,
    produce,
    replica,
    settled,
)
from tests.integration.tiered_cluster import (
    PASSING,
    TIERED,
    create_tiered,
    fetch_once,
    filled,
    moved,
    read_from,
    remote_segments,
    same_everywhere,
    told,
)
from tests.integration.wire_client import Closed
from tests.waiting import until

UNCLEAN = 1
# One cluster for all of them, not one in every process.
pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("tiered_faults")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, 1, (), {**TIERED, **QUICK}) as running:
        yield running


class Looper(threading.Thread):
    """Reads from the earliest record to the end, again and again, wherever the leader is."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._topic = topic
        self._enough = threading.Event()
        self.rounds = 0
        self.failure: str | None = None

    def run(self) -> None:
        while not self._enough.is_set() and self.failure is None:
            offset = 0
            while not self._enough.is_set() and (offset := self._read(offset)) >= 0:
                pass

    def _read(self, offset: int) -> int:
        """Where to go on; −1 at the end, or if it is to begin again."""
        for broker in self._cluster.brokers:
            try:
                found = replica(broker, self._topic) if broker.running else None
                if found is None or not found.is_leader:
                    continue
                answer = fetch_once(broker, self._topic, offset, wait_ms=0)
            except (OSError, AssertionError, Closed, RuntimeError):
                return offset  # it was killed meanwhile
            if answer.error_code not in PASSING:
                self.failure = f"{ErrorCode(answer.error_code).name} at {offset}"
                return -1
            for one in split_batches(answer.records or b""):
                if one.last_offset < offset:
                    continue
                expected = [b"value-%06d" % one.base_offset]
                if one.base_offset > offset or values(one.buffer) != expected:
                    self.failure = f"{values(one.buffer)} at {one.base_offset}, not at {offset}"
                offset = one.next_offset
            if not answer.error_code and offset >= answer.high_watermark:
                self.rounds += 1
                return -1
        return offset

    def stop(self) -> None:
        self._enough.set()
        self.join(60)


@contextmanager
def looping(cluster: Cluster, topic: str) -> Iterator[Looper]:
    looper = Looper(cluster, topic)
    looper.start()
    try:
        yield looper
    finally:
        looper.stop()
    assert looper.failure is None, looper.failure
    assert looper.rounds > 1


def all_finished(cluster: Cluster, topic: str) -> bool:
    """Whether every closed segment of the leader is remote, and nothing is half copied."""
    leader = led(cluster, topic)
    found, tiered = replica(leader, topic), leader.node._services.tiered
    assert found is not None and tiered is not None
    remote = tiered.logs.get(TopicIdPartition(found.topic_id, 0))
    if remote is None:
        return False
    states = {one.state for one in remote.all()}
    closed = found.log.segments[-1].base_offset
    ends = [one.end_offset + 1 for one in remote_segments(leader, topic)]
    return states <= {SegmentState.COPY_FINISHED} and max(ends, default=0) >= closed


def test_leaders_die_while_their_segments_are_copied(cluster: Cluster) -> None:
    # ENG-48 partly: a classic topic; diskless ones are in test_consolidation_*
    create_tiered(cluster, "killed", min_insync_replicas="2")
    written: list[bytes] = []
    with looping(cluster, "killed"):
        for _ in range(4):
            written += filled(cluster, "killed", len(written), 24)
            leader = led(cluster, "killed")
            leader.kill()
            until(lambda old=leader: led(cluster, "killed") is not old, "another one leads")
            written += filled(cluster, "killed", len(written), 8)
            leader.start()
            until(lambda: len(in_sync(cluster, "killed")) == 3, "all are in sync again")
    until(lambda: all_finished(cluster, "killed"), "what was begun is completed or cleaned")
    same_everywhere(cluster, "killed", written)


def test_a_leader_that_is_back_too_early_copies_nothing_of_its_own(cluster: Cluster) -> None:
    """Leadership moves back and forth under load: copies of one range by two leaders."""
    create_tiered(cluster, "moving")
    written: list[bytes] = []
    with looping(cluster, "moving"):
        for turn in range(6):
            written += filled(cluster, "moving", len(written), 12)
            order = [(turn + n) % 3 + 1 for n in range(3)]
            reassign(cluster, "moving", order)
            ask(cluster, ElectLeadersRequest(0, [TopicPartitions("moving", [0])], 30_000))
            until(lambda first=order[0]: led(cluster, "moving").node_id == first, "it leads")
    until(lambda: all_finished(cluster, "moving"), "all is copied")
    same_everywhere(cluster, "moving", written)


def deleted_below(broker: ClusterNode, topic: str) -> int:
    """The log start of the deletions that a broker has heard of. A leader moves its own start
    before it tells of them, and what nobody was told dies with it."""
    found, tiered = replica(broker, topic), broker.node._services.tiered
    assert found is not None and tiered is not None
    remote = tiered.logs.get(TopicIdPartition(found.topic_id, 0))
    return -1 if remote is None else remote.log_start


def test_a_leader_dies_while_segments_expire(cluster: Cluster) -> None:
    """Whoever leads next has at least the log start of those deletions."""
    create_tiered(cluster, "expired", retention_bytes="2000", min_insync_replicas="2")
    count = 0
    for _ in range(3):
        filled(cluster, "expired", count, 40)
        count += 40
        leader = led(cluster, "expired")
        until(
            lambda each=leader, low=count - 40: deleted_below(each, "expired") > low,
            f"it expires: {told(leader, 'expired')}",
        )
        start = deleted_below(leader, "expired")
        leader.kill()
        until(lambda old=leader: led(cluster, "expired") is not old, "another one leads")
        other = led(cluster, "expired")
        promoted = replica(other, "expired")
        assert promoted is not None
        until(lambda each=promoted, at=start: each.log.log_start_offset >= at, "it has the start")
        first = promoted.log.log_start_offset
        assert read_from(other, "expired", first, count)[-1] == b"value-%06d" % (count - 1)
        assert fetch_once(other, "expired", start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        leader.start()
        until(lambda: len(in_sync(cluster, "expired")) == 3, "all are in sync again")


def test_without_enough_metadata_nothing_is_copied_or_deleted_and_reads_go_on(
    cluster: Cluster,
) -> None:
    create_tiered(cluster, "alone", factor=1)
    written = filled(cluster, "alone", 0, 40)
    moved(cluster, "alone", 30)
    leader = led(cluster, "alone")
    others = [broker for broker in cluster.brokers if broker is not leader]
    for broker in others:
        broker.stop()
    before = {one.id for one in remote_segments(leader, "alone")}
    found = replica(leader, "alone")
    assert found is not None
    with ZoneClient(leader.bootstrap) as client:
        for number in range(40, 80):
            assert client.produce("alone", b"value-%06d" % number).error_code == 0
            written.append(b"value-%06d" % number)
    closed = found.log.segments[-1].base_offset
    assert closed >= 70
    assert read_from(leader, "alone", 0, 80) == written
    assert {one.id for one in remote_segments(leader, "alone")} == before
    assert found.log.local_log_start_offset <= 42
    for broker in others:
        broker.start()
    moved(cluster, "alone", closed)
    assert read_from(leader, "alone", 0, 80) == written


def test_after_an_unclean_election_readers_see_one_history(cluster: Cluster) -> None:
    """Remote segments of the lost history are there, and are not read."""
    create_tiered(cluster, "unclean", unclean_leader_election_enable="true")
    filled(cluster, "unclean", 0, 20)
    moved(cluster, "unclean", 14)
    settled(cluster, "unclean")
    late = followers(cluster, "unclean")[0]
    others = [broker for broker in cluster.brokers if broker is not late]
    late.kill()
    until(lambda: len(in_sync(cluster, "unclean")) == 2, "it has left")
    filled(cluster, "unclean", 20, 20)
    moved(cluster, "unclean", 35)
    for broker in others:
        broker.kill()
    late.start()
    elect_unclean(cluster, "unclean", late)
    produce(cluster, "unclean", [b"other-%06d" % number for number in range(20, 50)])
    for broker in others:
        broker.start()
    expected = [b"value-%06d" % number for number in range(20)]
    expected += [b"other-%06d" % number for number in range(20, 50)]
    until(lambda: len(in_sync(cluster, "unclean")) == 3, "all are in sync again")
    same_everywhere(cluster, "unclean", expected)


def elect_unclean(cluster: Cluster, topic: str, broker: ClusterNode) -> None:
    def leads() -> bool:
        ask(cluster, ElectLeadersRequest(UNCLEAN, [TopicPartitions(topic, [0])], 30_000))
        return bool(described(cluster, topic)[0].leader_id == broker.node_id)

    until(leads, "it leads without the others")
