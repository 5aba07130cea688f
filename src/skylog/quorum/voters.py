"""The voters: replicas by id and directory id (KIP-853)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.kernel.errors import invariant
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.messages import voters_record
from skylog.wire.messages.voters_record import VotersRecord

KRAFT_VERSION_MIN: Final = 0
# From this version on, voters are identified by the directory of their log.
KRAFT_VERSION_MAX: Final = 1


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """A replica is a node *with its disk*: a node that returns with an empty disk is another
    replica."""

    id: int
    directory_id: Uuid


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a controller."""

    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """One member of the quorum, as in the voters record."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: tuple[int, int] = (KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Its endpoint under this name; a static voter has only one address."""
        named = (each for each in self.endpoints if each.listener == listener)
        return next(named, self.endpoints[0] if self.endpoints else None)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The members of the quorum, by id."""

    voters: tuple[Voter, ...]

    def __post_init__(self) -> None:
        ids = [voter.key.id for voter in self.voters]
        invariant(len(set(ids)) == len(ids), f"a voter is listed twice: {ids}")

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def key_of(self, replica: ReplicaKey) -> ReplicaKey | None:
        """The key of this replica as a voter, None for an observer.

        A voter of ``controller.quorum.voters`` is identified by its id alone, whatever its disk.
        """
        for voter in self.voters:
            key = voter.key
            if key.id == replica.id:
                known = key.directory_id in (replica.directory_id, ZERO_UUID)
                return key if known else None
        return None

    def __contains__(self, replica: ReplicaKey) -> bool:
        return self.key_of(replica) is not None

    def is_only(self, replica: ReplicaKey) -> bool:
        return len(self.voters) == 1 and replica in self

    def get(self, voter_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.key.id == voter_id), None)

    def updated(self, changed: Voter) -> VoterSet:
        """The same members, one with new endpoints or versions."""
        invariant(changed.key in self, f"{changed.key} is not a voter")
        return VoterSet(
            tuple(changed if voter.key.id == changed.key.id else voter for voter in self.voters)
        )

    def added(self, voter: Voter) -> VoterSet:
        return VoterSet((*self.voters, voter))

    def removed(self, key: ReplicaKey) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if voter.key != key))

    def to_record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=[_to_wire(voter) for voter in self.voters])

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls(tuple(_from_wire(voter) for voter in record.voters))


NO_VOTERS: Final = VoterSet(())


class VoterIds(Collection[int]):
    """The ids of the current voters."""

    def __init__(self, voters: Callable[[], VoterSet]) -> None:
        self._voters = voters

    def __contains__(self, node_id: object) -> bool:
        return any(voter.key.id == node_id for voter in self._voters().voters)

    def __iter__(self) -> Iterator[int]:
        return iter([voter.key.id for voter in self._voters().voters])

    def __len__(self) -> int:
        return len(self._voters().voters)


def parse_voters(voters: Sequence[str], listener: str) -> VoterSet:
    """``controller.quorum.voters``: ``id@host:port`` each, with unknown directory ids."""
    found = []
    for text in voters:
        node_id, _, address = text.partition("@")
        endpoint = parse_servers([address], listener)[0]
        found.append(Voter(ReplicaKey(int(node_id), ZERO_UUID), (endpoint,)))
    return VoterSet(tuple(found))


def parse_servers(servers: Sequence[str], listener: str) -> tuple[Endpoint, ...]:
    """``controller.quorum.bootstrap.servers``: ``host:port`` each, checked with the settings."""
    found = []
    for text in servers:
        host, _, port = text.rpartition(":")
        found.append(Endpoint(listener, host.strip("[]"), int(port)))
    return tuple(found)


def _to_wire(voter: Voter) -> voters_record.Voter:
    least, greatest = voter.kraft_versions
    return voters_record.Voter(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=[
            voters_record.Endpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in voter.endpoints
        ],
        k_raft_version_feature=voters_record.KRaftVersionFeature(
            min_supported_version=least, max_supported_version=greatest
        ),
    )


def _from_wire(voter: voters_record.Voter) -> Voter:
    feature = voter.k_raft_version_feature
    return Voter(
        key=ReplicaKey(voter.voter_id, voter.voter_directory_id),
        endpoints=tuple(
            Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints
        ),
        kraft_versions=(feature.min_supported_version, feature.max_supported_version),
    )
