"""Generated from AbortTransactionRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class AbortTransactionRecord(Message):
    __slots__ = ("reason",)
    TYPE = "metadata"
    API_KEY = 25
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("reason", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        reason: str | None = None,
    ) -> None:
        self.reason = reason

