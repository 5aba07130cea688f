"""Generated from Kafka's MetadataRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class MetadataRequestTopic(Struct):
    topic_id: Uuid = ZERO_UUID
    name: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(10, LAST)),
    )


@dataclass(slots=True)
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = field(default_factory=list)
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False
    TYPE = "request"
    API_KEY = 3
    VERSIONS = Versions(0, 13)
    FLEXIBLE = Versions(9, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", MetadataRequestTopic, Versions(0, LAST), (), array=True, nullable=Versions(1, LAST)),
        Field("allow_auto_topic_creation", "bool", Versions(4, LAST), True),
        Field("include_cluster_authorized_operations", "bool", Versions(8, 10), False),
        Field("include_topic_authorized_operations", "bool", Versions(8, LAST), False),
    )

