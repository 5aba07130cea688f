"""Generated from Kafka's StreamsGroupHeartbeatRequest.json; do not edit."""

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
class CopartitionGroup(Struct):
    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", "int16", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "int16", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", "int16", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("source_topics", "string", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "string", Versions(0, LAST), (), array=True),
        Field("state_changelog_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("repartition_sink_topics", "string", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("copartition_groups", CopartitionGroup, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Topology(Struct):
    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("subtopologies", Subtopology, Versions(0, LAST), (), array=True),
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
class StreamsGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False
    TYPE = "request"
    API_KEY = 88
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("endpoint_information_epoch", "int32", Versions(0, LAST), 0),
        Field("instance_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("topology", Topology, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("active_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("standby_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("process_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("user_endpoint", Endpoint, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_tags", KeyValue, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("task_offsets", TaskOffset, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("task_end_offsets", TaskOffset, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("shutdown_application", "bool", Versions(0, LAST), False),
    )

