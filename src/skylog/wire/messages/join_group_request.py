"""Generated from Kafka's JoinGroupRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class JoinGroupRequestProtocol(Struct):
    name: str = ""
    metadata: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("metadata", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class JoinGroupRequest(Message):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: str | None = None
    TYPE = "request"
    API_KEY = 11
    VERSIONS = Versions(0, 9)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("session_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("rebalance_timeout_ms", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(5, LAST), None, nullable=Versions(5, LAST)),
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("protocols", JoinGroupRequestProtocol, Versions(0, LAST), (), array=True),
        Field("reason", "string", Versions(8, LAST), None, nullable=Versions(8, LAST), ignorable=True),
    )

