"""Topics: create, delete, list, describe, add partitions; and the cluster's nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from skylog.client.admin.ask import ask_any, ask_controller, outcome
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.client.metadata import Broker, TopicInfo
from skylog.client.settings import Address
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_partitions_response import CreatePartitionsResponse
from skylog.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.create_topics_response import CreateTopicsResponse
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.delete_topics_response import DeleteTopicsResponse
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_cluster_response import DescribeClusterResponse


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; −1 uses the broker's default, ``assignments`` replaces both."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result of a creation."""

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The nodes of the cluster."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]


class TopicAdmin:
    """Changes are made by the controller and take effect before the response."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(
        self, topics: Collection[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        timeout_ms = self._cluster.settings.request_timeout_ms
        request = CreateTopicsRequest([_creatable(topic) for topic in topics], timeout_ms)
        request.validate_only = validate_only
        answer: CreateTopicsResponse = await ask_controller(
            self._cluster,
            request,
            lambda got: (topic.error_code for topic in got.topics),
            timeout_ms=timeout_ms,
        )
        return {
            made.name: outcome(made.error_code, made.error_message)
            or CreatedTopic(made.name, made.topic_id, made.num_partitions, made.replication_factor)
            for made in answer.topics
        }

    async def delete(self, names: Collection[str]) -> dict[str, KafkaError | None]:
        timeout_ms = self._cluster.settings.request_timeout_ms
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms
        )
        answer: DeleteTopicsResponse = await ask_controller(
            self._cluster,
            request,
            lambda got: (topic.error_code for topic in got.responses),
            version_min=6,
            timeout_ms=timeout_ms,
        )
        for name in names:
            self._cluster.metadata.forget(name)
        return {
            gone.name or "": outcome(gone.error_code, gone.error_message)
            for gone in answer.responses
        }

    async def list_all(self) -> list[TopicInfo]:
        """All topics that the caller may see, by name."""
        await self._cluster.refresh(None)
        return sorted(self._cluster.metadata.topics.values(), key=lambda topic: topic.name)

    async def describe(self, names: Collection[str]) -> dict[str, TopicInfo | KafkaError]:
        await self._cluster.refresh(list(names))
        metadata = self._cluster.metadata
        return {
            name: metadata.topics.get(name) or metadata.errors[name]
            for name in names
            if name in metadata.topics or name in metadata.errors
        }

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, KafkaError | None]:
        """Increase topics to these partition counts; ``assignments`` are the replicas of new
        partitions."""
        timeout_ms = self._cluster.settings.request_timeout_ms
        topics = []
        for name, count in counts.items():
            placed = (assignments or {}).get(name, ())
            replicas = [CreatePartitionsAssignment(list(ids)) for ids in placed]
            topics.append(CreatePartitionsTopic(name, count, replicas or None))
        answer: CreatePartitionsResponse = await ask_controller(
            self._cluster,
            CreatePartitionsRequest(topics, timeout_ms, validate_only),
            lambda got: (result.error_code for result in got.results),
            timeout_ms=timeout_ms,
        )
        for name in counts:
            self._cluster.metadata.forget(name)
        return {
            grown.name: outcome(grown.error_code, grown.error_message) for grown in answer.results
        }

    async def describe_cluster(self) -> ClusterDescription:
        answer: DescribeClusterResponse = await ask_any(self._cluster, DescribeClusterRequest())
        check(answer.error_code, answer.error_message)
        brokers = (
            Broker(broker.broker_id, Address(broker.host, broker.port), broker.rack)
            for broker in answer.brokers
        )
        return ClusterDescription(
            answer.cluster_id,
            answer.controller_id,
            tuple(sorted(brokers, key=lambda broker: broker.node_id)),
        )


def _creatable(topic: NewTopic) -> CreatableTopic:
    placed = bool(topic.assignments)
    return CreatableTopic(
        topic.name,
        -1 if placed else topic.partitions,
        -1 if placed else topic.replication_factor,
        [
            CreatableReplicaAssignment(index, list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        [CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
    )
