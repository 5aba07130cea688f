"""Generated from Kafka's ShareAcknowledgeRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AcknowledgementBatch(Struct):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("acknowledge_types", "int8", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AcknowledgePartition(Struct):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("acknowledgement_batches", AcknowledgementBatch, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AcknowledgeTopic(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", AcknowledgePartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ShareAcknowledgeRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 79
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("share_session_epoch", "int32", Versions(0, LAST), 0),
        Field("is_renew_ack", "bool", Versions(2, LAST), False),
        Field("topics", AcknowledgeTopic, Versions(0, LAST), (), array=True),
    )

