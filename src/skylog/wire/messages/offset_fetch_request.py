"""Generated from Kafka's OffsetFetchRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetFetchRequestTopic(Struct):
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 7), ""),
        Field("partition_indexes", "int32", Versions(0, 7), (), array=True),
    )


@dataclass(slots=True)
class OffsetFetchRequestTopics(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_indexes: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(8, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partition_indexes", "int32", Versions(8, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetFetchRequestGroup(Struct):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(8, LAST), ""),
        Field("member_id", "string", Versions(9, LAST), None, nullable=Versions(9, LAST), ignorable=True),
        Field("member_epoch", "int32", Versions(9, LAST), -1, ignorable=True),
        Field("topics", OffsetFetchRequestTopics, Versions(8, LAST), (), array=True, nullable=Versions(8, LAST)),
    )


@dataclass(slots=True)
class OffsetFetchRequest(Message):
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list)
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list)
    require_stable: bool = False
    TYPE = "request"
    API_KEY = 9
    VERSIONS = Versions(1, 10)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, 7), ""),
        Field("topics", OffsetFetchRequestTopic, Versions(0, 7), (), array=True, nullable=Versions(2, 7)),
        Field("groups", OffsetFetchRequestGroup, Versions(8, LAST), (), array=True),
        Field("require_stable", "bool", Versions(7, LAST), False),
    )

