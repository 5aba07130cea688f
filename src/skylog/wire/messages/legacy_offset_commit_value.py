"""Generated from LegacyOffsetCommitValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class LegacyOffsetCommitValue(Message):
    __slots__ = ("offset", "metadata", "commit_timestamp",)
    TYPE = "coordinator-value"
    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("offset", "int64", Versions(0, 0), 0),
        Field("metadata", "string", Versions(0, 0), ""),
        Field("commit_timestamp", "int64", Versions(0, 0), 0),
    )

    def __init__(
        self,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp

