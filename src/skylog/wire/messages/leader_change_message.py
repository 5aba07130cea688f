"""Generated from Kafka's LeaderChangeMessage.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Voter(Struct):
    voter_id: int = 0
    voter_directory_id: Uuid = ZERO_UUID
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
    )


@dataclass(slots=True)
class LeaderChangeMessage(Message):
    version: int = 0
    leader_id: int = 0
    voters: list[Voter] = field(default_factory=list)
    granting_voters: list[Voter] = field(default_factory=list)
    TYPE = "data"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("voters", Voter, Versions(0, LAST), (), array=True),
        Field("granting_voters", Voter, Versions(0, LAST), (), array=True),
    )

