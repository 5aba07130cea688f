"""Three brokers with replicated topics, and helpers for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skylog.kernel.errors import ErrorCode
from skylog.replication.partition import Partition
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.integration.broker_client import batch, produce_request
from tests.integration.racks_cluster import ZoneClient, ask, described
from tests.waiting import until

RETRIED = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE}
)
# No broker is fenced or leaves the ISR because the machine is busy.
CALM: Mapping[str, str] = {
    "broker.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "60000",
    "replica.fetch.backoff.ms": "100",
}
# Failures are detected soon.
QUICK: Mapping[str, str] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "replica.fetch.backoff.ms": "100",
}


def create(
    cluster: Cluster, name: str, partitions: int = 1, factor: int = 3, **configs: str
) -> None:
    """A classic topic that every broker knows; dots of settings are underscores."""
    wanted = CreatableTopic(
        name,
        partitions,
        factor,
        configs=[CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()],
    )

    def made() -> bool:
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
        answer = ask(cluster, request).topics[0]
        # On a busy machine a broker may be fenced for a moment.
        assert answer.error_code in (0, ErrorCode.INVALID_REPLICATION_FACTOR), answer
        return bool(answer.error_code == 0)

    until(made, f"{name} is made")
    for broker in cluster.brokers:
        if broker.running:
            until(lambda node=broker: node.node.has_topic(name), "every broker knows it")


def replica(broker: ClusterNode, topic: str, index: int = 0) -> Partition | None:
    """A broker's replica."""
    return broker.node._services.replicas.get(topic, index)


def led(cluster: Cluster, topic: str, index: int = 0) -> ClusterNode:
    """The broker that leads a partition and has learned it."""
    found: list[ClusterNode] = []

    def leads() -> bool:
        for broker in cluster.brokers:
            copy = replica(broker, topic, index) if broker.running else None
            state = described(cluster, topic)[index]
            if copy is not None and copy.is_leader and state.leader_id == broker.node_id:
                found.append(broker)
                return True
        return False

    until(leads, f"{topic}-{index} has a leader")
    return found[0]


def followers(cluster: Cluster, topic: str, index: int = 0) -> list[ClusterNode]:
    leader = led(cluster, topic, index)
    found = [each for each in cluster.brokers if each.running and each is not leader]
    return [each for each in found if replica(each, topic, index) is not None]


def in_sync(cluster: Cluster, topic: str, index: int = 0) -> set[int]:
    return set(described(cluster, topic)[index].isr_nodes)


def produce(
    cluster: Cluster, topic: str, values: Iterable[bytes], *, acks: int = -1, index: int = 0
) -> list[Any]:
    """One batch for each value, to the leader; returns the responses."""
    answers = []
    for value in values:
        answers.append(send(led(cluster, topic, index), topic, [value], acks=acks, index=index))
        assert answers[-1].error_code == 0, answers[-1]
    return answers


def send(
    broker: ClusterNode, topic: str, values: Iterable[bytes], *, acks: int = -1, index: int = 0
) -> Any:
    with ZoneClient(broker.bootstrap) as client:
        request = produce_request([(topic, index, batch(*values))], acks)
        request.timeout_ms = 30_000
        return client.ask(request, 12).responses[0].partition_responses[0]


def stop_fetching(broker: ClusterNode) -> None:
    """From now on this broker fetches nothing, as if its connections hung."""
    broker.run(broker.node._services.replication.fetchers.close())


def settled(cluster: Cluster, topic: str, index: int = 0) -> None:
    """Wait until all replicas are in sync and have all records."""

    def same() -> bool:
        state = described(cluster, topic)[index]
        if set(state.isr_nodes) != set(state.replica_nodes):
            return False
        copies = [replica(cluster.broker(node), topic, index) for node in state.replica_nodes]
        places = {(c.log.log_end_offset, c.log.high_watermark) for c in copies if c is not None}
        return None not in copies and len(places) == 1 and len(set(*places)) == 1

    until(same, f"all replicas of {topic}-{index} are the same")


def bytes_of(broker: ClusterNode, topic: str, index: int = 0) -> bytes:
    """All batches of a partition, as on disk; segments may end at different offsets."""
    directory = Path(broker.directory) / f"{topic}-{index}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def same_bytes(cluster: Cluster, topic: str, index: int = 0) -> None:
    """Every replica has the same batches; call it when all nodes have been stopped."""
    copies = {broker.node_id: bytes_of(broker, topic, index) for broker in cluster.brokers}
    first = copies[min(copies)]
    assert first
    for node_id, found in copies.items():
        assert found == first, f"broker {node_id} differs in {topic}-{index}"
