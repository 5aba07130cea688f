"""Generated from FenceBrokerRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class FenceBrokerRecord(Message):
    __slots__ = ("id", "epoch",)
    TYPE = "metadata"
    API_KEY = 7
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("id", "int32", Versions(0, LAST), 0),
        Field("epoch", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch

