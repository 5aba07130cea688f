"""Generated from VotersRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Endpoint(Struct):
    __slots__ = ("name", "host", "port",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class KRaftVersionFeature(Struct):
    __slots__ = ("min_supported_version", "max_supported_version",)
    FIELDS = (
        Field("min_supported_version", "int16", Versions(0, LAST), 0),
        Field("max_supported_version", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class Voter(Struct):
    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "k_raft_version_feature",)
    FIELDS = (
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("endpoints", Endpoint, Versions(0, LAST), (), array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, Versions(0, LAST), ...),
    )

    def __init__(
        self,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        endpoints: list[Endpoint] = UNSET,
        k_raft_version_feature: KRaftVersionFeature = UNSET,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is UNSET else endpoints
        self.k_raft_version_feature = KRaftVersionFeature() if k_raft_version_feature is UNSET else k_raft_version_feature


class VotersRecord(Message):
    __slots__ = ("version", "voters",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("voters", Voter, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        version: int = 0,
        voters: list[Voter] = UNSET,
    ) -> None:
        self.version = version
        self.voters = [] if voters is UNSET else voters

