"""Generated from DisklessReceiveFileResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DisklessReceiveFileResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message",)
    TYPE = "response"
    API_KEY = 506
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message

