"""Generated from Kafka's SyncGroupRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class SyncGroupRequestAssignment(Struct):
    member_id: str = ""
    assignment: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class SyncGroupRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 14
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id", "int32", Versions(0, LAST), 0),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("protocol_type", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("protocol_name", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("assignments", SyncGroupRequestAssignment, Versions(0, LAST), (), array=True),
    )

