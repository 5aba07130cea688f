"""Generated from CreateTopicsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CreatableReplicaAssignment(Struct):
    __slots__ = ("partition_index", "broker_ids",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("broker_ids", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is UNSET else broker_ids


class CreatableTopicConfig(Struct):
    __slots__ = ("name", "value",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Struct):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("num_partitions", "int32", Versions(0, LAST), 0),
        Field("replication_factor", "int16", Versions(0, LAST), 0),
        Field("assignments", CreatableReplicaAssignment, Versions(0, LAST), (), array=True),
        Field("configs", CreatableTopicConfig, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = UNSET,
        configs: list[CreatableTopicConfig] = UNSET,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is UNSET else assignments
        self.configs = [] if configs is UNSET else configs


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only",)
    TYPE = "request"
    API_KEY = 19
    VERSIONS = Versions(2, 7)
    FLEXIBLE = Versions(5, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("topics", CreatableTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("validate_only", "bool", Versions(1, LAST), False),
    )

    def __init__(
        self,
        topics: list[CreatableTopic] = UNSET,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

