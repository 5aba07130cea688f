"""Generated from BeginTransactionRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class BeginTransactionRecord(Message):
    __slots__ = ("name",)
    TYPE = "metadata"
    API_KEY = 23
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        name: str | None = None,
    ) -> None:
        self.name = name

