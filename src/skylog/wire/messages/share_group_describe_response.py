"""Generated from Kafka's ShareGroupDescribeResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Member(Struct):
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    assignment: Assignment = field(default_factory=lambda: Assignment())
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("subscribed_topic_names", "string", Versions(0, LAST), (), array=True),
        Field("assignment", Assignment, Versions(0, LAST), ...),
    )


@dataclass(slots=True)
class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("group_state", "string", Versions(0, LAST), ""),
        Field("group_epoch", "int32", Versions(0, LAST), 0),
        Field("assignment_epoch", "int32", Versions(0, LAST), 0),
        Field("assignor_name", "string", Versions(0, LAST), ""),
        Field("members", Member, Versions(0, LAST), (), array=True),
        Field("authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )


@dataclass(slots=True)
class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 77
    VERSIONS = Versions(1, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("groups", DescribedGroup, Versions(0, LAST), (), array=True),
    )

