"""Generated from LeaderChangeMessage.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Voter(Struct):
    __slots__ = ("voter_id", "voter_directory_id",)
    FIELDS = (
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class LeaderChangeMessage(Message):
    __slots__ = ("version", "leader_id", "voters", "granting_voters",)
    TYPE = "data"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("version", "int16", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("voters", Voter, Versions(0, LAST), (), array=True),
        Field("granting_voters", Voter, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] = UNSET,
        granting_voters: list[Voter] = UNSET,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is UNSET else voters
        self.granting_voters = [] if granting_voters is UNSET else granting_voters

