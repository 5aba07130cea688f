"""Generated from ShareGroupTargetAssignmentMemberKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class ShareGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id",)
    TYPE = "coordinator-key"
    API_KEY = 13
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("group_id", "string", Versions(0, 0), ""),
        Field("member_id", "string", Versions(0, 0), ""),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id

