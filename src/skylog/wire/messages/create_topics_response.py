"""Generated from CreateTopicsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CreatableTopicConfigs(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive",)
    FIELDS = (
        Field("name", "string", Versions(5, LAST), ""),
        Field("value", "string", Versions(5, LAST), "", nullable=Versions(5, LAST)),
        Field("read_only", "bool", Versions(5, LAST), False),
        Field("config_source", "int8", Versions(5, LAST), -1, ignorable=True),
        Field("is_sensitive", "bool", Versions(5, LAST), False),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(7, LAST), ZERO_UUID, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(1, LAST), "", nullable=Versions(0, LAST), ignorable=True),
        Field("topic_config_error_code", "int16", Versions(5, LAST), 0, tag=0, tagged=Versions(5, LAST), ignorable=True),
        Field("num_partitions", "int32", Versions(5, LAST), -1, ignorable=True),
        Field("replication_factor", "int16", Versions(5, LAST), -1, ignorable=True),
        Field("configs", CreatableTopicConfigs, Versions(5, LAST), (), array=True, nullable=Versions(5, LAST), ignorable=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is UNSET else configs


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)
    TYPE = "response"
    API_KEY = 19
    VERSIONS = Versions(2, 7)
    FLEXIBLE = Versions(5, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("topics", CreatableTopicResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics

