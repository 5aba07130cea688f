"""Generated from Kafka's DescribeTransactionsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicData(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TransactionState(Struct):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("transaction_state", "string", Versions(0, LAST), ""),
        Field("transaction_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("transaction_start_time_ms", "int64", Versions(0, LAST), 0),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 65
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("transaction_states", TransactionState, Versions(0, LAST), (), array=True),
    )

