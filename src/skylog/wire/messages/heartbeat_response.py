"""Generated from HeartbeatResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code",)
    TYPE = "response"
    API_KEY = 12
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code

