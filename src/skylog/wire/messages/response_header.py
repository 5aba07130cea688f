"""Generated from ResponseHeader.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ResponseHeader(Message):
    __slots__ = ("correlation_id",)
    TYPE = "header"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS = (
        Field("correlation_id", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id

