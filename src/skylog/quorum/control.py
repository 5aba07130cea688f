"""The control records of the metadata log: leader changes, voters, protocol version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skylog.quorum.voters import ReplicaKey, Voter, VoterSet
from skylog.wire.control_records import ControlType, control_record
from skylog.wire.messages import leader_change_message
from skylog.wire.messages.k_raft_version_record import KRaftVersionRecord
from skylog.wire.messages.leader_change_message import LeaderChangeMessage
from skylog.wire.messages.voters_record import VotersRecord

ControlRecord = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class QuorumRecords:
    """What the control records up to some offset say of the quorum."""

    kraft_version: int = 0
    voters: VoterSet | None = None

    def with_control(self, message: Any) -> QuorumRecords:
        if isinstance(message, KRaftVersionRecord):
            return replace(self, kraft_version=message.k_raft_version)
        if isinstance(message, VotersRecord):
            return replace(self, voters=VoterSet.from_record(message))
        return self

    def with_voter(self, voter: Voter) -> QuorumRecords:
        """One of the voters has new endpoints or versions."""
        return self if self.voters is None else replace(self, voters=self.voters.updated(voter))

    def to_control(self) -> list[ControlRecord]:
        """The equivalent records; none before voters were part of the log."""
        if self.kraft_version == 0:
            return []
        version = KRaftVersionRecord(k_raft_version=self.kraft_version)
        records = [control_record(ControlType.KRAFT_VERSION, version, 0)]
        if self.voters is not None:
            voters = self.voters.to_record()
            records.append(control_record(ControlType.KRAFT_VOTERS, voters, 0))
        return records


def leader_change(
    leader_id: int, voters: Sequence[ReplicaKey], granting: Sequence[ReplicaKey]
) -> ControlRecord:
    """The first record of every epoch."""
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=[leader_change_message.Voter(voter_id=key.id) for key in voters],
        granting_voters=[leader_change_message.Voter(voter_id=key.id) for key in granting],
    )
    return control_record(ControlType.LEADER_CHANGE, message, 0)
