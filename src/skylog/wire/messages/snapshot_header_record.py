"""Generated from SnapshotHeaderRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class SnapshotHeaderRecord(Message):
    __slots__ = ("version", "last_contained_log_timestamp",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("last_contained_log_timestamp", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp

