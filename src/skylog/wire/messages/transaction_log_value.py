"""Generated from TransactionLogValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionsSchema(Struct):
    __slots__ = ("topic", "partition_ids",)
    FIELDS = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partition_ids", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partition_ids: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is UNSET else partition_ids


class TransactionLogValue(Message):
    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version",)
    TYPE = "coordinator-value"
    API_KEY = 0
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS = (
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

    def __init__(
        self,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = UNSET,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is UNSET else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version

