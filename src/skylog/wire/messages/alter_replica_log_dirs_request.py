"""Generated from Kafka's AlterReplicaLogDirsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AlterReplicaLogDirTopic(Struct):
    name: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterReplicaLogDir(Struct):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "string", Versions(0, LAST), ""),
        Field("topics", AlterReplicaLogDirTopic, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 34
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("dirs", AlterReplicaLogDir, Versions(0, LAST), (), array=True),
    )

