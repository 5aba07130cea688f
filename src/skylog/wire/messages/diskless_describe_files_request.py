"""Generated from DisklessDescribeFilesRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessFile(Struct):
    __slots__ = ("object_key",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        object_key: str = "",
    ) -> None:
        self.object_key = object_key


class DisklessDescribeFilesRequest(Message):
    __slots__ = ("files", "coordinator_id", "timeout_ms",)
    TYPE = "request"
    API_KEY = 100
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("files", DisklessFile, Versions(0, LAST), (), array=True),
        Field("coordinator_id", "int32", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        files: list[DisklessFile] = UNSET,
        coordinator_id: int = -1,
        timeout_ms: int = 60000,
    ) -> None:
        self.files = [] if files is UNSET else files
        self.coordinator_id = coordinator_id
        self.timeout_ms = timeout_ms

