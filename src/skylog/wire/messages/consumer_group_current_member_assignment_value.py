"""Generated from ConsumerGroupCurrentMemberAssignmentValue.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions", "assignment_epochs",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
        Field("assignment_epochs", "int32", Versions(0, LAST), (), array=True, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = UNSET,
        assignment_epochs: list[int] | None = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions
        self.assignment_epochs = [] if assignment_epochs is UNSET else assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation",)
    TYPE = "coordinator-value"
    API_KEY = 8
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("previous_member_epoch", "int32", Versions(0, LAST), 0),
        Field("state", "int8", Versions(0, LAST), 0),
        Field("assigned_partitions", TopicPartitions, Versions(0, LAST), (), array=True),
        Field("partitions_pending_revocation", TopicPartitions, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = UNSET,
        partitions_pending_revocation: list[TopicPartitions] = UNSET,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is UNSET else partitions_pending_revocation

