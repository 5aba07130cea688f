"""The messages between replicas of the metadata log.

Pure: values, independent of their wire format. Every response has the responder's epoch and, if
known, its leader: this is how replicas learn of an election.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skylog.kernel.errors import ErrorCode
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """Requests a vote, or (a pre-vote) asks whether it would be granted."""

    candidate: ReplicaKey
    epoch: int
    last_epoch: int
    end_offset: int
    pre_vote: bool
    # The intended voter: an address may have a new owner.
    voter: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class BeginEpochRequest:
    """A new leader announces itself to a voter that does not fetch yet."""

    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    voter: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class EndEpochRequest:
    """A leader resigns; the preferred successors come first."""

    leader_id: int
    epoch: int
    successors: tuple[ReplicaKey, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Requests what follows ``offset``; everything before it is durable at the sender."""

    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int = -1


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """Requests a chunk of a snapshot."""

    replica: ReplicaKey
    epoch: int
    snapshot_id: SnapshotId
    position: int


@dataclass(frozen=True, slots=True)
class AddVoterRequest:
    voter: Voter


@dataclass(frozen=True, slots=True)
class RemoveVoterRequest:
    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateVoterRequest:
    """A voter reports its new endpoints or versions."""

    voter: Voter
    epoch: int


PeerRequest = (
    VoteRequest
    | BeginEpochRequest
    | EndEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
)


@dataclass(frozen=True, slots=True)
class Leadership:
    """The epoch, its leader and the leader's endpoint, as far as they are known."""

    epoch: int
    leader_id: int | None = None
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class VoteResponse:
    error: ErrorCode
    leadership: Leadership
    granted: bool = False


@dataclass(frozen=True, slots=True)
class EpochResponse:
    """The response to BeginEpochRequest and EndEpochRequest."""

    error: ErrorCode
    leadership: Leadership


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """An epoch and the offset after its last record."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Records, or where the logs diverge, or which snapshot to fetch first."""

    error: ErrorCode
    leadership: Leadership
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: EpochEnd | None = None
    snapshot_id: SnapshotId | None = None
    # Where to read the records of this response; the sender adds them.
    read_from: int | None = None
    records: Any = ()

    def with_records(self, records: Any) -> FetchResponse:
        return replace(self, read_from=None, records=records)


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    error: ErrorCode
    leadership: Leadership
    snapshot_id: SnapshotId | None = None
    size: int = 0
    position: int = 0
    # The sender reads the bytes at ``position`` and adds them.
    data: Any = b""


@dataclass(frozen=True, slots=True)
class VoterResponse:
    """To a change of voters; a change is complete when ``end_offset`` is committed."""

    error: ErrorCode
    leadership: Leadership
    message: str | None = None
    end_offset: int | None = None


PeerResponse = VoteResponse | EpochResponse | FetchResponse | FetchSnapshotResponse | VoterResponse
