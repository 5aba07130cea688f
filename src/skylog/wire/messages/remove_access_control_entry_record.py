"""Generated from RemoveAccessControlEntryRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class RemoveAccessControlEntryRecord(Message):
    __slots__ = ("id",)
    TYPE = "metadata"
    API_KEY = 19
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.id = id

