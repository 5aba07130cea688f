"""Generated from Kafka's ReadShareGroupStateSummaryRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition: int = 0
    leader_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class ReadStateSummaryData(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 87
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", ReadStateSummaryData, Versions(0, LAST), (), array=True),
    )

