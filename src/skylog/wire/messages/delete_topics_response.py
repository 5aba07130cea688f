"""Generated from Kafka's DeleteTopicsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DeletableTopicResult(Struct):
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(6, LAST)),
        Field("topic_id", "uuid", Versions(6, LAST), ZERO_UUID, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
    )


@dataclass(slots=True)
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 20
    VERSIONS = Versions(1, 6)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("responses", DeletableTopicResult, Versions(0, LAST), (), array=True),
    )

