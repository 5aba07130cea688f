"""Generated from LocateBatchesResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class LocatedBatch(Struct):
    __slots__ = ("object_index", "byte_offset", "byte_size", "base_offset", "last_offset", "log_append_timestamp", "max_timestamp", "timestamp_type", "region", "segment_size",)
    FIELDS = (
        Field("object_index", "int32", Versions(0, LAST), 0),
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("byte_size", "int32", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_timestamp", "int64", Versions(0, LAST), -1),
        Field("max_timestamp", "int64", Versions(0, LAST), -1),
        Field("timestamp_type", "int8", Versions(0, LAST), 0),
        Field("region", "int8", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("segment_size", "int32", Versions(0, LAST), 0, tag=10001, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        object_index: int = 0,
        byte_offset: int = 0,
        byte_size: int = 0,
        base_offset: int = 0,
        last_offset: int = 0,
        log_append_timestamp: int = -1,
        max_timestamp: int = -1,
        timestamp_type: int = 0,
        region: int = 0,
        segment_size: int = 0,
    ) -> None:
        self.object_index = object_index
        self.byte_offset = byte_offset
        self.byte_size = byte_size
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_timestamp = log_append_timestamp
        self.max_timestamp = max_timestamp
        self.timestamp_type = timestamp_type
        self.region = region
        self.segment_size = segment_size


class LocatedRange(Struct):
    __slots__ = ("error_code", "error_message", "log_start_offset", "high_watermark", "next_offset", "batches",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("next_offset", "int64", Versions(0, LAST), -1),
        Field("batches", LocatedBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        log_start_offset: int = -1,
        high_watermark: int = -1,
        next_offset: int = -1,
        batches: list[LocatedBatch] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.next_offset = next_offset
        self.batches = [] if batches is UNSET else batches


class LocateBatchesResponse(Message):
    __slots__ = ("throttle_time_ms", "object_keys", "ranges", "tiered_url",)
    TYPE = "response"
    API_KEY = 501
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("object_keys", "string", Versions(0, LAST), (), array=True),
        Field("ranges", LocatedRange, Versions(0, LAST), (), array=True),
        Field("tiered_url", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        object_keys: list[str] = UNSET,
        ranges: list[LocatedRange] = UNSET,
        tiered_url: str | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.object_keys = [] if object_keys is UNSET else object_keys
        self.ranges = [] if ranges is UNSET else ranges
        self.tiered_url = tiered_url

