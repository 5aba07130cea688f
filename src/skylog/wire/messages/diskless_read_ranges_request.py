"""Generated from DisklessReadRangesRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessReadRange(Struct):
    __slots__ = ("topic_id", "partition_index", "start_offset", "end_offset", "min_timestamp",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("min_timestamp", "int64", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        start_offset: int = 0,
        end_offset: int = 0,
        min_timestamp: int = -1,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.min_timestamp = min_timestamp


class DisklessReadRangesRequest(Message):
    __slots__ = ("coordinator_id", "split_bytes", "max_batches", "ranges", "timeout_ms",)
    TYPE = "request"
    API_KEY = 508
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("split_bytes", "int64", Versions(0, LAST), 0),
        Field("max_batches", "int32", Versions(0, LAST), 0),
        Field("ranges", DisklessReadRange, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        split_bytes: int = 0,
        max_batches: int = 0,
        ranges: list[DisklessReadRange] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.split_bytes = split_bytes
        self.max_batches = max_batches
        self.ranges = [] if ranges is UNSET else ranges
        self.timeout_ms = timeout_ms

