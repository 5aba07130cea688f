"""Generated from Kafka's TransactionLogValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionsSchema(Struct):
    topic: str = ""
    partition_ids: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partition_ids", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TransactionLogValue(Message):
    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = field(default_factory=list)
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    TYPE = "coordinator-value"
    API_KEY = 0
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("previous_producer_id", "int64", Versions(1, LAST), -1, tag=0, tagged=Versions(1, LAST)),
        Field("next_producer_id", "int64", Versions(1, LAST), -1, tag=1, tagged=Versions(1, LAST)),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("next_producer_epoch", "int16", Versions(1, LAST), -1, tag=3, tagged=Versions(1, LAST)),
        Field("transaction_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("transaction_status", "int8", Versions(0, LAST), 0),
        Field("transaction_partitions", PartitionsSchema, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
        Field("transaction_last_update_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("transaction_start_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("client_transaction_version", "int16", Versions(1, LAST), 0, tag=2, tagged=Versions(1, LAST)),
    )

