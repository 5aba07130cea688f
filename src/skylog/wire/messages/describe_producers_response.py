"""Generated from Kafka's DescribeProducersResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ProducerState(Struct):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int32", Versions(0, LAST), 0),
        Field("last_sequence", "int32", Versions(0, LAST), -1),
        Field("last_timestamp", "int64", Versions(0, LAST), -1),
        Field("coordinator_epoch", "int32", Versions(0, LAST), 0),
        Field("current_txn_start_offset", "int64", Versions(0, LAST), -1),
    )


@dataclass(slots=True)
class PartitionResponse(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("active_producers", ProducerState, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TopicResponse(Struct):
    name: str = ""
    partitions: list[PartitionResponse] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionResponse, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeProducersResponse(Message):
    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 61
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("topics", TopicResponse, Versions(0, LAST), (), array=True),
    )

