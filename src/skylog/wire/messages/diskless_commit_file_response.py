"""Generated from DisklessCommitFileResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessCommitBatchResult(Struct):
    __slots__ = ("error_code", "error_message", "assigned_base_offset", "log_append_time", "log_start_offset", "is_duplicate",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("assigned_base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time", "int64", Versions(0, LAST), 0),
        Field("log_start_offset", "int64", Versions(0, LAST), 0),
        Field("is_duplicate", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        assigned_base_offset: int = 0,
        log_append_time: int = 0,
        log_start_offset: int = 0,
        is_duplicate: bool = False,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.assigned_base_offset = assigned_base_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.is_duplicate = is_duplicate


class DisklessCommitCoordinatorResult(Struct):
    __slots__ = ("coordinator_id", "error_code", "error_message",)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.error_code = error_code
        self.error_message = error_message


class DisklessCommitFileResponse(Message):
    __slots__ = ("throttle_time_ms", "batches", "coordinators",)
    TYPE = "response"
    API_KEY = 95
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("batches", DisklessCommitBatchResult, Versions(0, LAST), (), array=True),
        Field("coordinators", DisklessCommitCoordinatorResult, Versions(0, LAST), (), array=True, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        batches: list[DisklessCommitBatchResult] = UNSET,
        coordinators: list[DisklessCommitCoordinatorResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.batches = [] if batches is UNSET else batches
        self.coordinators = [] if coordinators is UNSET else coordinators

