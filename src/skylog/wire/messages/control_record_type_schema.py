"""Generated from ControlRecordTypeSchema.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


class ControlRecordTypeSchema(Message):
    __slots__ = ("type",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("type", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        type: int = 0,
    ) -> None:
        self.type = type

