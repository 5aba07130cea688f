"""Generated from AlterPartitionRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class BrokerState(Struct):
    __slots__ = ("broker_id", "broker_epoch",)
    FIELDS = (
        Field("broker_id", "int32", Versions(3, LAST), 0),
        Field("broker_epoch", "int64", Versions(3, LAST), -1),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class PartitionData(Struct):
    __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("new_isr", "int32", Versions(0, 2), (), array=True),
        Field("new_isr_with_epochs", BrokerState, Versions(3, LAST), (), array=True),
        Field("leader_recovery_state", "int8", Versions(1, LAST), 0),
        Field("partition_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = UNSET,
        new_isr_with_epochs: list[BrokerState] = UNSET,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is UNSET else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is UNSET else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class TopicData(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(2, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class AlterPartitionRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "topics",)
    TYPE = "request"
    API_KEY = 56
    VERSIONS = Versions(2, 3)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[TopicData] = UNSET,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is UNSET else topics

