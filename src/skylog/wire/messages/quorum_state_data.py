"""Generated from QuorumStateData.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Voter(Struct):
    __slots__ = ("voter_id",)
    FIELDS = (
        Field("voter_id", "int32", Versions(0, 0), 0),
    )

    def __init__(
        self,
        voter_id: int = 0,
    ) -> None:
        self.voter_id = voter_id


class QuorumStateData(Message):
    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset", "current_voters",)
    TYPE = "data"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, 0), ""),
        Field("leader_id", "int32", Versions(0, LAST), -1),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("voted_id", "int32", Versions(0, LAST), -1),
        Field("voted_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
        Field("applied_offset", "int64", Versions(0, 0), 0),
        Field("current_voters", Voter, Versions(0, 0), (), array=True, nullable=Versions(0, 0)),
    )

    def __init__(
        self,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: Uuid = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[Voter] | None = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is UNSET else current_voters

