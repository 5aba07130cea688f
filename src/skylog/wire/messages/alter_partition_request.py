"""Generated from Kafka's AlterPartitionRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class BrokerState(Struct):
    broker_id: int = 0
    broker_epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(3, LAST), 0),
        Field("broker_epoch", "int64", Versions(3, LAST), -1),
    )


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: list[int] = field(default_factory=list)
    new_isr_with_epochs: list[BrokerState] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("new_isr", "int32", Versions(0, 2), (), array=True),
        Field("new_isr_with_epochs", BrokerState, Versions(3, LAST), (), array=True),
        Field("leader_recovery_state", "int8", Versions(1, LAST), 0),
        Field("partition_epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(2, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterPartitionRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[TopicData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 56
    VERSIONS = Versions(2, 3)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

