"""Generated from DescribeGroupsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribedGroupMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment",)
    FIELDS = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(4, LAST), None, nullable=Versions(4, LAST), ignorable=True),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("member_metadata", "bytes", Versions(0, LAST), b""),
        Field("member_assignment", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Struct):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(6, LAST), None, nullable=Versions(6, LAST)),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("group_state", "string", Versions(0, LAST), ""),
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("protocol_data", "string", Versions(0, LAST), ""),
        Field("members", DescribedGroupMember, Versions(0, LAST), (), array=True),
        Field("authorized_operations", "int32", Versions(3, LAST), -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = UNSET,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is UNSET else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups",)
    TYPE = "response"
    API_KEY = 15
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(5, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("groups", DescribedGroup, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups

