"""Generated from Kafka's ShareFetchRequest.json; do not edit."""

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
class FetchPartition(Struct):
    partition_index: int = 0
    partition_max_bytes: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("partition_max_bytes", "int32", Versions(0, 0), 0),
        Field("acknowledgement_batches", AcknowledgementBatch, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class FetchTopic(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", FetchPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ForgottenTopic(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ShareFetchRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 78
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("share_session_epoch", "int32", Versions(0, LAST), 0),
        Field("max_wait_ms", "int32", Versions(0, LAST), 0),
        Field("min_bytes", "int32", Versions(0, LAST), 0),
        Field("max_bytes", "int32", Versions(0, LAST), 2147483647),
        Field("max_records", "int32", Versions(1, LAST), 0),
        Field("batch_size", "int32", Versions(1, LAST), 0),
        Field("share_acquire_mode", "int8", Versions(2, LAST), 0, ignorable=True),
        Field("is_renew_ack", "bool", Versions(2, LAST), False),
        Field("topics", FetchTopic, Versions(0, LAST), (), array=True),
        Field("forgotten_topics_data", ForgottenTopic, Versions(0, LAST), (), array=True),
    )

