"""Generated from StartSegmentsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class StartSegment(Struct):
    __slots__ = ("segment_id", "start_offset", "end_offset",)
    FIELDS = (
        Field("segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        segment_id: Uuid = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset


class StartPartition(Struct):
    __slots__ = ("topic_id", "partition_index", "leader_epoch", "segments",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("segments", StartSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        leader_epoch: int = -1,
        segments: list[StartSegment] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.segments = [] if segments is UNSET else segments


class StartSegmentsRequest(Message):
    __slots__ = ("job_id", "take_over", "timeout_ms", "partitions",)
    TYPE = "request"
    API_KEY = 510
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("job_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("take_over", "bool", Versions(0, LAST), False),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("partitions", StartPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        job_id: Uuid = ZERO_UUID,
        take_over: bool = False,
        timeout_ms: int = 0,
        partitions: list[StartPartition] = UNSET,
    ) -> None:
        self.job_id = job_id
        self.take_over = take_over
        self.timeout_ms = timeout_ms
        self.partitions = [] if partitions is UNSET else partitions

