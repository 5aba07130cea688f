"""Generated from Kafka's DeleteRecordsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DeleteRecordsPartition(Struct):
    partition_index: int = 0
    offset: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class DeleteRecordsTopic(Struct):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", DeleteRecordsPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    TYPE = "request"
    API_KEY = 21
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteRecordsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
    )

