"""Generated from Kafka's GroupMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class MemberMetadata(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST), ignorable=True),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("rebalance_timeout", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("session_timeout", "int32", Versions(0, LAST), 0),
        Field("subscription", "bytes", Versions(0, LAST), b""),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class GroupMetadataValue(Message):
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 2
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("generation", "int32", Versions(0, LAST), 0),
        Field("protocol", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("leader", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("current_state_timestamp", "int64", Versions(2, LAST), -1, ignorable=True),
        Field("members", MemberMetadata, Versions(0, LAST), (), array=True),
    )

