"""Generated from RequestHeader.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class RequestHeader(Message):
    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id",)
    TYPE = "header"
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
        Field("request_api_key", "int16", Versions(0, LAST), 0),
        Field("request_api_version", "int16", Versions(0, LAST), 0),
        Field("correlation_id", "int32", Versions(0, LAST), 0),
        Field("client_id", "string", Versions(1, LAST), "", nullable=Versions(1, LAST), never_flexible=True),
    )

    def __init__(
        self,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

