"""Generated from FinishSegmentsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class FinishedSegment(Struct):
    __slots__ = ("segment_id", "error_code", "error_message",)
    FIELDS = (
        Field("segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        segment_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.segment_id = segment_id
        self.error_code = error_code
        self.error_message = error_message


class FinishedPartition(Struct):
    __slots__ = ("topic_id", "partition_index", "next_offset", "segments",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("next_offset", "int64", Versions(0, LAST), -1),
        Field("segments", FinishedSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        next_offset: int = -1,
        segments: list[FinishedSegment] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.next_offset = next_offset
        self.segments = [] if segments is UNSET else segments


class FinishSegmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "partitions",)
    TYPE = "response"
    API_KEY = 511
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("partitions", FinishedPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        partitions: list[FinishedPartition] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.partitions = [] if partitions is UNSET else partitions

