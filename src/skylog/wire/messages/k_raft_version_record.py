"""Generated from KRaftVersionRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class KRaftVersionRecord(Message):
    __slots__ = ("version", "k_raft_version",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("k_raft_version", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        version: int = 0,
        k_raft_version: int = 0,
    ) -> None:
        self.version = version
        self.k_raft_version = k_raft_version

