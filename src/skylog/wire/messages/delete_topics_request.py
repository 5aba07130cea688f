"""Generated from Kafka's DeleteTopicsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DeleteTopicState(Struct):
    name: str | None = None
    topic_id: Uuid = ZERO_UUID
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(6, LAST), None, nullable=Versions(6, LAST)),
        Field("topic_id", "uuid", Versions(6, LAST), ZERO_UUID),
    )


@dataclass(slots=True)
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = field(default_factory=list)
    topic_names: list[str] = field(default_factory=list)
    timeout_ms: int = 0
    TYPE = "request"
    API_KEY = 20
    VERSIONS = Versions(1, 6)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteTopicState, Versions(6, LAST), (), array=True),
        Field("topic_names", "string", Versions(0, 5), (), array=True, ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
    )

