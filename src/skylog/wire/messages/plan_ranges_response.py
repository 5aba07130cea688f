"""Generated from PlanRangesResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PlannedSplit(Struct):
    __slots__ = ("start_offset", "end_offset", "bytes", "region",)
    FIELDS = (
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("bytes", "int64", Versions(0, LAST), 0),
        Field("region", "int8", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        bytes: int = 0,
        region: int = 0,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.bytes = bytes
        self.region = region


class PlannedPartition(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "log_start_offset", "high_watermark", "skipped_bytes", "splits",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("skipped_bytes", "int64", Versions(0, LAST), 0),
        Field("splits", PlannedSplit, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        log_start_offset: int = -1,
        high_watermark: int = -1,
        skipped_bytes: int = 0,
        splits: list[PlannedSplit] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.skipped_bytes = skipped_bytes
        self.splits = [] if splits is UNSET else splits


class PlannedTopic(Struct):
    __slots__ = ("name", "topic_id", "diskless", "error_code", "error_message", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("diskless", "bool", Versions(0, LAST), False),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("partitions", PlannedPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        diskless: bool = False,
        error_code: int = 0,
        error_message: str | None = None,
        partitions: list[PlannedPartition] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.diskless = diskless
        self.error_code = error_code
        self.error_message = error_message
        self.partitions = [] if partitions is UNSET else partitions


class PlanRangesResponse(Message):
    __slots__ = ("throttle_time_ms", "storage_url", "topics",)
    TYPE = "response"
    API_KEY = 500
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("storage_url", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("topics", PlannedTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        storage_url: str | None = None,
        topics: list[PlannedTopic] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.storage_url = storage_url
        self.topics = [] if topics is UNSET else topics

