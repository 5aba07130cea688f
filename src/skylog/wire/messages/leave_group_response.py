"""Generated from LeaveGroupResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class MemberResponse(Struct):
    __slots__ = ("member_id", "group_instance_id", "error_code",)
    FIELDS = (
        Field("member_id", "string", Versions(3, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("error_code", "int16", Versions(3, LAST), 0),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members",)
    TYPE = "response"
    API_KEY = 13
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("members", MemberResponse, Versions(3, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is UNSET else members

