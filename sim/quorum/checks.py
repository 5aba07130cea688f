"""Invariants that hold at every moment, whatever happens to the network and the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.quorum.log import Entry, digest_of
from skylog.quorum.election import ElectionState
from skylog.quorum.messages import VoteRequest
from skylog.quorum.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.quorum.node import SimNode


class Checks:
    """The history that all nodes must agree on."""

    def __init__(self) -> None:
        self.leaders: dict[int, ReplicaKey] = {}
        self.committed: list[Entry] = []
        # The digest and the voters after each committed record, and before the first.
        self.digests: list[int] = [0]
        self.voters: list[VoterSet] = []
        self.epochs: dict[ReplicaKey, int] = {}
        # Voters whose disks were replaced: what they had acknowledged was durable then.
        self.lost: set[ReplicaKey] = set()

    def elected(self, node: SimNode, epoch: int) -> None:
        """One leader in an epoch, and it has everything that was ever committed."""
        assert epoch not in self.leaders, (
            f"{node.key.id} leads epoch {epoch}, and so did {self.leaders[epoch].id}"
        )
        self.leaders[epoch] = node.key
        saved = node.saved or ElectionState()
        assert (saved.epoch, saved.leader_id) == (epoch, node.key.id), "leads before it is saved"
        log = node.log
        assert log.end_offset >= len(self.committed), (
            f"leader {node.key.id} of epoch {epoch} ends at {log.end_offset}, "
            f"committed are {len(self.committed)}"
        )
        for offset in range(log.start_offset, len(self.committed)):
            self._same(node, offset)

    def saved(self, node: SimNode, election: ElectionState) -> None:
        """Epochs never decrease, and a vote never changes within one."""
        before = node.saved or ElectionState()
        assert election.epoch >= before.epoch, f"epoch {before.epoch} back to {election.epoch}"
        if election.epoch == before.epoch:
            assert before.leader_id in (None, election.leader_id), (
                f"{node.key.id} saw two leaders in epoch {election.epoch}"
            )
            kept = election.voted == before.voted or election.leader_id == node.key.id
            assert before.voted is None or kept, f"{node.key.id} voted twice in {election.epoch}"

    def answers(self, node: SimNode, request: Any, answer: Any) -> None:
        """A vote is on disk before it is given."""
        if isinstance(request, VoteRequest) and answer.granted and not request.pre_vote:
            saved = node.saved or ElectionState()
            assert (saved.epoch, saved.voted) == (request.epoch, request.candidate), (
                f"{node.key.id} gave a vote that is not durable"
            )

    def advanced(self, node: SimNode, offset: int) -> None:
        """A high watermark only increases, over the same records as on all other nodes."""
        log = node.log
        assert offset > node.high_watermark, f"high watermark back to {offset}"
        assert offset <= log.end_offset, f"high watermark {offset} beyond {log.end_offset}"
        for position in range(len(self.committed), offset):
            entry = log.entry(position)
            assert entry is not None, f"{position} is committed and not there"
            self._commit(entry, node)
        for position in range(max(node.high_watermark, log.start_offset), offset):
            self._same(node, position)
            node.digest = digest_of(node.digest, self.committed[position])
        assert node.digest == self.digests[offset], f"{node.key.id} has another state at {offset}"
        assert log.quorum_at(offset).voters in (None, self.voters[offset - 1]), "other voters"

    def majority(self, node: SimNode, offset: int, nodes: Mapping[int, SimNode]) -> None:
        """What a leader commits is durable on a majority of its voters."""
        entry = node.log.entry(offset - 1)
        assert entry is not None
        assert entry.epoch == node.machine.epoch, "committed without a record of the epoch"
        voters = node.machine.voters
        holders = 0
        for key in voters.keys:
            holder = nodes.get(key.id)
            held = holder is not None and holder.log.is_durable(offset - 1, entry)
            holders += key in self.lost or held
        assert holders >= voters.majority, (
            f"{node.key.id} commits {offset - 1}, durable on {holders} of {len(voters.voters)}"
        )

    def _commit(self, entry: Entry, node: SimNode) -> None:
        self.committed.append(entry)
        self.digests.append(digest_of(self.digests[-1], entry))
        voters = entry.voters or (self.voters[-1] if self.voters else node.initial_voters)
        self.voters.append(voters)

    def _same(self, node: SimNode, offset: int) -> None:
        found = node.log.entry(offset)
        assert found == self.committed[offset], (
            f"{node.key.id} has {found} at {offset}, committed is {self.committed[offset]}"
        )
