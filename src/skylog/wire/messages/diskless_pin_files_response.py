"""Generated from DisklessPinFilesResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessPinResult(Struct):
    __slots__ = ("error_code", "error_message",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class DisklessPinFilesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "pins",)
    TYPE = "response"
    API_KEY = 507
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("pins", DisklessPinResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        pins: list[DisklessPinResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.pins = [] if pins is UNSET else pins

