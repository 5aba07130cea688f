"""Generated from FileReceivedRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class FileReceivedRecord(Message):
    __slots__ = ("object_key", "object_format", "file_size", "uploader_broker_id", "owner_ids",)
    TYPE = "diskless-record"
    API_KEY = 501
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("object_format", "int8", Versions(0, LAST), 0),
        Field("file_size", "int64", Versions(0, LAST), 0),
        Field("uploader_broker_id", "int32", Versions(0, LAST), 0),
        Field("owner_ids", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        object_key: str = "",
        object_format: int = 0,
        file_size: int = 0,
        uploader_broker_id: int = 0,
        owner_ids: list[int] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.object_format = object_format
        self.file_size = file_size
        self.uploader_broker_id = uploader_broker_id
        self.owner_ids = [] if owner_ids is UNSET else owner_ids

