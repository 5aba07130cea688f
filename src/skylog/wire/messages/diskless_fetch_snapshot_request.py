"""Generated from DisklessFetchSnapshotRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DisklessFetchSnapshotRequest(Message):
    __slots__ = ("coordinator_id", "end_offset", "epoch", "position", "max_bytes", "timeout_ms",)
    TYPE = "request"
    API_KEY = 509
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("epoch", "int32", Versions(0, LAST), -1),
        Field("position", "int64", Versions(0, LAST), 0),
        Field("max_bytes", "int32", Versions(0, LAST), 0),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        end_offset: int = -1,
        epoch: int = -1,
        position: int = 0,
        max_bytes: int = 0,
        timeout_ms: int = 60000,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.end_offset = end_offset
        self.epoch = epoch
        self.position = position
        self.max_bytes = max_bytes
        self.timeout_ms = timeout_ms

