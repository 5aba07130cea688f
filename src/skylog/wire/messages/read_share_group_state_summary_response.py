"""Generated from Kafka's ReadShareGroupStateSummaryResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionResult(Struct):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("state_epoch", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("delivery_complete_count", "int32", Versions(1, LAST), -1, ignorable=True),
    )


@dataclass(slots=True)
class ReadStateSummaryResult(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 87
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("results", ReadStateSummaryResult, Versions(0, LAST), (), array=True),
    )

