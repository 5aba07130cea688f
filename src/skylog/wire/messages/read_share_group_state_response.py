"""Generated from Kafka's ReadShareGroupStateResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class StateBatch(Struct):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("delivery_state", "int8", Versions(0, LAST), 0),
        Field("delivery_count", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class PartitionResult(Struct):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("state_epoch", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("state_batches", StateBatch, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ReadStateResult(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 84
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("results", ReadStateResult, Versions(0, LAST), (), array=True),
    )

