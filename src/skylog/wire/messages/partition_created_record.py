"""Generated from PartitionCreatedRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class PartitionCreatedRecord(Message):
    __slots__ = ("topic_id", "name", "partition_index",)
    TYPE = "diskless-record"
    API_KEY = 100
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_id = topic_id
        self.name = name
        self.partition_index = partition_index

