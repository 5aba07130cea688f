"""Generated from Kafka's FindCoordinatorResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Coordinator(Struct):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(4, LAST), ""),
        Field("node_id", "int32", Versions(4, LAST), 0),
        Field("host", "string", Versions(4, LAST), ""),
        Field("port", "int32", Versions(4, LAST), 0),
        Field("error_code", "int16", Versions(4, LAST), 0),
        Field("error_message", "string", Versions(4, LAST), "", nullable=Versions(4, LAST), ignorable=True),
    )


@dataclass(slots=True)
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 10
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(3, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, 3), 0),
        Field("error_message", "string", Versions(1, 3), "", nullable=Versions(1, 3), ignorable=True),
        Field("node_id", "int32", Versions(0, 3), 0),
        Field("host", "string", Versions(0, 3), ""),
        Field("port", "int32", Versions(0, 3), 0),
        Field("coordinators", Coordinator, Versions(4, LAST), (), array=True),
    )

