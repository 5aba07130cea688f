"""Generated from Kafka's StreamsGroupHeartbeatResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Status(Struct):
    status_code: int = 0
    status_detail: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("status_code", "int8", Versions(0, LAST), 0),
        Field("status_detail", "string", Versions(0, LAST), ""),
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
class TopicPartition(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = field(default_factory=lambda: Endpoint())
    active_partitions: list[TopicPartition] = field(default_factory=list)
    standby_partitions: list[TopicPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user_endpoint", Endpoint, Versions(0, LAST), ...),
        Field("active_partitions", TopicPartition, Versions(0, LAST), (), array=True),
        Field("standby_partitions", TopicPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    TYPE = "response"
    API_KEY = 88
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("heartbeat_interval_ms", "int32", Versions(0, LAST), 0),
        Field("acceptable_recovery_lag", "int32", Versions(0, LAST), 0),
        Field("task_offset_interval_ms", "int32", Versions(0, LAST), 0),
        Field("status", Status, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
        Field("active_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("standby_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("endpoint_information_epoch", "int32", Versions(0, LAST), 0),
        Field("partitions_by_user_endpoint", EndpointToPartitions, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

