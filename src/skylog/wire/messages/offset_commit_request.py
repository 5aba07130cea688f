"""Generated from OffsetCommitRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class OffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("committed_offset", "int64", Versions(0, LAST), 0),
        Field("committed_leader_epoch", "int32", Versions(6, LAST), -1, ignorable=True),
        Field("committed_metadata", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", OffsetCommitRequestPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class OffsetCommitRequest(Message):
    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics",)
    TYPE = "request"
    API_KEY = 8
    VERSIONS = Versions(2, 10)
    FLEXIBLE = Versions(8, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id_or_member_epoch", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("member_id", "string", Versions(1, LAST), "", ignorable=True),
        Field("group_instance_id", "string", Versions(7, LAST), None, nullable=Versions(7, LAST)),
        Field("retention_time_ms", "int64", Versions(2, 4), -1, ignorable=True),
        Field("topics", OffsetCommitRequestTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is UNSET else topics

