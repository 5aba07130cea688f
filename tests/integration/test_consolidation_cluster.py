"""Consolidation on three brokers: whoever leads a partition puts its segments together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.testing.cluster import Cluster, ClusterNode
from skylog.tiered.segments import RemoteSegment, SegmentState
from skylog.wire.batch import split_batches
from tests.consolidating import CONSOLIDATING, SETTINGS
from tests.integration import racks_cluster
from tests.integration.racks_cluster import ZoneClient
from tests.integration.tiered_topics import PER_SEGMENT, fill, read_all
from tests.integration.tiers_by_hand import key_of, leader_of, tiered
from tests.waiting import until

MORE = {
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    # What is copied stays in the WAL, too: the tests compare both.
    "diskless.tiering.prune.interval.ms": "3600000",
    **racks_cluster.CALM,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {**SETTINGS, **MORE}
    with racks_cluster.racks_cluster(3, ("a", "b", "c"), settings=settings) as running:
        yield running


def create(cluster: Cluster, topic: str, partitions: int = 1, **configs: str) -> None:
    given = {key.replace(".", "_"): text for key, text in CONSOLIDATING.items()}
    answer = racks_cluster.create(cluster, topic, partitions, **{**given, **configs})
    assert answer.error_code == 0, answer


def segments(broker: ClusterNode, topic: str, index: int = 0) -> list[RemoteSegment]:
    remote = tiered(broker).logs.get(key_of(broker, topic, index))
    return [] if remote is None else list(remote.all())


def until_copied(broker: ClusterNode, topic: str, end: int) -> list[RemoteSegment]:
    """All segments, none of which is being copied."""

    def is_copied() -> bool:
        found = segments(broker, topic)
        return (
            bool(found)
            and found[-1].end_offset + 1 >= end
            and all(one.state is SegmentState.COPY_FINISHED for one in found)
        )

    until(is_copied, f"{topic} is copied up to {end}")
    return segments(broker, topic)


def move(cluster: Cluster, topic: str, to: ClusterNode) -> None:
    """Let a broker lead, with the only replica."""
    node_id = to.node.settings.node.node_id
    answer = racks_cluster.reassign(cluster, topic, [node_id])
    assert answer.error_code == 0, answer
    until(lambda: racks_cluster.described(cluster, topic)[0].leader_id == node_id)


def assembled(broker: ClusterNode, topic: str) -> list[str]:
    root = Path(broker.node.settings.node.log_dirs[0]) / "diskless-tiering"
    return sorted(path.name for path in root.glob(f"{topic}-*/*.log"))


def check_gapless(broker: ClusterNode, topic: str, found: list[RemoteSegment]) -> None:
    """Segments follow each other, and have the bytes that consumers get."""
    with ZoneClient(broker.bootstrap) as client:
        end = 0
        for one in found:
            assert one.start_offset == end
            end = one.end_offset + 1
            log = bytes(broker.run(tiered(broker).storage.fetch(one, 0, one.size)))
            served, at = b"", one.start_offset
            while at < end:
                records = client.fetch(topic, at, wait_ms=1000).records
                for each in split_batches(records):
                    if at <= each.base_offset < end:
                        served += bytes(each.buffer)
                        at = each.next_offset
            assert log == served


def test_a_new_leader_begins_where_the_segments_end(cluster: Cluster) -> None:
    topic = "moved"
    create(cluster, topic)
    first = leader_of(cluster, topic)
    other = next(broker for broker in cluster.brokers if broker is not first)
    with ZoneClient(first.bootstrap) as client:
        fill(client, topic, 0, 2 * PER_SEGMENT + 2)
        until_copied(first, topic, 2 * PER_SEGMENT)
        until(lambda: assembled(first, topic) == [f"{10:020d}.log"])
        move(cluster, topic, other)
        until(lambda: assembled(first, topic) == [])
        until(lambda: assembled(other, topic) == [f"{10:020d}.log"])
        fill(client, topic, 2 * PER_SEGMENT + 2, 4 * PER_SEGMENT + 1)
    found = until_copied(other, topic, 4 * PER_SEGMENT)
    epoch = racks_cluster.described(cluster, topic)[0].leader_epoch
    assert [one.copier_epoch for one in found] == [0, 0, epoch, epoch]
    assert {one.epochs[0][0] for one in found} == {0}
    check_gapless(other, topic, found)


def test_leaders_that_change_all_the_while_leave_one_gapless_run(cluster: Cluster) -> None:
    topic, end = "restless", 40 * PER_SEGMENT
    create(cluster, topic)
    failures: list[BaseException] = []

    def produce() -> None:
        try:
            with ZoneClient(cluster.brokers[0].bootstrap) as client:
                fill(client, topic, 0, end + 1)
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    producing = threading.Thread(target=produce)
    producing.start()
    moves = 0
    while producing.is_alive() or moves < 6:
        move(cluster, topic, cluster.brokers[moves % 3])
        moves += 1
    producing.join()
    assert failures == []
    last = leader_of(cluster, topic)
    found = until_copied(last, topic, end)
    ends = [one.end_offset + 1 for one in found]
    assert ends[-1] == end
    # An older leader's last copy may have been finished after the next one had begun.
    covered = 0
    for one in found:
        assert one.start_offset <= covered
        covered = max(covered, one.end_offset + 1)
    with ZoneClient(last.bootstrap) as client:
        read_all(client, topic, 0, end)
    others = [broker for broker in cluster.brokers if broker is not last]
    until(lambda: not any(assembled(broker, topic) for broker in others))
    for broker in cluster.brokers:
        assert tiered(broker).consolidating.assembler.stats.spoiled == 0


def test_each_leader_assembles_its_own_partitions_only(cluster: Cluster) -> None:
    topic = "spread"
    create(cluster, topic, 6)
    with ZoneClient(cluster.brokers[0].bootstrap) as client:
        for index in range(6):
            assert client.produce(topic, b"1", b"2", index=index).error_code == 0
    led: dict[int, set[str]] = {}
    for part in racks_cluster.described(cluster, topic):
        led.setdefault(part.leader_id, set()).add(f"{topic}-{part.partition_index}")

    def found() -> dict[int, set[str]]:
        by_broker: dict[int, set[str]] = {}
        for broker in cluster.brokers:
            settings = broker.node.settings.node
            root = Path(settings.log_dirs[0]) / "diskless-tiering"
            for path in root.glob(f"{topic}-*/*.log"):
                name = path.parent.name.rpartition(".")[0]
                by_broker.setdefault(settings.node_id, set()).add(name)
        return by_broker

    until(lambda: found() == led)
    assert len(led) > 1
