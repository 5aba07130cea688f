"""Sends encoded batches to classic topics, through the brokers; resends are stored once.

One batch of a partition is in flight at a time, with the sequence numbers of one idempotent
producer; partitions do not wait for one another. A task that is run again is another producer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from skylog.bulk.encode import RowBatch
from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.batch import SEQUENCE_MAX
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.init_producer_id_response import InitProducerIdResponse
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.messages.produce_response import ProduceResponse

_ALL_IN_SYNC: Final = -1
_REQUEST_MS: Final = 30_000
_DELIVERY_MS: Final = 120_000


class BatchProducer:
    """Sends batches as one idempotent producer."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._identity: tuple[int, int] | None = None
        self._identifying = asyncio.Lock()
        self._lanes: dict[TopicPartition, asyncio.Lock] = {}
        self._sequences: dict[TopicPartition, int] = {}

    async def send(self, batches: Sequence[RowBatch]) -> None:
        """Send batches, those of a partition in order; all are stored when this returns."""
        lanes: dict[TopicPartition, list[RowBatch]] = {}
        for batch in batches:
            lanes.setdefault(TopicPartition(batch.topic, batch.partition), []).append(batch)
        sending = [self._send_lane(partition, waiting) for partition, waiting in lanes.items()]
        for outcome in await asyncio.gather(*sending, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _send_lane(self, partition: TopicPartition, batches: Sequence[RowBatch]) -> None:
        async with self._lanes.setdefault(partition, asyncio.Lock()):
            for batch in batches:
                await self._send(partition, batch)

    async def _send(self, partition: TopicPartition, batch: RowBatch) -> None:
        producer_id, epoch = await self._identify()
        sequence = self._sequences.get(partition, 0)
        records = batch.joined(producer_id, epoch, sequence)

        async def attempt() -> None:
            try:
                await self._produce(partition, records)
            except KafkaError as error:
                if error.retriable:
                    self._cluster.metadata.forget(partition.topic)
                raise

        await self._cluster.retry(attempt, timeout_ms=_DELIVERY_MS)
        self._sequences[partition] = (sequence + batch.count) & SEQUENCE_MAX

    async def _produce(self, partition: TopicPartition, records: bytes) -> None:
        connection, _ = await self._cluster.leader(partition)
        topic = await self._cluster.topic(partition.topic)
        data = TopicProduceData(
            topic.name, topic.topic_id, [PartitionProduceData(partition.partition, records)]
        )
        request = ProduceRequest(acks=_ALL_IN_SYNC, timeout_ms=_REQUEST_MS, topic_data=[data])
        version_max = 12 if topic.topic_id == ZERO_UUID else None
        answer: ProduceResponse = await connection.request(request, version_max=version_max)
        found = answer.responses[0].partition_responses[0]
        error = error_of(found.error_code, f"partition {partition}: {found.error_message or ''}")
        # A repeated batch that the broker already has is stored.
        if error is not None and error.code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise error

    async def _identify(self) -> tuple[int, int]:
        async with self._identifying:
            if self._identity is None:
                self._identity = await self._cluster.retry(self._new_identity)
            return self._identity

    async def _new_identity(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        connection = await self._cluster.any_node()
        answer: InitProducerIdResponse = await connection.request(request)
        check(answer.error_code, "no producer id")
        return answer.producer_id, answer.producer_epoch
