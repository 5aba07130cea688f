"""Generated from DescribeRemoteLogRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class DescribeRemoteLogRequest(Message):
    __slots__ = ("topic_id", "partition_index", "start_offset", "after_segment_id", "limit", "finished_only",)
    TYPE = "request"
    API_KEY = 512
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("after_segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("limit", "int32", Versions(0, LAST), 0),
        Field("finished_only", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        start_offset: int = 0,
        after_segment_id: Uuid = ZERO_UUID,
        limit: int = 0,
        finished_only: bool = False,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.after_segment_id = after_segment_id
        self.limit = limit
        self.finished_only = finished_only

