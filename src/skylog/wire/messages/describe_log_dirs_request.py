"""Generated from DescribeLogDirsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribableLogDirTopic(Struct):
    __slots__ = ("topic", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is UNSET else partitions


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)
    TYPE = "request"
    API_KEY = 35
    VERSIONS = Versions(1, 5)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", DescribableLogDirTopic, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics

