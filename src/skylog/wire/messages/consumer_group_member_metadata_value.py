"""Generated from Kafka's ConsumerGroupMemberMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ClassicProtocol(Struct):
    name: str = ""
    metadata: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("metadata", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("supported_protocols", ClassicProtocol, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = field(default_factory=lambda: ClassicMemberMetadata())
    TYPE = "coordinator-value"
    API_KEY = 5
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("subscribed_topic_names", "string", Versions(0, LAST), (), array=True),
        Field("subscribed_topic_regex", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("server_assignor", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("classic_member_metadata", ClassicMemberMetadata, Versions(0, LAST), ..., nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

