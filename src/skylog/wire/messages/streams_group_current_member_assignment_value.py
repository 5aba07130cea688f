"""Generated from StreamsGroupCurrentMemberAssignmentValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions", "assignment_epochs",)
    FIELDS = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
        Field("assignment_epochs", "int32", Versions(0, LAST), (), array=True, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = UNSET,
        assignment_epochs: list[int] | None = UNSET,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is UNSET else partitions
        self.assignment_epochs = [] if assignment_epochs is UNSET else assignment_epochs


class StreamsGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "active_tasks", "standby_tasks", "warmup_tasks", "active_tasks_pending_revocation", "standby_tasks_pending_revocation", "warmup_tasks_pending_revocation",)
    TYPE = "coordinator-value"
    API_KEY = 22
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
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

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[TaskIds] = UNSET,
        standby_tasks: list[TaskIds] = UNSET,
        warmup_tasks: list[TaskIds] = UNSET,
        active_tasks_pending_revocation: list[TaskIds] = UNSET,
        standby_tasks_pending_revocation: list[TaskIds] = UNSET,
        warmup_tasks_pending_revocation: list[TaskIds] = UNSET,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is UNSET else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is UNSET else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is UNSET else warmup_tasks_pending_revocation

