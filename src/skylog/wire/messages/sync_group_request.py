"""Generated from SyncGroupRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class SyncGroupRequestAssignment(Struct):
    __slots__ = ("member_id", "assignment",)
    FIELDS = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments",)
    TYPE = "request"
    API_KEY = 14
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id", "int32", Versions(0, LAST), 0),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("protocol_type", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("protocol_name", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("assignments", SyncGroupRequestAssignment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is UNSET else assignments

