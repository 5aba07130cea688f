"""Generated from EndTxnMarker.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


class EndTxnMarker(Message):
    __slots__ = ("coordinator_epoch",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("coordinator_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch

