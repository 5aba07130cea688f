"""A partition of an internal topic as the log of a machine.

Machines do not know about replication: ``LedPartition`` is all that their log needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Protocol

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, invariant
from skylog.kernel.executor import Executor
from skylog.kernel.limits import GROUP_LOAD_READ_BYTES
from skylog.log.markers import marker_of
from skylog.log.producers import TransactionEnd
from skylog.log.verification import Origin
from skylog.replicated.log import KeyValue, LoadedBatch, Unsubscribe
from skylog.replicated.machine import InTransaction
from skylog.wire.batch import Batch, split_batches
from skylog.wire.buffers import Buffer
from skylog.wire.records import decode_records, encode_batch


class ReadResult(Protocol):
    """The result of a read: complete batches, one after another."""

    @property
    def buffer(self) -> Buffer: ...


class StoredReader(Protocol):
    """How it is read."""

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> ReadResult: ...


class StoredLog(Protocol):
    """The partition's log, for reading."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def reader(self) -> StoredReader: ...


class LedPartition(Protocol):
    """A partition that this broker leads."""

    @property
    def log(self) -> StoredLog: ...

    def append(self, batches: Sequence[Batch], now_ms: int, origin: Origin = ...) -> Any:
        """Append as the leader; after a KafkaError the log is unchanged."""
        ...

    def append_marker(self, end: TransactionEnd, now_ms: int) -> Any: ...

    def on_commit(self, listener: Callable[[int], None]) -> Unsubscribe:
        """Call ``listener`` with every new high watermark."""
        ...


class TopicLog:
    """Implements ``TransactionalLog`` on a compacted topic; one per term of leadership."""

    def __init__(
        self,
        partition: LedPartition,
        clock: Clock,
        executor: Executor,
        batch_bytes_max: int = 1_048_588,
    ) -> None:
        """``batch_bytes_max`` is the topic's ``max.message.bytes``."""
        self._partition = partition
        self._clock = clock
        self._executor = executor
        self._batch_bytes_max = batch_bytes_max

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._partition.log.high_watermark

    def append(self, records: Sequence[KeyValue]) -> int:
        now_ms = self._clock.now_ms()
        encoded = encode_batch(records, timestamp=now_ms)
        if len(encoded) > self._batch_bytes_max:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        self._partition.append([Batch(encoded)], now_ms)
        return self.end_offset

    def append_in_transaction(self, records: Sequence[KeyValue], transaction: InTransaction) -> int:
        now_ms = self._clock.now_ms()
        encoded = encode_batch(
            records,
            timestamp=now_ms,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transactional=True,
        )
        if len(encoded) > self._batch_bytes_max:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        origin = Origin(
            is_client=False,
            guard=transaction.guard,
            is_verified=transaction.is_verified,
        )
        self._partition.append([Batch(encoded)], now_ms, origin)
        return self.end_offset

    def end_transaction(self, end: TransactionEnd) -> int:
        self._partition.append_marker(end, self._clock.now_ms())
        return self.end_offset

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        return self._partition.on_commit(listener)

    async def read_all(self) -> AsyncIterator[LoadedBatch]:
        log, executor = self._partition.log, self._executor
        offset, end_offset = log.log_start_offset, log.log_end_offset
        async for batches in read_log(log, executor, offset, end_offset, GROUP_LOAD_READ_BYTES):
            for batch in batches:
                yield _loaded(batch)

    def snapshot_due(self, now_ms: int) -> bool:
        return False  # compaction keeps such a topic short

    async def write_snapshot(self, end_offset: int, records: Sequence[KeyValue]) -> None:
        invariant(False, "a compacted topic has no snapshots")


async def read_log(
    log: StoredLog, executor: Executor, offset: int, end_offset: int, read_bytes: int
) -> AsyncIterator[list[Batch]]:
    """The batches between two offsets, as many at a time as ``read_bytes`` hold."""
    while offset < end_offset:
        read = partial(log.reader.read, offset, read_bytes, end_offset, min_one=True, block=True)
        batches = list(split_batches((await executor.run(read)).buffer))
        if not batches or batches[-1].next_offset <= offset:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"nothing to read at {offset}")
        offset = batches[-1].next_offset
        yield batches


def _loaded(batch: Batch) -> LoadedBatch:
    producer = batch.producer_id, batch.producer_epoch
    if batch.is_control:
        marker = marker_of(batch)
        end = TransactionEnd(*producer, marker) if marker is not None else None
        return LoadedBatch(batch.base_offset, (), transaction=end)
    records = [(record.key, record.value) for record in decode_records(batch)]
    transaction = InTransaction(*producer) if batch.producer_id >= 0 else None
    return LoadedBatch(batch.base_offset, records, transaction=transaction)
