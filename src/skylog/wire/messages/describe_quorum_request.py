"""Generated from DescribeQuorumRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition_index",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] = UNSET,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is UNSET else partitions


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)
    TYPE = "request"
    API_KEY = 55
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topics: list[TopicData] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics

