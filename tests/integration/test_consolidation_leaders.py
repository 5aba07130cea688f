"""One broker at a time consolidates a partition: its leader, wherever that moves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from skylog.testing.cluster import Cluster, ClusterNode
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    PER_SEGMENT,
    SETTINGS,
    assembled,
    assembly_directories,
    covered,
    fill,
    read_all,
    segments,
    tiered_of,
    until_covered,
    until_pruned,
)
from tests.integration.racks_cluster import (
    CALM,
    ZoneClient,
    ask,
    create,
    described,
    logged,
    racks_cluster,
    reassign,
)
from tests.integration.tiered_topics import delete_records
from tests.waiting import until

# Records that do not fill a segment.
TAIL = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {
        **SETTINGS,
        **CALM,
        "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    }
    with racks_cluster(3, settings=settings) as running:
        yield running


def create_consolidating(cluster: Cluster, topic: str) -> None:
    given = {name.replace(".", "_"): text for name, text in CONSOLIDATING.items()}
    assert create(cluster, topic, **given).error_code == 0


def leader_of(cluster: Cluster, topic: str) -> ClusterNode:
    return cluster.broker(described(cluster, topic)[0].leader_id)


def move(cluster: Cluster, topic: str, leader: ClusterNode) -> int:
    """Returns the epoch in which it leads."""
    others = [each.node_id for each in cluster.brokers if each is not leader]
    reassign(cluster, topic, [leader.node_id, *others])
    ask(cluster, ElectLeadersRequest(0, [TopicPartitions(topic, [0])], 30_000))
    until(lambda: leader_of(cluster, topic) is leader, f"{leader.node_id} leads")
    return int(described(cluster, topic)[0].leader_epoch)


def works(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """How many segments each broker has begun to copy, and to delete."""
    found = {}
    for broker in cluster.brokers:
        counts = tiered_of(broker).counts.of(topic)
        found[broker.node_id] = counts.copy_requests, counts.delete_requests
    return found


def pruning_epochs(lines: str, topic: str) -> list[int]:
    """The leader epochs of those that have pruned, by the log."""
    found = re.findall(rf"WAL pruned .*topic={topic} .*leader_epoch=(\d+)", lines)
    return [int(epoch) for epoch in found]


def test_a_new_leader_goes_on_where_tiered_segments_end(cluster: Cluster) -> None:
    # ENG-44, MRF-26
    create_consolidating(cluster, "moving")
    end = 0
    for turn, leader in enumerate(cluster.brokers):
        epoch = move(cluster, "moving", leader)
        tiered_end = max(end - TAIL, 0)
        until_covered(leader, "moving", tiered_end)
        assert covered(leader, "moving") == tiered_end
        if end:
            # It begins behind the highest tiered offset.
            until(lambda node=leader: assembled(node.directory, "moving"), "it has begun")
            assert assembled(leader.directory, "moving") == [tiered_end]
        for other in cluster.brokers:
            if other is not leader:
                until(
                    lambda node=other: not assembly_directories(node.directory, "moving"),
                    "the old leader has let go",
                )
        before = works(cluster, "moving")
        next_end = tiered_end + 3 * PER_SEGMENT + TAIL
        with logged() as lines, ZoneClient(cluster.brokers[turn - 1].bootstrap) as client:
            fill(client, "moving", end, next_end)
            until_covered(leader, "moving", next_end - TAIL)
            until_pruned(client, "moving", next_end - TAIL)
            until(lambda: pruning_epochs(lines(), "moving"), "the log tells of it")
            assert set(pruning_epochs(lines(), "moving")) == {epoch}
            made = [one for one in segments(leader, "moving") if one.start_offset >= tiered_end]
            assert made[0].start_offset == tiered_end
            assert {(one.broker_id, one.copier_epoch) for one in made} == {(leader.node_id, epoch)}
            start = next_end - TAIL - PER_SEGMENT
            assert delete_records(client, "moving", start) == start
            until(
                lambda node=leader, start=start: segments(node, "moving")[0].start_offset >= start,
                "segments below the log start expire",
            )
            read_all(client, "moving", start, next_end)
        after = works(cluster, "moving")
        for job in range(2):
            busy = {node for node in after if after[node][job] > before[node][job]}
            assert busy == {leader.node_id}, (job, before, after)
        end = next_end


def test_all_brokers_read_what_is_tiered(cluster: Cluster) -> None:
    create_consolidating(cluster, "known")
    end = 2 * PER_SEGMENT + 1
    with ZoneClient(cluster.brokers[0].bootstrap) as client:
        fill(client, "known", 0, end)
        until_pruned(client, "known", end - 1)
    for broker in cluster.brokers:
        with ZoneClient(broker.bootstrap) as client:
            read_all(client, "known", 0, end)
