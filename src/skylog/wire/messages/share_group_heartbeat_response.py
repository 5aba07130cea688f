"""Generated from Kafka's ShareGroupHeartbeatResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    TYPE = "response"
    API_KEY = 76
    VERSIONS = Versions(1, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("heartbeat_interval_ms", "int32", Versions(0, LAST), 0),
        Field("assignment", Assignment, Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

