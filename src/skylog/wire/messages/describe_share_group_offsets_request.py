"""Generated from DescribeShareGroupOffsetsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name", "partitions",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is UNSET else partitions


class DescribeShareGroupOffsetsRequestGroup(Struct):
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", DescribeShareGroupOffsetsRequestTopic, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)
    TYPE = "request"
    API_KEY = 90
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("groups", DescribeShareGroupOffsetsRequestGroup, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = UNSET,
    ) -> None:
        self.groups = [] if groups is UNSET else groups

