"""Generated from Kafka's WriteTxnMarkersRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class WritableTxnMarkerTopic(Struct):
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_indexes", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class WritableTxnMarker(Struct):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("transaction_result", "bool", Versions(0, LAST), False),
        Field("topics", WritableTxnMarkerTopic, Versions(0, LAST), (), array=True),
        Field("coordinator_epoch", "int32", Versions(0, LAST), 0),
        Field("transaction_version", "int8", Versions(2, LAST), 0, ignorable=True),
    )


@dataclass(slots=True)
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 27
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarker, Versions(0, LAST), (), array=True),
    )

