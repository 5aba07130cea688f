"""Generated from Kafka's VotersRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Endpoint(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class KRaftVersionFeature(Struct):
    min_supported_version: int = 0
    max_supported_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", Versions(0, LAST), 0),
        Field("max_supported_version", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class Voter(Struct):
    voter_id: int = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = field(default_factory=list)
    k_raft_version_feature: KRaftVersionFeature = field(default_factory=lambda: KRaftVersionFeature())
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("endpoints", Endpoint, Versions(0, LAST), (), array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, Versions(0, LAST), ...),
    )


@dataclass(slots=True)
class VotersRecord(Message):
    version: int = 0
    voters: list[Voter] = field(default_factory=list)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("voters", Voter, Versions(0, LAST), (), array=True),
    )

