"""Generated from ListDisklessFilesResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ListedDisklessFile(Struct):
    __slots__ = ("object_key", "size", "committed_timestamp_ms", "live_batches", "live_bytes", "marked_timestamp_ms", "owner_ids",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("size", "int64", Versions(0, LAST), 0),
        Field("committed_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("live_batches", "int32", Versions(0, LAST), 0),
        Field("live_bytes", "int64", Versions(0, LAST), 0),
        Field("marked_timestamp_ms", "int64", Versions(0, LAST), -1),
        Field("owner_ids", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        object_key: str = "",
        size: int = 0,
        committed_timestamp_ms: int = 0,
        live_batches: int = 0,
        live_bytes: int = 0,
        marked_timestamp_ms: int = -1,
        owner_ids: list[int] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.size = size
        self.committed_timestamp_ms = committed_timestamp_ms
        self.live_batches = live_batches
        self.live_bytes = live_bytes
        self.marked_timestamp_ms = marked_timestamp_ms
        self.owner_ids = [] if owner_ids is UNSET else owner_ids


class ListDisklessFilesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "has_more", "files",)
    TYPE = "response"
    API_KEY = 505
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("has_more", "bool", Versions(0, LAST), False),
        Field("files", ListedDisklessFile, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        has_more: bool = False,
        files: list[ListedDisklessFile] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.has_more = has_more
        self.files = [] if files is UNSET else files

