"""Generated from StreamsGroupMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class LastAssignmentConfig(Struct):
    __slots__ = ("key", "value",)
    FIELDS = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


class StreamsGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs",)
    TYPE = "coordinator-value"
    API_KEY = 17
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("metadata_hash", "int64", Versions(0, LAST), 0),
        Field("validated_topology_epoch", "int32", Versions(0, LAST), -1, tag=0, tagged=Versions(0, LAST)),
        Field("last_assignment_configs", LastAssignmentConfig, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST), tag=1, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = UNSET,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is UNSET else last_assignment_configs

