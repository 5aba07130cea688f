"""Generated from DisklessReceiveFileRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class DisklessReceiveFileRequest(Message):
    __slots__ = ("coordinator_id", "object_key", "object_format", "file_size", "uploader_broker_id", "owner_ids", "timeout_ms",)
    TYPE = "request"
    API_KEY = 506
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("object_format", "int8", Versions(0, LAST), 0),
        Field("file_size", "int64", Versions(0, LAST), 0),
        Field("uploader_broker_id", "int32", Versions(0, LAST), 0),
        Field("owner_ids", "int32", Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        object_key: str = "",
        object_format: int = 0,
        file_size: int = 0,
        uploader_broker_id: int = 0,
        owner_ids: list[int] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.object_key = object_key
        self.object_format = object_format
        self.file_size = file_size
        self.uploader_broker_id = uploader_broker_id
        self.owner_ids = [] if owner_ids is UNSET else owner_ids
        self.timeout_ms = timeout_ms

