"""Elections under random schedules: one leader in an epoch, whatever is lost or repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.ids import Uuid
from skylog.quorum.election import ElectionState
from skylog.quorum.machine import (
    BeginEpoch,
    Effect,
    QuorumMachine,
    RequestVotes,
    SaveElection,
    Timeouts,
)
from skylog.quorum.voters import ReplicaKey, Voter, VoterSet


@dataclass
class LogEnd:
    end_offset: int = 0
    last_epoch: int = 0


@dataclass
class Message:
    sender: int
    target: int
    epoch: int
    pre: bool
    log_end: tuple[int, int] = (0, 0)
    granted: bool | None = None


@dataclass
class Cluster:
    """Machines, the messages between them, and what each has on disk."""

    size: int
    seed: int
    now_ms: int = 0
    messages: list[Message] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = [ReplicaKey(n, Uuid(bytes([n + 1]) * 16)) for n in range(self.size)]
        self.voters = VoterSet(tuple(Voter(key, ()) for key in self.keys))
        self.disks: list[ElectionState | None] = [None] * self.size
        self.logs = [LogEnd() for _ in self.keys]
        self.machines: list[QuorumMachine] = []
        for number in range(self.size):
            self.machines.append(self.build(number))
            self.act(number, self.machines[number].start(None, 0))

    def build(self, number: int) -> QuorumMachine:
        rng = random.Random(self.seed * 100 + number)
        return QuorumMachine(
            self.keys[number], self.voters, self.logs[number], Timeouts(10, 20), rng
        )

    def act(self, number: int, effects: list[Effect]) -> None:
        log = self.logs[number]
        for effect in effects:
            match effect:
                case SaveElection(election):
                    before = self.disks[number]
                    assert before is None or election.epoch >= before.epoch
                    self.disks[number] = election
                case RequestVotes(epoch, pre):
                    end = (log.last_epoch, log.end_offset)
                    for target in range(self.size):
                        if target != number:
                            self.messages.append(Message(number, target, epoch, pre, end))
                case BeginEpoch(epoch, granting):
                    assert self.leaders.setdefault(epoch, number) == number, "two leaders"
                    assert len(granting) >= self.voters.majority
                    disk = self.disks[number]
                    assert disk is not None
                    assert (disk.epoch, disk.leader_id) == (epoch, number), "led before saving"
                    log.end_offset += 1
                    log.last_epoch = epoch

    def deliver(self, index: int, *, again: bool) -> None:
        if not self.messages:
            return
        at = index % len(self.messages)
        message = self.messages[at] if again else self.messages.pop(at)
        target = self.machines[message.target]
        if message.granted is None:
            granted, effects = target.vote_requested(
                self.keys[message.sender],
                message.epoch,
                message.log_end,
                self.now_ms,
                pre=message.pre,
            )
            self.act(message.target, effects)
            answer = Message(
                message.target, message.sender, message.epoch, message.pre, granted=granted
            )
            self.messages.append(answer)
        else:
            effects = target.vote_answered(
                self.keys[message.sender],
                message.epoch,
                self.now_ms,
                granted=message.granted,
                pre=message.pre,
            )
            self.act(message.target, effects)

    def step(self, kind: str, number: int) -> None:
        node = number % self.size
        match kind:
            case "deliver":
                self.deliver(number, again=False)
            case "repeat":
                self.deliver(number, again=True)
            case "drop" if self.messages:
                self.messages.pop(number % len(self.messages))
            case "tick":
                self.now_ms += 7
                self.act(node, self.machines[node].tick(self.now_ms))
            case "crash":
                self.machines[node] = self.build(node)
                self.act(node, self.machines[node].start(self.disks[node], self.now_ms))
            case "resign":
                self.act(node, self.machines[node].resign(self.now_ms))
            case "write":
                self.logs[node].end_offset += 1


KINDS = ["deliver"] * 8 + ["tick"] * 5 + ["repeat", "drop", "crash", "resign", "write"]


def play(size: int, seed: int, steps: int) -> Cluster:
    """Two candidates of one epoch are rare, so many steps count for more than short examples."""
    cluster, rng = Cluster(size, seed), random.Random(seed)
    for _ in range(steps):
        cluster.step(rng.choice(KINDS), rng.randrange(50))
    return cluster


@given(st.integers(1, 5), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_one_leader_in_an_epoch(size: int, seed: int) -> None:
    play(size, seed, steps=1500)


@given(st.integers(2, 5), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_leader_is_found_once_messages_arrive(size: int, seed: int) -> None:
    cluster = play(size, seed, steps=300)
    # A leader tells the others of itself; here only the vote is played, so all begin anew.
    for node in range(size):
        cluster.step("crash", node)
    begun = max(cluster.leaders, default=0)
    for _ in range(400):
        for node in range(size):
            cluster.step("tick", node)
            while cluster.messages:
                cluster.deliver(0, again=False)
        if max(cluster.leaders, default=0) > begun:
            return
    raise AssertionError("no leader")
