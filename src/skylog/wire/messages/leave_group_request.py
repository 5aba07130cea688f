"""Generated from Kafka's LeaveGroupRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class MemberIdentity(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(3, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("reason", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
    )


@dataclass(slots=True)
class LeaveGroupRequest(Message):
    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 13
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, 2), ""),
        Field("members", MemberIdentity, Versions(3, LAST), (), array=True),
    )

