"""Generated from Kafka's StreamsGroupDescribeResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class KeyValue(Struct):
    key: str = ""
    value: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class TopicInfo(Struct):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), 0),
        Field("replication_factor", "int16", Versions(0, LAST), 0),
        Field("topic_configs", KeyValue, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("source_topics", "string", Versions(0, LAST), (), array=True),
        Field("repartition_sink_topics", "string", Versions(0, LAST), (), array=True),
        Field("state_changelog_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", TopicInfo, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Topology(Struct):
    epoch: int = 0
    subtopologies: list[Subtopology] | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("subtopologies", Subtopology, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class Endpoint(Struct):
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TaskOffset(Struct):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TaskIds(Struct):
    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Assignment(Struct):
    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("standby_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Member(Struct):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Assignment = field(default_factory=lambda: Assignment())
    target_assignment: Assignment = field(default_factory=lambda: Assignment())
    is_classic: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("instance_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("topology_epoch", "int32", Versions(0, LAST), 0),
        Field("process_id", "string", Versions(0, LAST), ""),
        Field("user_endpoint", Endpoint, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_tags", KeyValue, Versions(0, LAST), (), array=True),
        Field("task_offsets", TaskOffset, Versions(0, LAST), (), array=True),
        Field("task_end_offsets", TaskOffset, Versions(0, LAST), (), array=True),
        Field("assignment", Assignment, Versions(0, LAST), ...),
        Field("target_assignment", Assignment, Versions(0, LAST), ...),
        Field("is_classic", "bool", Versions(0, LAST), False),
    )


@dataclass(slots=True)
class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("group_state", "string", Versions(0, LAST), ""),
        Field("group_epoch", "int32", Versions(0, LAST), 0),
        Field("assignment_epoch", "int32", Versions(0, LAST), 0),
        Field("topology", Topology, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("members", Member, Versions(0, LAST), (), array=True),
        Field("authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )


@dataclass(slots=True)
class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 89
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("groups", DescribedGroup, Versions(0, LAST), (), array=True),
    )

