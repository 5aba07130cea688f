"""What a client knows of the cluster: brokers, topics, leaders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from skylog.client.errors import error_of
from skylog.client.settings import Address
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class TopicPartition(NamedTuple):
    """One partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as clients see it."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Where a partition is; ``leader`` is −1 while there is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()

    @classmethod
    def of(cls, answer: MetadataResponsePartition) -> PartitionInfo:
        return cls(
            answer.partition_index,
            answer.leader_id,
            answer.leader_epoch,
            tuple(answer.replica_nodes),
            tuple(answer.isr_nodes),
            tuple(answer.offline_replicas),
        )


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic; ``topic_id`` is zero at brokers that have no ids."""

    name: str
    topic_id: Uuid
    internal: bool
    partitions: dict[int, PartitionInfo] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: MetadataResponseTopic) -> TopicInfo:
        partitions = {part.partition_index: PartitionInfo.of(part) for part in answer.partitions}
        return cls(
            answer.name or "",
            answer.topic_id,
            answer.is_internal,
            dict(sorted(partitions.items())),
        )


class Metadata:
    """Kept up to date by every Metadata answer."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.errors: dict[str, KafkaError] = {}
        self._updated: dict[str, float] = {}

    def update(self, answer: MetadataResponse, now: float, *, whole: bool) -> None:
        """Take an answer; ``whole`` if it lists all topics, so that others are gone."""
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        self.brokers = {
            broker.node_id: Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
            for broker in answer.brokers
        }
        if whole:
            self.topics.clear()
            self.errors.clear()
        for topic in answer.topics:
            self._update_topic(topic, now)

    def _update_topic(self, answer: MetadataResponseTopic, now: float) -> None:
        name = answer.name or ""
        self._updated[name] = now
        error = error_of(answer.error_code, f"topic {name}")
        if error is not None and error.code is not ErrorCode.LEADER_NOT_AVAILABLE:
            self.forget(name)
            self.errors[name] = error
            return
        self.errors.pop(name, None)
        self.topics[name] = TopicInfo.of(answer)

    def forget(self, topic: str) -> None:
        """Ask again before the topic is used the next time."""
        self.topics.pop(topic, None)

    def fresh(self, topic: str, now: float, age_ms_max: int) -> TopicInfo | None:
        """The topic, unless it is unknown or was heard of too long ago."""
        if now - self._updated.get(topic, now) > age_ms_max / 1000:
            return None
        return self.topics.get(topic)
