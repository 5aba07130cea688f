"""Diskless topics over their tiers, while the tiers change and fail."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster, ClusterNode
from tests.integration import tiers_by_hand as tiers
from tests.integration.broker_client import NOW
from tests.integration.racks_cluster import ZoneClient
from tests.integration.tiered_topics import delete_records
from tests.integration.tiers_by_hand import MS_APART, PER_BATCH
from tests.integration.wire_client import Closed
from tests.waiting import until

EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -2, -4, -5, -6
# What makes Kafka's consumers ask again, and never start over.
RETRIED = {
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tiers.three_brokers() as running:
        yield running


def log_file(cluster: Cluster, topic: str, start: int) -> Path:
    (found,) = (cluster.directory / "objects").rglob(f"{topic}-*/0/{start:020}-*.log")
    return found


def test_what_the_tiered_store_does_not_give_comes_from_the_wal(cluster: Cluster) -> None:
    topic = "damaged"
    tiers.create(cluster, topic, diskless_tiering_assembler="external")
    broker = cluster.brokers[0]
    tiers.fill(broker, topic, 0, 300)
    tiers.tier(cluster, topic, 0, 200)
    path = log_file(cluster, topic, 0)
    whole = path.read_bytes()
    with tiers.store_log() as stored:
        for damage in (whole[:100], b"\0" * len(whole), None):
            if damage is None:
                path.unlink()
            else:
                path.write_bytes(damage)
            for one in cluster.brokers:
                stored.clear()
                answer = tiers.fetch(one, topic, 50)
                assert answer.error_code == 0
                assert tiers.offsets_in(answer)[0] == 0
                assert "wal" in stored.kinds(one)
    # Nothing else has it now: an error, but none after which a consumer starts over.
    tiers.prune(broker, topic, 200)
    for one in cluster.brokers:
        answer = tiers.fetch(one, topic, 50)
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert tiers.offsets_in(tiers.fetch(one, topic, 250)) == list(range(200, 300))
    path.write_bytes(whole)
    for one in cluster.brokers:
        tiers.read(one, topic, 0, 300)


def test_deleted_records_are_gone_from_both_tiers_everywhere(cluster: Cluster) -> None:
    topic = "deleted"
    tiers.create(cluster, topic, diskless_tiering_assembler="external")
    broker = cluster.brokers[0]
    tiers.fill(broker, topic, 0, 600)
    tiers.tier(cluster, topic, 0, 200)
    tiers.tier(cluster, topic, 200, 400)
    tiers.prune(broker, topic, 300)
    # Within a tiered segment, at the WAL's start, behind what is tiered.
    for start, pending in ((150, 400), (300, 400), (450, 450)):
        with ZoneClient(broker.bootstrap) as client:
            assert delete_records(client, topic, start) == start
            assert delete_records(client, topic, start - 20) == start
        for one in cluster.brokers:
            answer = tiers.fetch(one, topic, start - 1)
            assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            tiers.read(one, topic, start, 600)
            answer = tiers.fetch(one, topic, start)
            assert (answer.log_start_offset, answer.high_watermark) == (start, 600)
            with ZoneClient(one.bootstrap) as client:
                kinds = EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING
                found = [client.offset(topic, kind).offset for kind in kinds]
                assert found == [start, max(start, 300), 399, pending]
                # The first record of that time may be deleted.
                assert client.offset(topic, NOW).offset == start
                later = client.offset(topic, NOW + MS_APART * (start + 7))
                assert (later.offset, later.timestamp) == (
                    start + 7,
                    NOW + MS_APART * (start + 7),
                )
    with ZoneClient(broker.bootstrap) as client:
        assert delete_records(client, topic, -1) == 600
    for one in cluster.brokers:
        answer = tiers.fetch(one, topic, 600)
        assert (answer.error_code, answer.records or b"", answer.log_start_offset) == (0, b"", 600)


def test_the_latest_record_may_be_in_either_tier(cluster: Cluster) -> None:
    topic = "latest"
    tiers.create(cluster, topic, diskless_tiering_assembler="external")
    broker = cluster.brokers[0]
    with ZoneClient(broker.bootstrap) as client:
        for base, times in ((0, (5, 90, 7)), (3, (90, 8, 9)), (6, (50, 60, 70))):
            stamps = [NOW + one for one in times]
            payload = [tiers.value(base + at) for at in range(3)]
            assert client.produce(topic, *payload, timestamps=stamps).error_code == 0
    tiers.tier(cluster, topic, 0, 3)
    tiers.tier(cluster, topic, 3, 6)

    def latest() -> set[tuple[int, int]]:
        found = set()
        for one in cluster.brokers:
            with ZoneClient(one.bootstrap) as client:
                answer = client.offset(topic, -3)
                assert answer.error_code == 0
                found.add((answer.offset, answer.timestamp - NOW))
        return found

    assert latest() == {(1, 90)}
    tiers.prune(broker, topic, 3)
    assert latest() == {(1, 90)}  # as late as the one in the WAL, and before it
    tiers.prune(broker, topic, 6)
    with ZoneClient(broker.bootstrap) as client:
        assert delete_records(client, topic, 2) == 2
        assert latest() == {(3, 90)}
        assert client.produce(topic, tiers.value(9), timestamps=[NOW + 95]).error_code == 0
    assert latest() == {(9, 95)}


class Loop:
    """Reads everything of a topic from its start, again and again, at one broker."""

    def __init__(self, broker: ClusterNode, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._rng = random.Random(broker.node_id)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"loop-{broker.node_id}")
        self.rounds = 0
        # What was deleted, or is about to be: below it nothing has to be there.
        self.deleted = 0
        self.failure: BaseException | None = None

    def __enter__(self) -> Loop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self, rounds: int) -> None:
        """Wait for so many more rounds."""
        goal = self.rounds + rounds
        until(lambda: self.failure is not None or self.rounds >= goal, "the loop goes round")
        assert self.failure is None, self.failure

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                try:
                    with ZoneClient(self._broker.bootstrap) as client:
                        while not self._ended.is_set():
                            self._round(client)
                            self.rounds += 1
                except (OSError, Closed):
                    self._ended.wait(0.05)  # the broker was killed
        except BaseException as error:  # noqa: BLE001 - the test is told
            self.failure = error

    def _round(self, client: ZoneClient) -> None:
        first = client.offset(self._topic, EARLIEST)
        assert first.error_code in RETRIED, first
        if first.error_code:
            return
        offset, end = first.offset, -1
        assert offset <= self.deleted
        while offset != end and not self._ended.is_set():
            size = self._rng.choice((2_000, 5_000, 1 << 20))
            answer = client.fetch(self._topic, offset, partition_max_bytes=size)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < self.deleted:
                return
            assert answer.error_code in RETRIED, (offset, answer)
            if answer.error_code:
                continue
            assert answer.log_start_offset <= self.deleted
            end = answer.high_watermark
            found = [one for one in tiers.offsets_in(answer) if one >= offset]
            assert found == list(range(offset, offset + len(found)))
            offset += len(found)


def test_a_reader_from_the_start_sees_every_record_all_the_while(cluster: Cluster) -> None:
    # ENG-48: copy, clean and failover
    topic = "looped"
    tiers.create(cluster, topic, diskless_tiering_assembler="external")
    writer = cluster.brokers[0]
    tiers.fill(writer, topic, 0, 400)
    loops = [Loop(broker, topic) for broker in cluster.brokers]
    with loops[0], loops[1], loops[2]:
        end, covered = 400, 0
        for step in range(6):
            tiers.fill(writer, topic, end, end + 3 * PER_BATCH)
            end += 3 * PER_BATCH
            tiers.tier(cluster, topic, covered, covered + 2 * PER_BATCH)
            for loop in loops:
                loop.check(1)
            covered += 2 * PER_BATCH
            tiers.prune(cluster.brokers[step % 3], topic, covered - (step % 2) * PER_BATCH)
            for loop in loops:
                loop.check(1)


def test_librdkafka_reads_on_while_a_leader_dies() -> None:
    # ENG-48
    with tiers.three_brokers(
        broker_session_timeout_ms="2000", broker_heartbeat_interval_ms="200"
    ) as cluster:
        _outlive(cluster, "outlived")


def _outlive(cluster: Cluster, topic: str) -> None:
    tiers.create(cluster, topic, diskless_tiering_assembler="external")
    tiers.fill(cluster.brokers[0], topic, 0, 1000)
    tiers.tier(cluster, topic, 0, 400)
    tiers.prune(cluster.brokers[0], topic, 400)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "none",
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 3_000,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []

    def reads(count: int) -> bool:
        for message in consumer.consume(min(count - len(found), 50), 0.2):
            assert message.error() is None, message.error()
            assert message.offset() == len(found)
            assert message.value() == tiers.value(len(found))
            found.append(message.offset())
        return len(found) >= count

    try:
        until(lambda: reads(200), "the beginning is read")
        tiers.leader_of(cluster, topic).kill()
        until(lambda: reads(1000), "the rest is read")
    finally:
        consumer.close()


# Everything moves by itself: segments of a few batches, pruned and cleaned up at once.
BUSY = {
    "broker_session_timeout_ms": "2000",
    "broker_heartbeat_interval_ms": "200",
    "remote_log_manager_task_interval_ms": "100",
    "diskless_tiering_prune_interval_ms": "100",
    "diskless_tiering_prune_delay_ms": "0",
    "diskless_commit_age_max_ms": "1000",
    "diskless_coordinator_orphan_scan_grace_period_ms": "2001",
    "diskless_file_cleaner_interval_ms": "50",
    "diskless_retention_check_interval_ms": "100",
}


def test_every_broker_serves_everything_while_leaders_die_and_records_go() -> None:
    # ENG-48: copy, clean, failover and DeleteRecords, all by the brokers themselves
    topic = "busy"
    with tiers.three_brokers(**BUSY) as cluster:
        tiers.create(cluster, topic, internal_segment_bytes="3000")
        loops = [Loop(broker, topic) for broker in cluster.brokers]
        end = 0
        with loops[0], loops[1], loops[2]:
            for step in range(4):
                leader = tiers.leader_of(cluster, topic)
                tiers.fill(leader, topic, end, end + 10 * PER_BATCH)
                end += 10 * PER_BATCH
                _until_pruned(cluster, topic, end - 4 * PER_BATCH)
                for loop in loops:
                    loop.check(1)
                if step == 1:
                    for loop in loops:
                        loop.deleted = 350
                    with ZoneClient(leader.bootstrap) as client:
                        assert delete_records(client, topic, 350) == 350
                elif step < 3:
                    leader.kill()
                    _until_led_elsewhere(cluster, topic, leader)
                    leader.start()
        for broker in cluster.brokers:
            tiers.read(broker, topic, 350, end)


def _until_pruned(cluster: Cluster, topic: str, offset: int) -> None:
    """Wait until the WAL begins at or above it."""

    def pruned() -> bool:
        leader = tiers.leader_of(cluster, topic)
        with ZoneClient(leader.bootstrap) as client:
            found = client.offset(topic, EARLIEST_LOCAL)
        return found.error_code == 0 and found.offset >= offset

    until(pruned, f"the WAL is pruned up to {offset}")


def _until_led_elsewhere(cluster: Cluster, topic: str, dead: ClusterNode) -> None:
    def led() -> bool:
        return tiers.leader_of(cluster, topic) is not dead

    until(led, "another broker leads")
