"""One node: the real machine, whose effects are carried out on a model of a disk."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from sim.quorum.log import Entry, SimLog, SimSnapshot
from skylog.kernel.errors import ErrorCode
from skylog.quorum.control import QuorumRecords
from skylog.quorum.effects import (
    AdvanceHighWatermark,
    AppendFetched,
    AppendVoters,
    BeginEpoch,
    Effect,
    InstallSnapshot,
    SaveElection,
    Send,
    TruncateTo,
    WriteSnapshot,
)
from skylog.quorum.election import ElectionState
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.messages import FetchRequest, FetchResponse, FetchSnapshotResponse, PeerRequest
from skylog.quorum.replica import QuorumOptions
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.states import Leader
from skylog.quorum.voters import ReplicaKey, Voter, VoterSet

if TYPE_CHECKING:
    from sim.quorum.world import World


class CrashError(Exception):
    """The node crashed in the middle of something."""


class SimNode:
    """A process that can crash and restart, and its disk."""

    def __init__(
        self, world: World, local: Voter, quorum: QuorumRecords, options: QuorumOptions
    ) -> None:
        self.world = world
        self.local = local
        self.key: ReplicaKey = local.key
        self.options = options
        self.initial_voters = quorum.voters or options.voters
        self.log = SimLog(quorum)
        self.saved: ElectionState | None = None
        self.rng = random.Random(f"{world.seed}/{local.key.id}/{local.key.directory_id[-1]}")
        self.is_up = False
        # Each life of the process has a number: responses to an earlier life are dropped.
        self.life = 0
        self.skew_ms = 0
        self.drift = 0.0
        self.high_watermark = 0
        self.digest = 0
        self._pieces: list[Any] = []
        self._sync_due = False
        self._wake_ms: int | None = None

    @property
    def now_ms(self) -> int:
        """This node's clock, which differs from the world's."""
        return self.skew_ms + int(self.world.now_ms * (1 + self.drift))

    @property
    def leads(self) -> bool:
        return self.is_up and isinstance(self.machine.state, Leader)

    # -- life and death ------------------------------------------------------------------------

    def start(self) -> None:
        self.is_up = True
        self.life += 1
        latest = self.log.snapshots[-1] if self.log.snapshots else None
        self.high_watermark = latest.id.offset if latest else 0
        self.digest = latest.digest if latest else 0
        self._pieces, self._sync_due, self._wake_ms = [], False, None
        self.machine = QuorumMachine(self.local, self.log, self.options, self.rng)
        self.run(lambda: self.machine.start(self.saved, self.now_ms))

    def crash(self) -> None:
        self.is_up = False
        self.log.crash(self.world.rng)
        self.world.note("crash")

    # -- events --------------------------------------------------------------------------------

    def run(self, event: Any) -> bool:
        """Pass an event to the machine, carry out its effects, then send its requests."""
        try:
            self._act(event())
            self._act(self.machine.tick(self.now_ms))
        except CrashError:
            self.crash()
            self.world.restart_later(self)
            return False
        self._schedule_wake()
        return True

    def wake(self, life: int, at_ms: int) -> None:
        if self.is_up and life == self.life and self._wake_ms == at_ms:
            self._wake_ms = None
            self.run(list)

    def receive(self, request: PeerRequest, reply: Any, *, may_wait: bool) -> None:
        """Answer a request, once everything that the response relies on is done."""
        if not self.is_up:
            return
        answer: Any = None

        def event() -> list[Effect]:
            nonlocal answer
            answer, effects = self.machine.receive(request, self.now_ms)
            return effects

        if not self.run(event):
            return
        self.world.checks.answers(self, request, answer)
        if may_wait and isinstance(request, FetchRequest) and _is_empty(request, answer):
            self.world.park(self, request, reply)
            return
        reply(self._filled(answer))

    def answered(self, life: int, correlation_id: int, response: Any) -> None:
        if self.is_up and life == self.life:
            self.run(lambda: self.machine.answered(correlation_id, response, self.now_ms))

    def append(self, value: int) -> None:
        """Append a client's record, if this node believes that it leads."""
        if self.leads:
            self.log.append([Entry(self.machine.epoch, value)])
            self.sync_later()
            self.world.note("append")

    def sync_later(self) -> None:
        if not self._sync_due:
            self._sync_due = True
            self.world.after(self.world.sync_ms(), self.sync, self.life)

    def sync(self, life: int) -> None:
        if not self.is_up or life != self.life:
            return
        self._sync_due = False
        self.log.sync()
        self.run(lambda: self.machine.log_synced(self.log.end_offset, self.now_ms))

    def take_snapshot(self, *, cut: bool) -> None:
        latest = self.log.latest_snapshot
        offset = self.high_watermark
        if not self.is_up or offset <= max(self.log.start_offset, latest.offset if latest else 0):
            return
        entry = self.log.entry(offset - 1)
        assert entry is not None
        snapshot_id = SnapshotId(offset, entry.epoch)
        quorum = self.log.quorum_at(offset)
        self.log.add_snapshot(SimSnapshot(snapshot_id, self.digest, quorum), cut=cut)
        self.world.note("snapshot")

    # -- acting --------------------------------------------------------------------------------

    def _act(self, effects: list[Effect]) -> None:
        for effect in effects:
            if self.world.crashes_now():
                raise CrashError
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901 — one case per effect
        world, log = self.world, self.log
        match effect:
            case Send():
                world.send(self, effect)
            case SaveElection(election):
                world.checks.saved(self, election)
                self.saved = election
            case BeginEpoch(epoch):
                self._begin(epoch)
            case AppendVoters(voters):
                self._append_voters(voters)
            case AppendFetched(records):
                log.append(records)
                self.sync_later()
            case TruncateTo(offset):
                log.truncate(offset)
                self.sync_later()
                world.note("truncate")
            case WriteSnapshot(_, position, data):
                if position == 0:
                    self._pieces = []
                self._pieces += data
            case InstallSnapshot():
                self._install()
            case AdvanceHighWatermark(offset):
                if isinstance(self.machine.state, Leader):
                    world.checks.majority(self, offset, world.nodes)
                world.checks.advanced(self, offset)
                self.high_watermark = offset
        world.trace(self, effect)

    def _begin(self, epoch: int) -> None:
        self.world.checks.elected(self, epoch)
        self.world.note("election")
        self.log.append([Entry(epoch, None)])
        if self.log.quorum.kraft_version and self.log.voters_offset < 0:
            self._append_voters(self.machine.voters)
        self.sync_later()

    def _append_voters(self, voters: VoterSet) -> None:
        self.log.append([Entry(self.machine.epoch, voters)])
        self.sync_later()

    def _install(self) -> None:
        snapshot = self._pieces[0]
        self._pieces = []
        assert snapshot.id.offset > self.high_watermark, "a snapshot of records that the node has"
        self.log.install(snapshot)
        self.digest = snapshot.digest
        self.world.note("install")

    def _filled(self, answer: Any) -> Any:
        if isinstance(answer, FetchResponse) and answer.read_from is not None:
            count = 1 + self.world.rng.randrange(8)
            return answer.with_records(self.log.read(answer.read_from, count))
        if isinstance(answer, FetchSnapshotResponse) and answer.snapshot_id is not None:
            found = self.log.snapshot(answer.snapshot_id)
            return FetchSnapshotResponse(
                answer.error,
                answer.leadership,
                answer.snapshot_id,
                answer.size,
                answer.position,
                [found],
            )
        return answer

    def _schedule_wake(self) -> None:
        deadline = self.machine.deadline_ms
        if deadline is None or deadline == self._wake_ms:
            return
        self._wake_ms = deadline
        delay = int(max(0, deadline - self.now_ms) / (1 + self.drift)) + 1
        self.world.after(delay, self.wake, self.life, deadline)


def _is_empty(request: FetchRequest, answer: FetchResponse) -> bool:
    nothing = answer.read_from is None and answer.diverging is None and answer.snapshot_id is None
    known = answer.high_watermark <= request.high_watermark
    return nothing and known and answer.error is ErrorCode.NONE
