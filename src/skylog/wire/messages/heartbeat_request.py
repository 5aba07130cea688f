"""Generated from Kafka's HeartbeatRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class HeartbeatRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    TYPE = "request"
    API_KEY = 12
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id", "int32", Versions(0, LAST), 0),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
    )

