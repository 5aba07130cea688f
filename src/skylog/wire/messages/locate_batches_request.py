"""Generated from LocateBatchesRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class LocateRange(Struct):
    __slots__ = ("topic_name", "topic_id", "partition_index", "start_offset", "end_offset", "min_timestamp",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("min_timestamp", "int64", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        start_offset: int = 0,
        end_offset: int = 0,
        min_timestamp: int = -1,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.min_timestamp = min_timestamp


class LocateBatchesRequest(Message):
    __slots__ = ("max_batches", "ranges", "regions",)
    TYPE = "request"
    API_KEY = 501
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("max_batches", "int32", Versions(0, LAST), 0),
        Field("ranges", LocateRange, Versions(0, LAST), (), array=True),
        Field("regions", "int8", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        max_batches: int = 0,
        ranges: list[LocateRange] = UNSET,
        regions: int = 0,
    ) -> None:
        self.max_batches = max_batches
        self.ranges = [] if ranges is UNSET else ranges
        self.regions = regions

