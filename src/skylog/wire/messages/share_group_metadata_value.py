"""Generated from ShareGroupMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ShareGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash",)
    TYPE = "coordinator-value"
    API_KEY = 11
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("metadata_hash", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash

