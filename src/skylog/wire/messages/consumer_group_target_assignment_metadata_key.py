"""Generated from ConsumerGroupTargetAssignmentMetadataKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)
    TYPE = "coordinator-key"
    API_KEY = 6
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("group_id", "string", Versions(0, 0), ""),
    )

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id

