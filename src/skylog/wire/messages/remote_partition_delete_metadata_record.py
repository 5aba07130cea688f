"""Generated from RemotePartitionDeleteMetadataRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicIdPartitionEntry(Struct):
    __slots__ = ("name", "id", "partition",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition


class RemotePartitionDeleteMetadataRecord(Message):
    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state",)
    TYPE = "remote-log-record"
    API_KEY = 2
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id_partition", TopicIdPartitionEntry, Versions(0, LAST), ...),
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("event_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("remote_partition_delete_state", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_id_partition: TopicIdPartitionEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition = TopicIdPartitionEntry() if topic_id_partition is UNSET else topic_id_partition
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state

