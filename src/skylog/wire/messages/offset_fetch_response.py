"""Generated from OffsetFetchResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class OffsetFetchResponsePartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, 7), 0),
        Field("committed_offset", "int64", Versions(0, 7), 0),
        Field("committed_leader_epoch", "int32", Versions(5, 7), -1, ignorable=True),
        Field("metadata", "string", Versions(0, 7), "", nullable=Versions(0, 7)),
        Field("error_code", "int16", Versions(0, 7), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, 7), ""),
        Field("partitions", OffsetFetchResponsePartition, Versions(0, 7), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class OffsetFetchResponsePartitions(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
    FIELDS = (
        Field("partition_index", "int32", Versions(8, LAST), 0),
        Field("committed_offset", "int64", Versions(8, LAST), 0),
        Field("committed_leader_epoch", "int32", Versions(8, LAST), -1, ignorable=True),
        Field("metadata", "string", Versions(8, LAST), "", nullable=Versions(8, LAST)),
        Field("error_code", "int16", Versions(8, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Struct):
    __slots__ = ("name", "topic_id", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(8, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", OffsetFetchResponsePartitions, Versions(8, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class OffsetFetchResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code",)
    FIELDS = (
        Field("group_id", "string", Versions(8, LAST), ""),
        Field("topics", OffsetFetchResponseTopics, Versions(8, LAST), (), array=True),
        Field("error_code", "int16", Versions(8, LAST), 0),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = UNSET,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups",)
    TYPE = "response"
    API_KEY = 9
    VERSIONS = Versions(1, 10)
    FLEXIBLE = Versions(6, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(3, LAST), 0, ignorable=True),
        Field("topics", OffsetFetchResponseTopic, Versions(0, 7), (), array=True),
        Field("error_code", "int16", Versions(2, 7), 0, ignorable=True),
        Field("groups", OffsetFetchResponseGroup, Versions(8, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = UNSET,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.error_code = error_code
        self.groups = [] if groups is UNSET else groups

