"""Generated from Kafka's PartitionRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class PartitionRecord(Message):
    partition_id: int = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[int] = field(default_factory=list)
    isr: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: list[Uuid] = field(default_factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    TYPE = "metadata"
    API_KEY = 3
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", Versions(0, LAST), -1),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("replicas", "int32", Versions(0, LAST), (), array=True),
        Field("isr", "int32", Versions(0, LAST), (), array=True),
        Field("removing_replicas", "int32", Versions(0, LAST), (), array=True),
        Field("adding_replicas", "int32", Versions(0, LAST), (), array=True),
        Field("leader", "int32", Versions(0, LAST), -1),
        Field("leader_recovery_state", "int8", Versions(0, LAST), 0, tag=0, tagged=Versions(0, LAST)),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("partition_epoch", "int32", Versions(0, LAST), -1),
        Field("directories", "uuid", Versions(1, LAST), (), array=True),
        Field("eligible_leader_replicas", "int32", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=1, tagged=Versions(2, LAST)),
        Field("last_known_elr", "int32", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=2, tagged=Versions(2, LAST)),
    )

