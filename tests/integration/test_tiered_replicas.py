"""Replicas of tiered topics: new, wiped, moved and promoted ones, and consumers that read there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from skylog.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from tests.integration.racks_cluster import ZoneClient, ask, described, reassign, set_for_all
from tests.integration.replicated_cluster import followers, in_sync, led, replica, settled
from tests.integration.tiered_cluster import (
    TIERED,
    create_tiered,
    fetch_once,
    filled,
    local_start,
    moved,
    read_from,
    remote_segments,
    same_everywhere,
)
from tests.waiting import until

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = ("a", "b", "c")
# One cluster for all of them, not one in every process.
pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("tiered_replicas")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {**TIERED, "replica.selector.class": SELECTOR}
    with Cluster(3, 1, RACKS, settings) as running:
        yield running


def disk_bytes(directory: Path, topic: str) -> int:
    return sum(path.stat().st_size for path in (directory / f"{topic}-0").glob("*.log"))


def lead_at(cluster: Cluster, topic: str, node_id: int) -> None:
    """Let a broker lead, by putting it first among the replicas and asking for the preferred."""
    others = [each for each in described(cluster, topic)[0].replica_nodes if each != node_id]
    reassign(cluster, topic, [node_id, *others])
    until(lambda: described(cluster, topic)[0].replica_nodes[0] == node_id, "it is first")
    until(lambda: node_id in in_sync(cluster, topic), "it is in sync")
    ask(cluster, ElectLeadersRequest(0, [TopicPartitions(topic, [0])], 30_000))
    until(lambda: led(cluster, topic).node_id == node_id, "it leads")


def test_a_new_replica_fetches_only_what_is_local(cluster: Cluster) -> None:
    create_tiered(cluster, "expand", factor=2)
    written = filled(cluster, "expand", 0, 40)
    moved(cluster, "expand", 30)
    leader = led(cluster, "expand")
    members = list(described(cluster, "expand")[0].replica_nodes)
    (new,) = {1, 2, 3} - set(members)
    reassign(cluster, "expand", [*members, new])
    until(lambda: new in in_sync(cluster, "expand"), "the new replica is in sync")
    added = replica(cluster.broker(new), "expand")
    assert added is not None
    assert added.log.log_start_offset == 0
    assert added.log.local_log_start_offset >= 30
    assert disk_bytes(cluster.broker(new).directory, "expand") <= disk_bytes(
        leader.directory, "expand"
    )
    same_everywhere(cluster, "expand", written)
    # It leads, and nothing of what is remote is missing or deleted.
    lead_at(cluster, "expand", new)
    written += filled(cluster, "expand", 40, 20)
    moved(cluster, "expand", 45)
    same_everywhere(cluster, "expand", written)
    # Moved away from the first two: remote data stays.
    before = {one.id for one in remote_segments(cluster.broker(new), "expand")}
    reassign(cluster, "expand", [new])
    until(lambda: described(cluster, "expand")[0].replica_nodes == [new], "it is alone")
    assert read_from(cluster.broker(new), "expand", 0, 60) == written
    assert before <= {one.id for one in remote_segments(cluster.broker(new), "expand")}


def test_an_empty_replica_may_begin_at_what_waits_for_its_upload(cluster: Cluster) -> None:
    """KIP-1023: not at the leader's local start, from where the leader could send records, too."""
    set_for_all(cluster, follower_fetch_last_tiered_offset_enable="true")
    try:
        # Two segments or three.
        create_tiered(cluster, "pending", factor=2, local_retention_bytes="1500")
        written = filled(cluster, "pending", 0, 40)
        leader = led(cluster, "pending")
        until(lambda: len(remote_segments(leader, "pending")) >= 5, "it is copied")
        moved(cluster, "pending", 7)
        members = list(described(cluster, "pending")[0].replica_nodes)
        (new,) = {1, 2, 3} - set(members)
        reassign(cluster, "pending", [*members, new])
        until(lambda: new in in_sync(cluster, "pending"), "the new replica is in sync")
        assert local_start(leader, "pending") <= 28
        assert local_start(cluster.broker(new), "pending") == 35
        same_everywhere(cluster, "pending", written)
    finally:
        set_for_all(cluster, follower_fetch_last_tiered_offset_enable="false")


def test_a_wiped_follower_comes_back(cluster: Cluster) -> None:
    create_tiered(cluster, "wiped")
    written = filled(cluster, "wiped", 0, 40)
    moved(cluster, "wiped", 30)
    settled(cluster, "wiped")
    victim = followers(cluster, "wiped")[0]
    victim.stop()
    shutil.rmtree(victim.directory / "wiped-0")
    written += filled(cluster, "wiped", 40, 4)
    victim.start()
    until(lambda: victim.node_id in in_sync(cluster, "wiped"), "it is in sync again")
    found = replica(victim, "wiped")
    assert found is not None
    assert found.log.log_start_offset == 0
    assert found.log.local_log_start_offset >= 30
    same_everywhere(cluster, "wiped", written)


def test_followers_drop_what_is_remote(cluster: Cluster) -> None:
    create_tiered(cluster, "dropped")
    filled(cluster, "dropped", 0, 40)
    moved(cluster, "dropped", 30)
    for broker in followers(cluster, "dropped"):
        until(lambda each=broker: local_start(each, "dropped") >= 30, "a follower drops, too")
        found = replica(broker, "dropped")
        assert found is not None
        assert found.log.log_start_offset == 0


def test_a_follower_is_told_what_is_remote_and_nothing_is_noted_of_it(cluster: Cluster) -> None:
    create_tiered(cluster, "told")
    filled(cluster, "told", 0, 40)
    moved(cluster, "told", 30)
    settled(cluster, "told")
    leader = led(cluster, "told")
    found = replica(leader, "told")
    assert found is not None and found.leader is not None
    other = followers(cluster, "told")[0].node_id
    known = found.leader.followers[other].end_offset
    asked = FetchPartition(0, fetch_offset=3, partition_max_bytes=1 << 20, log_start_offset=0)
    epoch = leader.node.image.broker(other)
    assert epoch is not None
    request = FetchRequest(
        replica_state=ReplicaState(other, epoch.epoch),
        max_bytes=1 << 20,
        topics=[FetchTopic("", found.topic_id, [asked])],
    )
    with ZoneClient(leader.bootstrap) as client:
        (answer,) = client.ask(request).responses[0].partitions
    assert answer.error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    assert (answer.log_start_offset, answer.high_watermark) == (0, 40)
    assert not answer.records
    assert found.leader.followers[other].end_offset == known == 40


def test_a_consumer_reads_remote_records_from_a_follower_in_its_rack(cluster: Cluster) -> None:
    create_tiered(cluster, "racks")
    written = filled(cluster, "racks", 0, 40)
    moved(cluster, "racks", 30)
    settled(cluster, "racks")
    leader, near = led(cluster, "racks"), followers(cluster, "racks")[0]
    rack = RACKS[near.node_id - 1]

    def sent_away() -> bool:
        answer = fetch_once(leader, "racks", 0, rack=rack)
        return bool(answer.preferred_read_replica == near.node_id)

    until(sent_away, "the leader names the near replica")
    assert read_from(near, "racks", 0, 40, rack=rack) == written


def test_deleted_records_are_deleted_everywhere(cluster: Cluster) -> None:
    """The log start moves past what is remote; followers and the next leader know it."""
    create_tiered(cluster, "trimmed")
    filled(cluster, "trimmed", 0, 40)
    moved(cluster, "trimmed", 30)
    settled(cluster, "trimmed")
    leader = led(cluster, "trimmed")
    delete_before(leader, "trimmed", 17)
    for broker in cluster.brokers:
        found = replica(broker, "trimmed")
        assert found is not None
        until(lambda each=found: each.log.log_start_offset == 17, "it moves everywhere")
    until(
        lambda: all(one.end_offset >= 17 for one in remote_segments(leader, "trimmed")),
        "segments below it go",
    )
    other = followers(cluster, "trimmed")[0]
    lead_at(cluster, "trimmed", other.node_id)
    assert fetch_once(other, "trimmed", 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert len(read_from(other, "trimmed", 17, 40)) >= 23


def delete_before(broker: Any, topic: str, offset: int) -> None:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    with ZoneClient(broker.bootstrap) as client:
        answer = client.ask(DeleteRecordsRequest([wanted], 30_000))
    assert answer.topics[0].partitions[0].error_code == 0
