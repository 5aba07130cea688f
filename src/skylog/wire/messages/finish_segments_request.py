"""Generated from FinishSegmentsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class FinishSegment(Struct):
    __slots__ = ("segment_id", "give_up",)
    FIELDS = (
        Field("segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("give_up", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        segment_id: Uuid = ZERO_UUID,
        give_up: bool = False,
    ) -> None:
        self.segment_id = segment_id
        self.give_up = give_up


class FinishPartition(Struct):
    __slots__ = ("topic_id", "partition_index", "leader_epoch", "segments",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("segments", FinishSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        leader_epoch: int = 0,
        segments: list[FinishSegment] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.segments = [] if segments is UNSET else segments


class FinishSegmentsRequest(Message):
    __slots__ = ("job_id", "timeout_ms", "partitions",)
    TYPE = "request"
    API_KEY = 511
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("job_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("partitions", FinishPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        job_id: Uuid = ZERO_UUID,
        timeout_ms: int = 0,
        partitions: list[FinishPartition] = UNSET,
    ) -> None:
        self.job_id = job_id
        self.timeout_ms = timeout_ms
        self.partitions = [] if partitions is UNSET else partitions

