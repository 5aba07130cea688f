"""The effects of the quorum's machine, carried out in order before anything else happens. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skylog.quorum.election import ElectionState
from skylog.quorum.messages import PeerRequest
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Make this durable before continuing."""

    election: ElectionState


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """This node leads: write the records that begin its epoch."""

    epoch: int
    granting: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class AppendVoters:
    """Write a new set of voters; it counts once it is in the log."""

    voters: VoterSet


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append the leader's records, make them durable, then call ``log_synced``."""

    records: Any


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Drop the log from this offset on: the leader has other records there."""

    offset: int


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Store a chunk of a snapshot that is being fetched; position 0 starts over."""

    snapshot_id: SnapshotId
    position: int
    data: Any


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """The snapshot is complete: make it durable; the log continues, empty, at its end."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before this offset can no longer be lost."""

    offset: int


@dataclass(frozen=True, slots=True)
class Peer:
    """The destination of a request. Servers known only by address have negative ids."""

    id: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; its response, or failure, is passed to ``answered`` with this number."""

    correlation_id: int
    peer: Peer
    request: PeerRequest


Effect = (
    SaveElection
    | BeginEpoch
    | AppendVoters
    | AppendFetched
    | TruncateTo
    | WriteSnapshot
    | InstallSnapshot
    | AdvanceHighWatermark
    | Send
)
