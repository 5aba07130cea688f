"""Generated from DescribeTopicPartitionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicRequest(Struct):
    __slots__ = ("name",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class Cursor(Struct):
    __slots__ = ("topic_name", "partition_index",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor",)
    TYPE = "request"
    API_KEY = 75
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", TopicRequest, Versions(0, LAST), (), array=True),
        Field("response_partition_limit", "int32", Versions(0, LAST), 2000),
        Field("cursor", Cursor, Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        topics: list[TopicRequest] = UNSET,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor

