"""Generated from JoinGroupResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class JoinGroupResponseMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "metadata",)
    FIELDS = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("metadata", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members",)
    TYPE = "response"
    API_KEY = 11
    VERSIONS = Versions(0, 9)
    FLEXIBLE = Versions(6, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("generation_id", "int32", Versions(0, LAST), -1),
        Field("protocol_type", "string", Versions(7, LAST), None, nullable=Versions(7, LAST), ignorable=True),
        Field("protocol_name", "string", Versions(0, LAST), "", nullable=Versions(7, LAST)),
        Field("leader", "string", Versions(0, LAST), ""),
        Field("skip_assignment", "bool", Versions(9, LAST), False),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("members", JoinGroupResponseMember, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is UNSET else members

