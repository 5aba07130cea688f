"""Generated from PlanRangesRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PlanPartition(Struct):
    __slots__ = ("partition_index", "start_offset", "end_offset", "min_timestamp",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), -2),
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("min_timestamp", "int64", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = -2,
        end_offset: int = -1,
        min_timestamp: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.min_timestamp = min_timestamp


class PlanTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", PlanPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[PlanPartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class PlanRangesRequest(Message):
    __slots__ = ("split_bytes", "topics", "regions",)
    TYPE = "request"
    API_KEY = 500
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("split_bytes", "int64", Versions(0, LAST), 0),
        Field("topics", PlanTopic, Versions(0, LAST), (), array=True),
        Field("regions", "int8", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        split_bytes: int = 0,
        topics: list[PlanTopic] = UNSET,
        regions: int = 0,
    ) -> None:
        self.split_bytes = split_bytes
        self.topics = [] if topics is UNSET else topics
        self.regions = regions

