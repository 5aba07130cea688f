"""Generated from UpdateRaftVoterRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Listener(Struct):
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


class UpdateRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "k_raft_version_feature",)
    TYPE = "request"
    API_KEY = 82
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("current_leader_epoch", "int32", Versions(0, LAST), 0),
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("listeners", Listener, Versions(0, LAST), (), array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, Versions(0, LAST), ...),
    )

    def __init__(
        self,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        listeners: list[Listener] = UNSET,
        k_raft_version_feature: KRaftVersionFeature = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is UNSET else listeners
        self.k_raft_version_feature = KRaftVersionFeature() if k_raft_version_feature is UNSET else k_raft_version_feature

