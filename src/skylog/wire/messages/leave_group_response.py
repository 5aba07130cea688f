"""Generated from Kafka's LeaveGroupResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class MemberResponse(Struct):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(3, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("error_code", "int16", Versions(3, LAST), 0),
    )


@dataclass(slots=True)
class LeaveGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 13
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("members", MemberResponse, Versions(3, LAST), (), array=True),
    )

