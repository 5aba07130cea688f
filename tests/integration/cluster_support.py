"""Helpers for tests of clusters: requests to single nodes, and waiting."""

from __future__ import annotations

from typing import Any, TypeVar

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.schema import Message
from tests.integration.wire_client import Wire
from tests.waiting import until

T = TypeVar("T")
SECONDS_MAX = 90.0


def ask(node: ClusterNode | str, request: Message, version: int | None = None) -> Any:
    """One request on a new connection."""
    address = node if isinstance(node, str) else node.bootstrap
    with Wire(address, seconds_max=SECONDS_MAX) as wire:
        return wire.ask(request, version)


def create(
    node: ClusterNode, name: str, partitions: int = 3, replicas: int = 1
) -> tuple[int, str | None]:
    """Create a topic through one broker; returns its error and message."""
    topic = CreatableTopic(name, partitions, replicas)
    answer = ask(node, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    return answer.topics[0].error_code, answer.topics[0].error_message


def created(node: ClusterNode, name: str, partitions: int = 3, replicas: int = 1) -> None:
    """Create a topic while nodes start and stop.

    A controller that stops may have created it without a response; the next one reports that it
    exists. On a busy machine a broker may be fenced for a moment, and too few are left.
    """
    done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    until(lambda: create(node, name, partitions, replicas)[0] in done)


def leaders(node: ClusterNode, topic: str) -> list[int]:
    """The leader of each partition, as one broker shows it; empty for an unknown topic."""
    wanted = [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = ask(node, request)
    parts = sorted(answer.topics[0].partitions, key=lambda part: part.partition_index)
    return [part.leader_id for part in parts]


def alive(node: ClusterNode) -> set[int]:
    return {each.broker_id for each in ask(node, DescribeClusterRequest()).brokers}


def registered(node: ClusterNode) -> dict[int, bool]:
    """Every broker that is registered, and whether it is fenced."""
    answer = ask(node, DescribeClusterRequest(include_fenced_brokers=True))
    return {each.broker_id: each.is_fenced for each in answer.brokers}


def describe_quorum(node: ClusterNode) -> Any:
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    return ask(node, request).topics[0].partitions[0]


def epoch(cluster: Cluster, node_id: int) -> int:
    """A broker's epoch, from the metadata of any broker."""
    node = next(each for each in cluster.brokers if each.running)
    found = node.node.image.broker(node_id)
    return -1 if found is None else found.epoch
