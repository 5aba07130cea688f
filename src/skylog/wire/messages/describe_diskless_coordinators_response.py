"""Generated from DescribeDisklessCoordinatorsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribedCoordinator(Struct):
    __slots__ = ("partition_index", "error_code", "state", "leader_id", "leader_epoch", "log_start_offset", "log_end_offset", "high_watermark", "applied_offset", "snapshot_offset", "snapshot_timestamp_ms", "partitions", "batches", "live_files", "free_files", "producers", "pins",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), -1),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("state", "string", Versions(0, LAST), ""),
        Field("leader_id", "int32", Versions(0, LAST), -1),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("log_end_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("applied_offset", "int64", Versions(0, LAST), -1),
        Field("snapshot_offset", "int64", Versions(0, LAST), -1),
        Field("snapshot_timestamp_ms", "int64", Versions(0, LAST), -1),
        Field("partitions", "int64", Versions(0, LAST), -1),
        Field("batches", "int64", Versions(0, LAST), -1),
        Field("live_files", "int64", Versions(0, LAST), -1),
        Field("free_files", "int64", Versions(0, LAST), -1),
        Field("producers", "int64", Versions(0, LAST), -1),
        Field("pins", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = -1,
        error_code: int = 0,
        state: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        log_start_offset: int = -1,
        log_end_offset: int = -1,
        high_watermark: int = -1,
        applied_offset: int = -1,
        snapshot_offset: int = -1,
        snapshot_timestamp_ms: int = -1,
        partitions: int = -1,
        batches: int = -1,
        live_files: int = -1,
        free_files: int = -1,
        producers: int = -1,
        pins: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.state = state
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self.applied_offset = applied_offset
        self.snapshot_offset = snapshot_offset
        self.snapshot_timestamp_ms = snapshot_timestamp_ms
        self.partitions = partitions
        self.batches = batches
        self.live_files = live_files
        self.free_files = free_files
        self.producers = producers
        self.pins = pins


class DescribeDisklessCoordinatorsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "control_plane", "storage_url", "has_all_coordinators", "orphan_threshold_ms", "coordinators",)
    TYPE = "response"
    API_KEY = 504
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("control_plane", "string", Versions(0, LAST), ""),
        Field("storage_url", "string", Versions(0, LAST), ""),
        Field("has_all_coordinators", "bool", Versions(0, LAST), False),
        Field("orphan_threshold_ms", "int64", Versions(0, LAST), -1),
        Field("coordinators", DescribedCoordinator, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        control_plane: str = "",
        storage_url: str = "",
        has_all_coordinators: bool = False,
        orphan_threshold_ms: int = -1,
        coordinators: list[DescribedCoordinator] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.control_plane = control_plane
        self.storage_url = storage_url
        self.has_all_coordinators = has_all_coordinators
        self.orphan_threshold_ms = orphan_threshold_ms
        self.coordinators = [] if coordinators is UNSET else coordinators

