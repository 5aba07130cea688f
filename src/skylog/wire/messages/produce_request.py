"""Generated from Kafka's ProduceRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.buffers import Buffer
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionProduceData(Struct):
    index: int = 0
    records: Buffer | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("records", "records", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class TopicProduceData(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_data: list[PartitionProduceData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partition_data", PartitionProduceData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ProduceRequest(Message):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 0
    VERSIONS = Versions(3, 13)
    FLEXIBLE = Versions(9, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("acks", "int16", Versions(0, LAST), 0),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("topic_data", TopicProduceData, Versions(0, LAST), (), array=True),
    )

