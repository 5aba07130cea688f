"""The records of ``__transaction_state``, in Kafka's own format and versions.

A key is preceded by its type, a value by its version, both of two bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.transactions.ports import TopicPartition
from skylog.transactions.state import State, Transaction
from skylog.wire.codec import decode
from skylog.wire.coordinator_records import encode_key, encode_value
from skylog.wire.messages.transaction_log_key import TransactionLogKey
from skylog.wire.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

_NUMBER: Final = struct.Struct(">h")
# Has fields for more than one producer id.
FLEXIBLE_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """The state of a transactional id; ``format`` is the version of the value."""

    transaction: Transaction
    format: int = FLEXIBLE_FORMAT


@dataclass(frozen=True, slots=True)
class ExpiredRecord:
    """A tombstone: the id is forgotten."""

    transactional_id: str


AnyRecord = TransactionRecord | ExpiredRecord


class TransactionRecordCodec:
    """The runtime's codec of these records: a key and a value in bytes."""

    def encode(self, record: AnyRecord) -> tuple[bytes, bytes | None]:
        if isinstance(record, ExpiredRecord):
            return encode_key(TransactionLogKey(record.transactional_id)), None
        transaction = record.transaction
        key = encode_key(TransactionLogKey(transaction.transactional_id))
        return key, encode_value(_value(transaction, record.format), record.format)

    def decode(self, key: bytes | None, value: bytes | None) -> AnyRecord | None:
        if key is None or _number(key) != TransactionLogKey.API_KEY:
            return None
        transactional_id = decode(TransactionLogKey, key, 0, _NUMBER.size).transactional_id
        if value is None:
            return ExpiredRecord(transactional_id)
        version = _number(value)
        if version not in TransactionLogValue.VERSIONS:
            return None
        stored = decode(TransactionLogValue, value, version, _NUMBER.size)
        return TransactionRecord(_transaction(transactional_id, stored), version)


def _value(transaction: Transaction, version: int) -> TransactionLogValue:
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if transaction.state is not State.EMPTY:
        value.transaction_partitions = [
            PartitionsSchema(topic, indexes) for topic, indexes in by_topic(transaction.partitions)
        ]
    if version >= FLEXIBLE_FORMAT:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return value


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Topics with their partition numbers, sorted."""
    return [
        (topic, [index for _, index in found])
        for topic, found in groupby(sorted(partitions), key=lambda partition: partition[0])
    ]


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        _state(value.transaction_status),
        frozenset(
            (stored.topic, index)
            for stored in value.transaction_partitions or ()
            for index in stored.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def _state(number: int) -> State:
    try:
        return State(number)
    except ValueError:
        raise ProtocolError(f"a transaction in state {number}") from None


def _number(data: bytes) -> int:
    if len(data) < _NUMBER.size:
        raise ProtocolError("a record of a transaction without a number")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
