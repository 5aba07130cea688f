"""Generated from CommitStagedResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CommittedBatch(Struct):
    __slots__ = ("error_code", "error_message", "base_offset", "log_append_timestamp", "duplicate",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("base_offset", "int64", Versions(0, LAST), -1),
        Field("log_append_timestamp", "int64", Versions(0, LAST), -1),
        Field("duplicate", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        base_offset: int = -1,
        log_append_timestamp: int = -1,
        duplicate: bool = False,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.base_offset = base_offset
        self.log_append_timestamp = log_append_timestamp
        self.duplicate = duplicate


class CommittedObject(Struct):
    __slots__ = ("error_code", "error_message", "batches",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("batches", CommittedBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        batches: list[CommittedBatch] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.batches = [] if batches is UNSET else batches


class CommitStagedResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "objects",)
    TYPE = "response"
    API_KEY = 502
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("objects", CommittedObject, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        objects: list[CommittedObject] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.objects = [] if objects is UNSET else objects

