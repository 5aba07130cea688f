"""Generated from Kafka's StreamsGroupCurrentMemberAssignmentValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TaskIds(Struct):
    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    assignment_epochs: list[int] | None = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
        Field("assignment_epochs", "int32", Versions(0, LAST), (), array=True, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )


@dataclass(slots=True)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)
    active_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    standby_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    warmup_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 22
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("previous_member_epoch", "int32", Versions(0, LAST), 0),
        Field("state", "int8", Versions(0, LAST), 0),
        Field("active_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("standby_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("active_tasks_pending_revocation", TaskIds, Versions(0, LAST), (), array=True),
        Field("standby_tasks_pending_revocation", TaskIds, Versions(0, LAST), (), array=True),
        Field("warmup_tasks_pending_revocation", TaskIds, Versions(0, LAST), (), array=True),
    )

