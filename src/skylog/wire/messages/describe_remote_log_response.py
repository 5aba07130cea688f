"""Generated from DescribeRemoteLogResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribedRemoteSegment(Struct):
    __slots__ = ("record", "object_key",)
    FIELDS = (
        Field("record", "bytes", Versions(0, LAST), b""),
        Field("object_key", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        record: bytes = b"",
        object_key: str | None = None,
    ) -> None:
        self.record = record
        self.object_key = object_key


class DescribeRemoteLogResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topic_name", "leader_epoch", "log_start_offset", "local_log_start_offset", "high_watermark", "log_end_offset", "highest_remote_offset", "remote_end_offset", "local_bytes", "storage_url", "metadata_partition", "metadata_offset", "state", "has_more", "segments",)
    TYPE = "response"
    API_KEY = 512
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("local_log_start_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("log_end_offset", "int64", Versions(0, LAST), -1),
        Field("highest_remote_offset", "int64", Versions(0, LAST), -1),
        Field("remote_end_offset", "int64", Versions(0, LAST), -1),
        Field("local_bytes", "int64", Versions(0, LAST), -1),
        Field("storage_url", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("metadata_partition", "int32", Versions(0, LAST), -1),
        Field("metadata_offset", "int64", Versions(0, LAST), -1),
        Field("state", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("has_more", "bool", Versions(0, LAST), False),
        Field("segments", DescribedRemoteSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        topic_name: str = "",
        leader_epoch: int = -1,
        log_start_offset: int = -1,
        local_log_start_offset: int = -1,
        high_watermark: int = -1,
        log_end_offset: int = -1,
        highest_remote_offset: int = -1,
        remote_end_offset: int = -1,
        local_bytes: int = -1,
        storage_url: str | None = None,
        metadata_partition: int = -1,
        metadata_offset: int = -1,
        state: bytes | None = None,
        has_more: bool = False,
        segments: list[DescribedRemoteSegment] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topic_name = topic_name
        self.leader_epoch = leader_epoch
        self.log_start_offset = log_start_offset
        self.local_log_start_offset = local_log_start_offset
        self.high_watermark = high_watermark
        self.log_end_offset = log_end_offset
        self.highest_remote_offset = highest_remote_offset
        self.remote_end_offset = remote_end_offset
        self.local_bytes = local_bytes
        self.storage_url = storage_url
        self.metadata_partition = metadata_partition
        self.metadata_offset = metadata_offset
        self.state = state
        self.has_more = has_more
        self.segments = [] if segments is UNSET else segments

