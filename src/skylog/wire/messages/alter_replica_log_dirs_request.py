"""Generated from AlterReplicaLogDirsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class AlterReplicaLogDirTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class AlterReplicaLogDir(Struct):
    __slots__ = ("path", "topics",)
    FIELDS = (
        Field("path", "string", Versions(0, LAST), ""),
        Field("topics", AlterReplicaLogDirTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = UNSET,
    ) -> None:
        self.path = path
        self.topics = [] if topics is UNSET else topics


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)
    TYPE = "request"
    API_KEY = 34
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("dirs", AlterReplicaLogDir, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        dirs: list[AlterReplicaLogDir] = UNSET,
    ) -> None:
        self.dirs = [] if dirs is UNSET else dirs

