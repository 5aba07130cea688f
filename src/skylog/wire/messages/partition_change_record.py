"""Generated from PartitionChangeRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class PartitionChangeRecord(Message):
    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr",)
    TYPE = "metadata"
    API_KEY = 5
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("partition_id", "int32", Versions(0, LAST), -1),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("isr", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
        Field("leader", "int32", Versions(0, LAST), -2, tag=1, tagged=Versions(0, LAST)),
        Field("replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST), tag=2, tagged=Versions(0, LAST)),
        Field("removing_replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST), tag=3, tagged=Versions(0, LAST)),
        Field("adding_replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST), tag=4, tagged=Versions(0, LAST)),
        Field("leader_recovery_state", "int8", Versions(0, LAST), -1, tag=5, tagged=Versions(0, LAST)),
        Field("directories", "uuid", Versions(1, LAST), None, array=True, nullable=Versions(1, LAST), tag=8, tagged=Versions(1, LAST)),
        Field("eligible_leader_replicas", "int32", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=6, tagged=Versions(2, LAST)),
        Field("last_known_elr", "int32", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=7, tagged=Versions(2, LAST)),
    )

    def __init__(
        self,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[Uuid] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr

