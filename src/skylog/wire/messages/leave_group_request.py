"""Generated from LeaveGroupRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class MemberIdentity(Struct):
    __slots__ = ("member_id", "group_instance_id", "reason",)
    FIELDS = (
        Field("member_id", "string", Versions(3, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("reason", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members",)
    TYPE = "request"
    API_KEY = 13
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, 2), ""),
        Field("members", MemberIdentity, Versions(3, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is UNSET else members

