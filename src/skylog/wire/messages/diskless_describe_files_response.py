"""Generated from DisklessDescribeFilesResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessFileResult(Struct):
    __slots__ = ("object_key", "error_code", "error_message", "has_live_batches", "pinned",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("has_live_batches", "bool", Versions(0, LAST), False),
        Field("pinned", "bool", Versions(0, LAST), False, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        object_key: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        has_live_batches: bool = False,
        pinned: bool = False,
    ) -> None:
        self.object_key = object_key
        self.error_code = error_code
        self.error_message = error_message
        self.has_live_batches = has_live_batches
        self.pinned = pinned


class DisklessDescribeFilesResponse(Message):
    __slots__ = ("throttle_time_ms", "files", "oldest_file_timestamp_ms",)
    TYPE = "response"
    API_KEY = 100
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("files", DisklessFileResult, Versions(0, LAST), (), array=True),
        Field("oldest_file_timestamp_ms", "int64", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        files: list[DisklessFileResult] = UNSET,
        oldest_file_timestamp_ms: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.files = [] if files is UNSET else files
        self.oldest_file_timestamp_ms = oldest_file_timestamp_ms

