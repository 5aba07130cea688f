"""Generated from RecordsDeletedRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class RecordsDeletedRecord(Message):
    __slots__ = ("topic_id", "partition_index", "new_log_start_offset",)
    TYPE = "diskless-record"
    API_KEY = 103
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("new_log_start_offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        new_log_start_offset: int = 0,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.new_log_start_offset = new_log_start_offset

