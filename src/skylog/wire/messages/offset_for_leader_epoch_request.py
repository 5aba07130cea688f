"""Generated from Kafka's OffsetForLeaderEpochRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetForLeaderPartition(Struct):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(2, LAST), -1, ignorable=True),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class OffsetForLeaderTopic(Struct):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", OffsetForLeaderPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetForLeaderEpochRequest(Message):
    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 23
    VERSIONS = Versions(2, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", Versions(3, LAST), -2, ignorable=True),
        Field("topics", OffsetForLeaderTopic, Versions(0, LAST), (), array=True),
    )

