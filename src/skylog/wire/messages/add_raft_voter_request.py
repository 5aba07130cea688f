"""Generated from Kafka's AddRaftVoterRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class AddRaftVoterRequest(Message):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    ack_when_committed: bool = True
    TYPE = "request"
    API_KEY = 80
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller', 'broker')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("listeners", Listener, Versions(0, LAST), (), array=True),
        Field("ack_when_committed", "bool", Versions(1, LAST), True),
    )

