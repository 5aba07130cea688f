"""Generated from SnapshotFooterRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class SnapshotFooterRecord(Message):
    __slots__ = ("version",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("version", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        version: int = 0,
    ) -> None:
        self.version = version

