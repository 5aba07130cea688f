"""Generated from Kafka's ShareGroupCurrentMemberAssignmentValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 14
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("previous_member_epoch", "int32", Versions(0, LAST), 0),
        Field("state", "int8", Versions(0, LAST), 0),
        Field("assigned_partitions", TopicPartitions, Versions(0, LAST), (), array=True),
    )

