"""Generated from ConsumerGroupPartitionMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionMetadata(Struct):
    __slots__ = ("partition", "racks",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("racks", "string", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition: int = 0,
        racks: list[str] = UNSET,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is UNSET else racks


class TopicMetadata(Struct):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("num_partitions", "int32", Versions(0, LAST), 0),
        Field("partition_metadata", PartitionMetadata, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is UNSET else partition_metadata


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics",)
    TYPE = "coordinator-value"
    API_KEY = 4
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topics", TopicMetadata, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topics: list[TopicMetadata] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics

