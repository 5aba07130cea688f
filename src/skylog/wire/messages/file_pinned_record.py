"""Generated from FilePinnedRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PinnedAnswer(Struct):
    __slots__ = ("byte_offset", "error_code", "base_offset", "log_append_time",)
    FIELDS = (
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        byte_offset: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time: int = 0,
    ) -> None:
        self.byte_offset = byte_offset
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time = log_append_time


class FilePinnedRecord(Message):
    __slots__ = ("object_key", "writer_id", "epoch", "expires_ms", "file_size", "object_format", "answers",)
    TYPE = "diskless-record"
    API_KEY = 503
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("writer_id", "string", Versions(0, LAST), ""),
        Field("epoch", "int64", Versions(0, LAST), 0),
        Field("expires_ms", "int64", Versions(0, LAST), 0),
        Field("file_size", "int64", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("object_format", "int8", Versions(0, LAST), 0, tag=10001, tagged=Versions(0, LAST), ignorable=True),
        Field("answers", PinnedAnswer, Versions(0, LAST), (), array=True, tag=10002, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        object_key: str = "",
        writer_id: str = "",
        epoch: int = 0,
        expires_ms: int = 0,
        file_size: int = -1,
        object_format: int = 0,
        answers: list[PinnedAnswer] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.writer_id = writer_id
        self.epoch = epoch
        self.expires_ms = expires_ms
        self.file_size = file_size
        self.object_format = object_format
        self.answers = [] if answers is UNSET else answers

