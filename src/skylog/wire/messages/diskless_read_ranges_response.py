"""Generated from DisklessReadRangesResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessReadSplit(Struct):
    __slots__ = ("start_offset", "end_offset", "byte_size",)
    FIELDS = (
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("byte_size", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        byte_size: int = 0,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.byte_size = byte_size


class DisklessReadBatch(Struct):
    __slots__ = ("batch_id", "object_key", "magic", "byte_offset", "byte_size", "base_offset", "last_offset", "log_append_timestamp", "batch_max_timestamp", "timestamp_type",)
    FIELDS = (
        Field("batch_id", "int64", Versions(0, LAST), 0),
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("magic", "int8", Versions(0, LAST), 0),
        Field("byte_offset", "int64", Versions(0, LAST), 0),
        Field("byte_size", "int64", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_timestamp", "int64", Versions(0, LAST), 0),
        Field("batch_max_timestamp", "int64", Versions(0, LAST), 0),
        Field("timestamp_type", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        batch_id: int = 0,
        object_key: str = "",
        magic: int = 0,
        byte_offset: int = 0,
        byte_size: int = 0,
        base_offset: int = 0,
        last_offset: int = 0,
        log_append_timestamp: int = 0,
        batch_max_timestamp: int = 0,
        timestamp_type: int = 0,
    ) -> None:
        self.batch_id = batch_id
        self.object_key = object_key
        self.magic = magic
        self.byte_offset = byte_offset
        self.byte_size = byte_size
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_timestamp = log_append_timestamp
        self.batch_max_timestamp = batch_max_timestamp
        self.timestamp_type = timestamp_type


class DisklessReadRangeResult(Struct):
    __slots__ = ("error_code", "next_offset", "end_offset", "skipped_bytes", "log_start_offset", "high_watermark", "splits", "batches", "wal_start_offset",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("next_offset", "int64", Versions(0, LAST), -1),
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("skipped_bytes", "int64", Versions(0, LAST), 0),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("splits", DisklessReadSplit, Versions(0, LAST), (), array=True),
        Field("batches", DisklessReadBatch, Versions(0, LAST), (), array=True),
        Field("wal_start_offset", "int64", Versions(0, LAST), -1, tag=0, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        next_offset: int = -1,
        end_offset: int = -1,
        skipped_bytes: int = 0,
        log_start_offset: int = -1,
        high_watermark: int = -1,
        splits: list[DisklessReadSplit] = UNSET,
        batches: list[DisklessReadBatch] = UNSET,
        wal_start_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.next_offset = next_offset
        self.end_offset = end_offset
        self.skipped_bytes = skipped_bytes
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.splits = [] if splits is UNSET else splits
        self.batches = [] if batches is UNSET else batches
        self.wal_start_offset = wal_start_offset


class DisklessReadRangesResponse(Message):
    __slots__ = ("throttle_time_ms", "ranges",)
    TYPE = "response"
    API_KEY = 508
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("ranges", DisklessReadRangeResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        ranges: list[DisklessReadRangeResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.ranges = [] if ranges is UNSET else ranges

