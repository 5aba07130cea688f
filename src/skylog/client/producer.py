"""A producer: records are collected in a batch per partition, with one batch per partition in
flight.

One batch at a time keeps the order of records and sequence numbers across retries; meanwhile the
next one fills.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple

from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.client.partitioner import StickyPartitioner, partition_of_key
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.batch import HEADER_BYTES, SEQUENCE_MAX, Compression
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.init_producer_id_response import InitProducerIdResponse
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.messages.produce_response import PartitionProduceResponse, ProduceResponse
from skylog.wire.records import Header, encode_batch

# Length, timestamp, offset and sizes of a record take at most this together.
_RECORD_OVERHEAD_BYTES: Final = 36
# The broker no longer knows the sequence: start over with another producer id.
_SEQUENCE_LOST: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How to send. ``acks`` is −1 (all in-sync replicas), 1 or 0; idempotence needs −1."""

    acks: int = -1
    linger_ms: int = 5
    batch_bytes: int = 256 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    request_bytes_max: int = 1024 * 1024
    compression: Compression = Compression.NONE
    idempotent: bool = True
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000


class RecordMetadata(NamedTuple):
    """Where a record was stored; ``offset`` is −1 if the broker did not return it."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class _Producer(NamedTuple):
    producer_id: int
    epoch: int


_NO_PRODUCER: Final = _Producer(-1, -1)


@dataclass(slots=True)
class _Batch:
    """Records that are sent together. Once sent, its sequence is fixed."""

    deadline: float
    pairs: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    headers: list[Sequence[Header]] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    results: list[asyncio.Future[RecordMetadata]] = field(default_factory=list)
    size: int = HEADER_BYTES
    producer: _Producer = _NO_PRODUCER
    sequence: int = -1


class _Lane:
    """One partition: its queued batches, and the task that sends them."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.batches: deque[_Batch] = deque()
        self.full = asyncio.Event()
        self.producer = _NO_PRODUCER
        self.sequence = 0
        self.task: asyncio.Task[None] | None = None


class Producer:
    """Sends records. Use as ``async with``, or call ``close``."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or ProducerSettings()
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._sticky = StickyPartitioner(cluster.system.rng)
        self._producer = _NO_PRODUCER
        self._producer_lock = asyncio.Lock()
        self._buffered = 0
        self._room = asyncio.Condition()
        self._flushing = 0
        self._closed = False
        if self._settings.idempotent and self._settings.acks != -1:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "an idempotent producer needs acks=all")

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record; waits only for buffer space. The future returns where it was stored."""
        if self._closed:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the producer is closed")
        size = _RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        size += sum(len(name) * 4 + len(data or b"") + 10 for name, data in headers)
        if size + HEADER_BYTES > self._settings.request_bytes_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {size} bytes; a request may have {self._settings.request_bytes_max}",
            )
        chosen = await self._choose(topic, key, partition)
        await self._reserve(size)
        batch = self._open_batch(chosen, size)
        batch.pairs.append((key, value))
        batch.headers.append(headers)
        now_ms = self._cluster.system.clock.now_ms()
        batch.timestamps.append(now_ms if timestamp is None else timestamp)
        batch.size += size
        result: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        batch.results.append(result)
        if batch.size >= self._settings.batch_bytes:
            self._lanes[chosen].full.set()
            self._sticky.unstick(*chosen)
        return result

    async def flush(self) -> None:
        """Send all queued records, and wait until each is stored or has failed."""
        self._flushing += 1
        try:
            for lane in self._lanes.values():
                lane.full.set()
            tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
            if tasks:
                await asyncio.wait(tasks)
        finally:
            self._flushing -= 1

    async def close(self) -> None:
        """Flush and accept no more records."""
        self._closed = True
        await self.flush()

    async def _choose(self, topic: str, key: bytes | None, partition: int | None) -> TopicPartition:
        info = await self._cluster.retry(lambda: self._cluster.topic(topic, allow_create=True))
        if partition is None and key is not None:
            partition = partition_of_key(key, len(info.partitions))
        elif partition is None:
            led = [index for index, part in info.partitions.items() if part.leader >= 0]
            partition = self._sticky.choose(topic, led or list(info.partitions))
        elif partition not in info.partitions:
            self._cluster.metadata.forget(topic)
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic} has {len(info.partitions)} partitions and no {partition}",
            )
        return TopicPartition(topic, partition)

    async def _reserve(self, size: int) -> None:
        async with self._room:
            await self._room.wait_for(
                lambda: not self._buffered or self._buffered + size <= self._settings.buffer_bytes
            )
            self._buffered += size

    def _open_batch(self, partition: TopicPartition, size: int) -> _Batch:
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = _Lane(partition)
        last = lane.batches[-1] if lane.batches else None
        if last is None or last.size + size > self._settings.batch_bytes:
            if last is not None:
                lane.full.set()
            patience = self._settings.delivery_timeout_ms / 1000
            last = _Batch(self._cluster.system.clock.monotonic() + patience)
            lane.batches.append(last)
        if lane.task is None:
            lane.task = asyncio.ensure_future(self._drain(lane))
        return last

    # Sending ------------------------------------------------------------------------------

    async def _drain(self, lane: _Lane) -> None:
        """Send a lane's batches one after another until none is left."""
        try:
            while lane.batches:
                await self._linger(lane)
                batch = lane.batches.popleft()
                self._sticky.unstick(*lane.partition)
                try:
                    await self._deliver(lane, batch)
                finally:
                    async with self._room:
                        self._buffered -= batch.size - HEADER_BYTES
                        self._room.notify_all()
        finally:
            lane.task = None
            for batch in lane.batches:
                _refuse(batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the producer ended"))
            lane.batches.clear()

    async def _linger(self, lane: _Lane) -> None:
        if self._flushing or len(lane.batches) > 1 or not self._settings.linger_ms:
            await asyncio.sleep(0)  # let other ready senders join this batch
            return
        if lane.batches[0].size < self._settings.batch_bytes:
            lane.full.clear()
            try:
                async with asyncio.timeout(self._settings.linger_ms / 1000):
                    await lane.full.wait()
            except TimeoutError:
                return

    async def _deliver(self, lane: _Lane, batch: _Batch) -> None:
        """Send a batch, with retries, and resolve its records' futures."""
        attempt = 0
        ambiguous = False
        while True:
            try:
                answer = await self._attempt(lane, batch)
            except KafkaError as error:
                ambiguous = ambiguous or error.ambiguous
                failure = error
            except BaseException as error:
                _refuse(batch, error)
                raise
            else:
                if self._settings.idempotent:
                    lane.sequence = (batch.sequence + len(batch.pairs)) & SEQUENCE_MAX
                _settle(batch, lane.partition, answer)
                return
            pause = self._cluster.backoff(attempt)
            late = self._cluster.system.clock.monotonic() + pause > batch.deadline
            if not failure.retriable or late:
                break
            self._cluster.metadata.forget(lane.partition.topic)
            await asyncio.sleep(pause)
            attempt += 1
        if self._settings.idempotent and (ambiguous or failure.code in _SEQUENCE_LOST):
            # The broker's next expected sequence is unknown: start over.
            self._producer = lane.producer = _NO_PRODUCER
        _refuse(batch, failure)

    async def _attempt(self, lane: _Lane, batch: _Batch) -> PartitionProduceResponse | None:
        if self._settings.idempotent and batch.sequence < 0:
            await self._assign_sequence(lane, batch)
        connection, _ = await self._cluster.leader(lane.partition)
        topic = await self._cluster.topic(lane.partition.topic)
        records = encode_batch(
            batch.pairs,
            timestamp=batch.timestamps[0],
            timestamps=batch.timestamps,
            headers=batch.headers,
            codec=self._settings.compression,
            producer_id=batch.producer.producer_id,
            producer_epoch=batch.producer.epoch,
            base_sequence=batch.sequence,
        )
        partition = PartitionProduceData(lane.partition.partition, records)
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[TopicProduceData(topic.name, topic.topic_id, [partition])],
        )
        version_max = 12 if topic.topic_id == ZERO_UUID else None
        if not self._settings.acks:
            await connection.send(request, version_max=version_max)
            return None
        answer: ProduceResponse = await connection.request(request, version_max=version_max)
        found = _only_partition(answer, lane.partition)
        error = error_of(found.error_code, found.error_message or f"partition {lane.partition}")
        # A repeated batch that the broker already has: stored, at an offset it may not know.
        if error is not None and error.code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise error
        return found

    async def _assign_sequence(self, lane: _Lane, batch: _Batch) -> None:
        async with self._producer_lock:
            if self._producer == _NO_PRODUCER:
                self._producer = await self._new_producer()
        if lane.producer != self._producer:
            lane.producer, lane.sequence = self._producer, 0
        batch.producer, batch.sequence = lane.producer, lane.sequence

    async def _new_producer(self) -> _Producer:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)

        async def ask() -> _Producer:
            connection = await self._cluster.any_node()
            answer: InitProducerIdResponse = await connection.request(request)
            check(answer.error_code, "no producer id")
            return _Producer(answer.producer_id, answer.producer_epoch)

        return await self._cluster.retry(ask)


def _only_partition(answer: ProduceResponse, partition: TopicPartition) -> PartitionProduceResponse:
    for topic in answer.responses:
        for found in topic.partition_responses:
            if found.index == partition.partition:
                return found
    raise KafkaError(
        ErrorCode.NETWORK_EXCEPTION, f"no response for partition {partition}", ambiguous=True
    )


def _settle(
    batch: _Batch, partition: TopicPartition, stored: PartitionProduceResponse | None
) -> None:
    """Report to the records of a batch where they are; None if that is unknown."""
    base, appended_ms = -1, -1
    if stored is not None:
        base, appended_ms = stored.base_offset, stored.log_append_time_ms
    for index, result in enumerate(batch.results):
        stamp = batch.timestamps[index] if appended_ms < 0 else appended_ms
        offset = base + index if base >= 0 else -1
        if not result.done():
            result.set_result(RecordMetadata(*partition, offset, stamp))


def _refuse(batch: _Batch, error: BaseException) -> None:
    """Report to the records of a batch why they are not, or may not be, stored."""
    for result in batch.results:
        if isinstance(error, asyncio.CancelledError):
            result.cancel()
        elif not result.done():
            result.set_exception(error)
