"""Decodes records of a fetch response: from a position on, from complete batches, optionally
only committed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, MAGIC, Batch, batch_size
from skylog.wire.buffers import Buffer
from skylog.wire.messages.fetch_response import PartitionData
from skylog.wire.records import Header, decode_records

_ABORT = 0  # the type in the key of a transaction's marker; a commit is 1


class ConsumerRecord(NamedTuple):
    """One record as a consumer sees it; ``timestamp_type`` is 0 for created, 1 for appended."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: int


def whole_batches(buffer: Buffer) -> Iterator[Batch]:
    """The complete batches: a broker may truncate the last one anywhere."""
    view = memoryview(buffer)
    position, end = 0, len(view)
    while end - position >= HEADER_BYTES:
        size = batch_size(view, position)
        if size < HEADER_BYTES:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch claims {size} bytes")
        if size > end - position:
            return
        yield Batch(view[position : position + size])
        position += size


def records_of(
    partition: TopicPartition, data: PartitionData, position: int, *, committed_only: bool
) -> tuple[list[ConsumerRecord], int]:
    """The records from ``position`` on, and the position after all that were examined."""
    found: list[ConsumerRecord] = []
    aborted = _Aborted(data) if committed_only else None
    for batch in whole_batches(data.records or b""):
        _check(partition, batch)
        if batch.next_offset > position:
            if not batch.is_control and (aborted is None or not aborted.covers(batch)):
                found += _records(partition, batch, position)
            position = batch.next_offset
        if aborted is not None and batch.is_control:
            aborted.end(batch)
    return found, position


def _check(partition: TopicPartition, batch: Batch) -> None:
    where = f"partition {partition} offset {batch.base_offset}"
    if batch.magic != MAGIC:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"{where} has message format {batch.magic}"
        )
    if not batch.crc_ok():
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where} has a wrong checksum")


def _records(partition: TopicPartition, batch: Batch, position: int) -> Iterator[ConsumerRecord]:
    kind = int(batch.is_log_append_time)
    for record in decode_records(batch):
        if record.offset >= position:
            yield ConsumerRecord(
                *partition,
                record.offset,
                record.timestamp,
                kind,
                record.key,
                record.value,
                record.headers,
                batch.leader_epoch,
            )


class _Aborted:
    """Tracks which producers' batches belong to an aborted transaction."""

    def __init__(self, data: PartitionData) -> None:
        listed = data.aborted_transactions or []
        self._begin = sorted((entry.first_offset, entry.producer_id) for entry in listed)
        self._open: set[int] = set()

    def covers(self, batch: Batch) -> bool:
        self._advance(batch)
        return batch.is_transactional and batch.producer_id in self._open

    def end(self, batch: Batch) -> None:
        """An abort marker ends the transaction of its producer."""
        self._advance(batch)
        for record in decode_records(batch):
            key = record.key or b""
            if len(key) >= 4 and int.from_bytes(key[2:4], "big") == _ABORT:
                self._open.discard(batch.producer_id)

    def _advance(self, batch: Batch) -> None:
        while self._begin and self._begin[0][0] <= batch.last_offset:
            self._open.add(self._begin.pop(0)[1])
