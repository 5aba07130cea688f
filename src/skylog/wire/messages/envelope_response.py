"""Generated from EnvelopeResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class EnvelopeResponse(Message):
    __slots__ = ("response_data", "error_code", "metadata_offset",)
    TYPE = "response"
    API_KEY = 58
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("response_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("metadata_offset", "int64", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        response_data: bytes | None = None,
        error_code: int = 0,
        metadata_offset: int = -1,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.metadata_offset = metadata_offset

