"""Generated from SyncGroupResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment",)
    TYPE = "response"
    API_KEY = 14
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("protocol_type", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("protocol_name", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment

