"""Generated from Kafka's WriteTxnMarkersResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = 0
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class WritableTxnMarkerTopicResult(Struct):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", WritableTxnMarkerPartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class WritableTxnMarkerResult(Struct):
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("topics", WritableTxnMarkerTopicResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 27
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarkerResult, Versions(0, LAST), (), array=True),
    )

