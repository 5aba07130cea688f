"""Generated from Kafka's QuorumStateData.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Voter(Struct):
    voter_id: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", Versions(0, 0), 0),
    )


@dataclass(slots=True)
class QuorumStateData(Message):
    cluster_id: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    voted_id: int = -1
    voted_directory_id: Uuid = ZERO_UUID
    applied_offset: int = 0
    current_voters: list[Voter] | None = field(default_factory=list)
    TYPE = "data"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", Versions(0, 0), ""),
        Field("leader_id", "int32", Versions(0, LAST), -1),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("voted_id", "int32", Versions(0, LAST), -1),
        Field("voted_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
        Field("applied_offset", "int64", Versions(0, 0), 0),
        Field("current_voters", Voter, Versions(0, 0), (), array=True, nullable=Versions(0, 0)),
    )

