"""Generated from Kafka's ElectLeadersResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionResult(Struct):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class ReplicaElectionResult(Struct):
    topic: str = ""
    partition_result: list[PartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partition_result", PartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ElectLeadersResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 43
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(1, LAST), 0),
        Field("replica_election_results", ReplicaElectionResult, Versions(0, LAST), (), array=True),
    )

