"""Generated from Kafka's DescribeGroupsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribedGroupMember(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(4, LAST), None, nullable=Versions(4, LAST), ignorable=True),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("member_metadata", "bytes", Versions(0, LAST), b""),
        Field("member_assignment", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: int = -2147483648
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(6, LAST), None, nullable=Versions(6, LAST)),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("group_state", "string", Versions(0, LAST), ""),
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("protocol_data", "string", Versions(0, LAST), ""),
        Field("members", DescribedGroupMember, Versions(0, LAST), (), array=True),
        Field("authorized_operations", "int32", Versions(3, LAST), -2147483648),
    )


@dataclass(slots=True)
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 15
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(5, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("groups", DescribedGroup, Versions(0, LAST), (), array=True),
    )

