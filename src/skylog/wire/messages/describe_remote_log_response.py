"""Generated from DescribeRemoteLogResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class RemoteHighestOffset(Struct):
    __slots__ = ("leader_epoch", "offset",)
    FIELDS = (
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset


class RemoteSegmentEpoch(Struct):
    __slots__ = ("leader_epoch", "offset",)
    FIELDS = (
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset


class DescribedRemoteSegment(Struct):
    __slots__ = ("segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty", "copier_epoch",)
    FIELDS = (
        Field("segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("max_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("event_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("segment_leader_epochs", RemoteSegmentEpoch, Versions(0, LAST), (), array=True),
        Field("segment_size_in_bytes", "int32", Versions(0, LAST), 0),
        Field("custom_metadata", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("remote_log_segment_state", "int8", Versions(0, LAST), 0),
        Field("txn_index_empty", "bool", Versions(0, LAST), False),
        Field("copier_epoch", "int32", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        segment_id: Uuid = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteSegmentEpoch] = UNSET,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        copier_epoch: int = -1,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is UNSET else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.copier_epoch = copier_epoch


class DescribeRemoteLogResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topic", "metadata_offset", "fence", "log_start_offset", "delete_state", "highest_offsets", "has_more", "segments",)
    TYPE = "response"
    API_KEY = 512
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("topic", "string", Versions(0, LAST), ""),
        Field("metadata_offset", "int64", Versions(0, LAST), -1),
        Field("fence", "int32", Versions(0, LAST), -1),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("delete_state", "int8", Versions(0, LAST), -1),
        Field("highest_offsets", RemoteHighestOffset, Versions(0, LAST), (), array=True),
        Field("has_more", "bool", Versions(0, LAST), False),
        Field("segments", DescribedRemoteSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        topic: str = "",
        metadata_offset: int = -1,
        fence: int = -1,
        log_start_offset: int = -1,
        delete_state: int = -1,
        highest_offsets: list[RemoteHighestOffset] = UNSET,
        has_more: bool = False,
        segments: list[DescribedRemoteSegment] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topic = topic
        self.metadata_offset = metadata_offset
        self.fence = fence
        self.log_start_offset = log_start_offset
        self.delete_state = delete_state
        self.highest_offsets = [] if highest_offsets is UNSET else highest_offsets
        self.has_more = has_more
        self.segments = [] if segments is UNSET else segments

