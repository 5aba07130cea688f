"""All partitions of this broker: found by name or id, created and deleted as metadata says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.log import LogConfig
from skylog.log.manager import LogManager
from skylog.replication.partition import Partition

NO_EPOCH = -1


class PartitionState(Protocol):
    """What the metadata log says of a partition."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def replicas(self) -> Iterable[int]: ...
    @property
    def isr(self) -> Iterable[int]: ...


class ReplicaManager:
    """Keeps the partitions that this broker holds."""

    def __init__(self, node_id: int, logs: LogManager) -> None:
        self._node_id = node_id
        self._logs = logs
        self._topics: dict[str, dict[int, Partition]] = {}

    def assign(
        self, topic: str, index: int, topic_id: Uuid, state: PartitionState, config: LogConfig
    ) -> Partition | None:
        """Bring a partition in line with metadata; None when it does not live here."""
        partitions = self._topics.setdefault(topic, {})
        partition = partitions.get(index)
        replicas, isr = tuple(state.replicas), tuple(state.isr)
        if self._node_id not in replicas:
            if partition is not None:
                self._drop(partition)
            return None
        if partition is None:
            log = self._logs.get_or_create(topic, index, topic_id, config)
            partition = Partition(self._node_id, topic, index, topic_id, log)
            partitions[index] = partition
        partition.update(state.leader, state.leader_epoch, replicas, isr)
        return partition

    def configure(self, topic: str, config: LogConfig) -> None:
        """A topic's settings changed."""
        for partition in self._topics.get(topic, {}).values():
            partition.log.config = config

    def delete_topic(self, topic: str) -> None:
        for partition in tuple(self._topics.get(topic, {}).values()):
            self._drop(partition)
        self._topics.pop(topic, None)

    def _drop(self, partition: Partition) -> None:
        partition.mark_deleted()
        del self._topics[partition.topic][partition.index]
        self._logs.delete(partition.topic, partition.index)

    def get(self, topic: str, index: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return partitions.get(index) if partitions else None

    def __len__(self) -> int:
        """How many partitions there are; may be asked from any thread."""
        return sum(map(len, tuple(self._topics.values())))

    def leader_of(self, topic: str, index: int, client_epoch: int = NO_EPOCH) -> Partition:
        """The partition that this broker leads, or Kafka's error for why it does not serve it."""
        partition = self.get(topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if client_epoch != NO_EPOCH:
            if client_epoch < partition.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            if client_epoch > partition.leader_epoch:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition
