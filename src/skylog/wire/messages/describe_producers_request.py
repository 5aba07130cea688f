"""Generated from DescribeProducersRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicRequest(Struct):
    __slots__ = ("name", "partition_indexes",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_indexes", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    TYPE = "request"
    API_KEY = 61
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", TopicRequest, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topics: list[TopicRequest] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics

