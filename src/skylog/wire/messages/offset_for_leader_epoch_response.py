"""Generated from Kafka's OffsetForLeaderEpochResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class EpochEndOffset(Struct):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("end_offset", "int64", Versions(0, LAST), -1),
    )


@dataclass(slots=True)
class OffsetForLeaderTopicResult(Struct):
    topic: str = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", EpochEndOffset, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 23
    VERSIONS = Versions(2, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("topics", OffsetForLeaderTopicResult, Versions(0, LAST), (), array=True),
    )

