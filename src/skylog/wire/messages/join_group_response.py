"""Generated from Kafka's JoinGroupResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class JoinGroupResponseMember(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("metadata", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class JoinGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 11
    VERSIONS = Versions(0, 9)
    FLEXIBLE = Versions(6, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
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

