"""Generated from Kafka's UpdateRaftVoterResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CurrentLeader(Struct):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", Versions(0, LAST), -1),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = field(default_factory=lambda: CurrentLeader())
    TYPE = "response"
    API_KEY = 82
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("current_leader", CurrentLeader, Versions(0, LAST), ..., tag=0, tagged=Versions(0, LAST)),
    )

