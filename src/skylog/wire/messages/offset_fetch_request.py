"""Generated from OffsetFetchRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class OffsetFetchRequestTopic(Struct):
    __slots__ = ("name", "partition_indexes",)
    FIELDS = (
        Field("name", "string", Versions(0, 7), ""),
        Field("partition_indexes", "int32", Versions(0, 7), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes


class OffsetFetchRequestTopics(Struct):
    __slots__ = ("name", "topic_id", "partition_indexes",)
    FIELDS = (
        Field("name", "string", Versions(8, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partition_indexes", "int32", Versions(8, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_indexes: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes


class OffsetFetchRequestGroup(Struct):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics",)
    FIELDS = (
        Field("group_id", "string", Versions(8, LAST), ""),
        Field("member_id", "string", Versions(9, LAST), None, nullable=Versions(9, LAST), ignorable=True),
        Field("member_epoch", "int32", Versions(9, LAST), -1, ignorable=True),
        Field("topics", OffsetFetchRequestTopics, Versions(8, LAST), (), array=True, nullable=Versions(8, LAST)),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = UNSET,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is UNSET else topics


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable",)
    TYPE = "request"
    API_KEY = 9
    VERSIONS = Versions(1, 10)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, 7), ""),
        Field("topics", OffsetFetchRequestTopic, Versions(0, 7), (), array=True, nullable=Versions(2, 7)),
        Field("groups", OffsetFetchRequestGroup, Versions(8, LAST), (), array=True),
        Field("require_stable", "bool", Versions(7, LAST), False),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = UNSET,
        groups: list[OffsetFetchRequestGroup] = UNSET,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.groups = [] if groups is UNSET else groups
        self.require_stable = require_stable

