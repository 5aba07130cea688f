"""Kafka's scenarios of moving tiered partitions: replicas are added, moved and removed.

A new replica fetches what is local at the leader, and nothing of what is remote.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from skylog.testing.cluster import Cluster
from tests.integration.racks_cluster import shown_everywhere
from tests.integration.replicated_cluster import CALM, replica
from tests.interop.clients import Confluent
from tests.interop.support import JavaTools
from tests.interop.test_tiered_tools import TINY, numbers, values, wait
from tests.interop.tiered import tiered

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

RECORDS = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {**tiered(tmp_path_factory.mktemp("store")), **CALM}
    settings["rlmm.config.remote.log.metadata.topic.replication.factor"] = "3"
    with Cluster(3, 1, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def tool(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    log = tmp_path_factory.mktemp("tools") / "log"
    tools = JavaTools(cluster.bootstrap, log, lambda: shown_everywhere(cluster))
    yield tools
    tools.close()


def local(cluster: Cluster, broker: int, topic: str) -> list[int]:
    """The base offsets of the segments that a broker has of a topic."""
    directory = cluster.broker(broker).directory / f"{topic}-0"
    return sorted(int(path.name[:20]) for path in directory.glob("*.log"))


def produce(cluster: Cluster, topic: str, found: range) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 1})
    for number in found:
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def filled(tool: JavaTools, cluster: Cluster, topic: str, assignment: str) -> None:
    """A topic whose leader has nothing but the active segment."""
    given = [part for item in TINY.items() for part in ("--config", "=".join(item))]
    tool("topics", "--create", "--topic", topic, "--replica-assignment", assignment, *given)
    shown_everywhere(cluster)
    produce(cluster, topic, range(RECORDS))
    for broker in map(int, assignment.split(":")):
        await_local(cluster, broker, topic, RECORDS - 1)


def await_local(cluster: Cluster, broker: int, topic: str, base: int) -> None:
    wait(
        lambda: local(cluster, broker, topic) == [base],
        lambda: f"{topic} on {broker}: {local(cluster, broker, topic)}, not {[base]}",
    )


def reassign(tool: JavaTools, directory: Path, topic: str, replicas: list[int]) -> None:
    plan = directory / f"{topic}.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": replicas}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    where = ("--reassignment-json-file", str(plan))
    tool("reassign-partitions", *where, "--execute")
    wait(
        lambda: "is completed" in tool("reassign-partitions", *where, "--verify").out,
        lambda: tool("reassign-partitions", *where, "--verify").out,
    )


def elect(tool: JavaTools, topic: str) -> None:
    tool(
        "leader-election",
        *("--election-type", "preferred", "--topic", topic, "--partition", "0"),
    )


def leader(cluster: Cluster, topic: str) -> int:
    for broker in cluster.brokers:
        found = replica(broker, topic)
        if found is not None and found.is_leader:
            return broker.node_id
    return -1


def await_leader(cluster: Cluster, topic: str, wanted: int) -> None:
    wait(lambda: leader(cluster, topic) == wanted, lambda: f"{leader(cluster, topic)} leads")


def check_goes_on(cluster: Cluster, topic: str, leading: int) -> None:
    """Everything is there, and the leader copies more."""
    assert values(Confluent(cluster.bootstrap), topic, RECORDS) == numbers(range(RECORDS))
    produce(cluster, topic, range(RECORDS, RECORDS + 3))
    await_local(cluster, leading, topic, RECORDS + 2)
    everything = numbers(range(RECORDS + 3))
    assert values(Confluent(cluster.bootstrap), topic, RECORDS + 3) == everything


def test_reassign_replica_expand(tool: JavaTools, cluster: Cluster, tmp_path: Path) -> None:
    filled(tool, cluster, "expand", "1")
    reassign(tool, tmp_path, "expand", [2, 1])
    assert local(cluster, 2, "expand") == [RECORDS - 1]
    elect(tool, "expand")
    await_leader(cluster, "expand", 2)
    check_goes_on(cluster, "expand", 2)


def test_reassign_replica_move(tool: JavaTools, cluster: Cluster, tmp_path: Path) -> None:
    filled(tool, cluster, "move", "1")
    reassign(tool, tmp_path, "move", [3])
    await_leader(cluster, "move", 3)
    assert local(cluster, 3, "move")[0] == RECORDS - 1
    check_goes_on(cluster, "move", 3)


def test_reassign_replica_shrink(tool: JavaTools, cluster: Cluster, tmp_path: Path) -> None:
    filled(tool, cluster, "shrink", "1:2")
    reassign(tool, tmp_path, "shrink", [2])
    await_leader(cluster, "shrink", 2)
    check_goes_on(cluster, "shrink", 2)


def test_a_follower_leads_when_the_leader_dies(tool: JavaTools, cluster: Cluster) -> None:
    """The new leader has all that the old one had copied, and deletes nothing of it."""
    filled(tool, cluster, "die", "1:2:3")
    cluster.broker(1).stop()
    try:
        deadline = time.monotonic() + 60
        while leader_but(cluster, "die", 1) < 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        leading = leader_but(cluster, "die", 1)
        check_goes_on(cluster, "die", leading)
    finally:
        cluster.broker(1).start()


def leader_but(cluster: Cluster, topic: str, gone: int) -> int:
    for broker in cluster.brokers:
        if broker.node_id == gone:
            continue
        found = replica(broker, topic)
        if found is not None and found.is_leader:
            return broker.node_id
    return -1
