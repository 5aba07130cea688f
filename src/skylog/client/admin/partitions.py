"""Contents of partitions: offsets by time, deleting records, log directories."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import READ_UNCOMMITTED, OffsetAtTime, by_topic, list_offsets
from skylog.kernel.errors import KafkaError
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.delete_records_response import DeleteRecordsResponse
from skylog.wire.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from skylog.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """A replica in a log directory."""

    size: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker; sizes are −1 if the broker does not return them."""

    path: str
    error: KafkaError | None
    replicas: dict[TopicPartition, ReplicaSize] = field(default_factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1


class PartitionAdmin:
    """Requests go to the leaders, or to the given brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def offsets(
        self, times: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAtTime | KafkaError]:
        """Offsets by time, or by LATEST, EARLIEST, MAX_TIMESTAMP."""
        return await list_offsets(self._cluster, times, isolation)

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete records before the offsets (−1: all); returns the new first offsets."""
        found: dict[TopicPartition, int | KafkaError] = {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for key, offset in before.items():
            try:
                _, leader = await self._cluster.retry(lambda: self._cluster.leader(key))  # noqa: B023
                by_leader.setdefault(leader.leader, {})[key] = offset
            except KafkaError as error:
                found[key] = error
        for node_id, offsets in by_leader.items():
            found |= await self._delete_at(node_id, offsets)
        return found

    async def _delete_at(
        self, node_id: int, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        timeout_ms = self._cluster.settings.request_timeout_ms
        topics = [
            DeleteRecordsTopic(
                name,
                [
                    DeleteRecordsPartition(index, offsets[TopicPartition(name, index)])
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(offsets).items()
        ]
        try:
            connection = await self._cluster.node(node_id)
            answer: DeleteRecordsResponse = await connection.request(
                DeleteRecordsRequest(topics, timeout_ms), timeout_ms=timeout_ms
            )
        except KafkaError as error:
            return dict.fromkeys(offsets, error)
        found: dict[TopicPartition, int | KafkaError] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                key = TopicPartition(topic.name, part.partition_index)
                error_or_none = error_of(part.error_code, f"partition {key}")
                found[key] = error_or_none or part.low_watermark
        return found

    async def log_dirs(
        self,
        brokers: Collection[int] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> dict[int, list[LogDir] | KafkaError]:
        """Log directories by broker: of all brokers and partitions, or (not None) of some."""
        if brokers is None:
            await self._cluster.refresh(())
            brokers = sorted(self._cluster.metadata.brokers)
        topics = None
        if partitions is not None:
            topics = [
                DescribableLogDirTopic(name, indexes)
                for name, indexes in by_topic(partitions).items()
            ]
        found: dict[int, list[LogDir] | KafkaError] = {}
        for node_id in brokers:
            try:
                connection = await self._cluster.node(node_id)
                answer: DescribeLogDirsResponse = await connection.request(
                    DescribeLogDirsRequest(topics)
                )
                check(answer.error_code, f"broker {node_id}")
                found[node_id] = [_log_dir(result) for result in answer.results]
            except KafkaError as error:
                found[node_id] = error
        return found


def _log_dir(result: DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, part.partition_index): ReplicaSize(
            part.partition_size, part.offset_lag, part.is_future_key
        )
        for topic in result.topics
        for part in topic.partitions
    }
    error = error_of(result.error_code, result.log_dir)
    return LogDir(result.log_dir, error, replicas, result.total_bytes, result.usable_bytes)
