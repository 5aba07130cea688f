"""Generated from DisklessFetchSnapshotResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DisklessFetchSnapshotResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "end_offset", "epoch", "size", "digest", "bytes",)
    TYPE = "response"
    API_KEY = 509
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("epoch", "int32", Versions(0, LAST), -1),
        Field("size", "int64", Versions(0, LAST), -1),
        Field("digest", "bytes", Versions(0, LAST), b""),
        Field("bytes", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        end_offset: int = -1,
        epoch: int = -1,
        size: int = -1,
        digest: bytes = b"",
        bytes: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.end_offset = end_offset
        self.epoch = epoch
        self.size = size
        self.digest = digest
        self.bytes = bytes

