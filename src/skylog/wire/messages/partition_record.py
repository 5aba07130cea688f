"""Generated from PartitionRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class PartitionRecord(Message):
    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr", "diskless_coordinator_id",)
    TYPE = "metadata"
    API_KEY = 3
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
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
        Field("diskless_coordinator_id", "int32", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        replicas: list[int] = UNSET,
        isr: list[int] = UNSET,
        removing_replicas: list[int] = UNSET,
        adding_replicas: list[int] = UNSET,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[Uuid] = UNSET,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        diskless_coordinator_id: int = -1,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is UNSET else replicas
        self.isr = [] if isr is UNSET else isr
        self.removing_replicas = [] if removing_replicas is UNSET else removing_replicas
        self.adding_replicas = [] if adding_replicas is UNSET else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is UNSET else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.diskless_coordinator_id = diskless_coordinator_id

