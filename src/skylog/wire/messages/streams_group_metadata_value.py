"""Generated from Kafka's StreamsGroupMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class LastAssignmentConfig(Struct):
    key: str = ""
    value: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class StreamsGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 17
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("metadata_hash", "int64", Versions(0, LAST), 0),
        Field("validated_topology_epoch", "int32", Versions(0, LAST), -1, tag=0, tagged=Versions(0, LAST)),
        Field("last_assignment_configs", LastAssignmentConfig, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST), tag=1, tagged=Versions(0, LAST)),
    )

