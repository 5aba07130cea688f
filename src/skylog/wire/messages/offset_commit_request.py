"""Generated from Kafka's OffsetCommitRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetCommitRequestPartition(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("committed_offset", "int64", Versions(0, LAST), 0),
        Field("committed_leader_epoch", "int32", Versions(6, LAST), -1, ignorable=True),
        Field("committed_metadata", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class OffsetCommitRequestTopic(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", OffsetCommitRequestPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetCommitRequest(Message):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 8
    VERSIONS = Versions(2, 10)
    FLEXIBLE = Versions(8, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id_or_member_epoch", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("member_id", "string", Versions(1, LAST), "", ignorable=True),
        Field("group_instance_id", "string", Versions(7, LAST), None, nullable=Versions(7, LAST)),
        Field("retention_time_ms", "int64", Versions(2, 4), -1, ignorable=True),
        Field("topics", OffsetCommitRequestTopic, Versions(0, LAST), (), array=True),
    )

