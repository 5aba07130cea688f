"""Nodes, the network between them, time, and everything that goes wrong.

A seed decides all of it: how many nodes there are, which kinds of faults there are and how often.
After a while the faults stop, and then the quorum must elect a leader, commit and agree.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sim.quorum.checks import Checks
from sim.quorum.node import SimNode
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.quorum.control import QuorumRecords
from skylog.quorum.effects import Effect, Send
from skylog.quorum.messages import AddVoterRequest, FetchRequest, RemoveVoterRequest
from skylog.quorum.replica import QuorumOptions, Timeouts
from skylog.quorum.voters import NO_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet

TIMEOUTS: Final = Timeouts(election_ms=100, fetch_ms=200, request_ms=150, retry_ms=10)
FAULTS_MS: Final = 4_000
PEACE_MS: Final = 20_000
_TRACE_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of a seed, each as a probability or a time."""

    voters: int
    observers: int
    dynamic: bool
    loss: float
    repeat: float
    delay_ms: int
    sync_ms: int
    crash: float
    crash_between: float
    partition: float
    one_way: bool
    skew: float
    snapshot: float
    resign: float
    change: float
    new_disk: float
    append: float

    @classmethod
    def draw(cls, rng: random.Random) -> Plan:
        """Every kind of fault is off in some seeds, so that none hides what another shows."""

        def sometimes(high: float) -> float:
            return rng.random() * high if rng.random() < 0.6 else 0.0

        return cls(
            voters=1 + rng.randrange(5),
            observers=rng.randrange(3),
            dynamic=rng.random() < 0.5,
            loss=sometimes(0.3),
            repeat=sometimes(0.3),
            delay_ms=rng.choice([2, 10, 60]),
            sync_ms=rng.choice([1, 10, 100]),
            crash=sometimes(0.06),
            crash_between=sometimes(0.004),
            partition=sometimes(0.08),
            one_way=rng.random() < 0.5,
            skew=sometimes(0.2),
            snapshot=sometimes(0.15),
            resign=sometimes(0.03),
            change=sometimes(0.15),
            new_disk=sometimes(0.02),
            append=0.3 + 0.6 * rng.random(),
        )


class World:
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.plan = Plan.draw(self.rng)
        self.now_ms = 0
        self.checks = Checks()
        self.noted: Counter[str] = Counter()
        self.nodes: dict[int, SimNode] = {}
        self.faults = True
        self.events = 0
        self.trace_hash = 0
        self.tail: deque[tuple[int, int, Effect]] = deque(maxlen=_TRACE_KEPT)
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._value = 0
        self._cut: set[tuple[int, int]] = set()
        self._disks = 0
        self._build()

    # -- building ------------------------------------------------------------------------------

    def _build(self) -> None:
        plan = self.plan
        everybody = [self._voter(node_id) for node_id in range(plan.voters + plan.observers)]
        members = everybody[: plan.voters]
        bootstrap = tuple(voter.endpoints[0] for voter in everybody)
        fixed = VoterSet(
            tuple(Voter(ReplicaKey(v.key.id, ZERO_UUID), v.endpoints) for v in members)
        )
        self._formatted = QuorumRecords(1, VoterSet(tuple(members)))
        self._options = QuorumOptions(TIMEOUTS, NO_VOTERS if plan.dynamic else fixed, bootstrap)
        for number, voter in enumerate(everybody):
            formatted = number < plan.voters and plan.dynamic
            self._add_node(voter, self._formatted if formatted else QuorumRecords())
        for node in self.nodes.values():
            node.start()

    def _voter(self, node_id: int) -> Voter:
        self._disks += 1
        key = ReplicaKey(node_id, Uuid(bytes([0] * 15 + [self._disks])))
        return Voter(key, (Endpoint("CONTROLLER", "node", node_id),))

    def _add_node(self, voter: Voter, quorum: QuorumRecords) -> SimNode:
        node = SimNode(self, voter, quorum, self._options)
        node.initial_voters = (
            self._formatted.voters or NO_VOTERS if self.plan.dynamic else self._options.voters
        )
        if self.plan.skew:
            node.skew_ms = self.rng.randrange(5_000)
            node.drift = (self.rng.random() - 0.5) * self.plan.skew
        self.nodes[voter.key.id] = node
        return node

    # -- time ----------------------------------------------------------------------------------

    def after(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._number, action, arguments))

    def run_until(self, end_ms: int, done: Callable[[], bool] | None = None) -> bool:
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action, arguments = heapq.heappop(self._queue)
            self.events += 1
            action(*arguments)
            if done is not None and self.events % 16 == 0 and done():
                return True
        self.now_ms = end_ms
        return done is not None and done()

    def note(self, what: str) -> None:
        self.noted[what] += 1

    def trace(self, node: SimNode, effect: Effect) -> None:
        kind, log = type(effect).__name__, node.log
        line = f"{self.now_ms} {node.key.id} {kind} {node.machine.epoch} {log.end_offset}"
        self.trace_hash = zlib.crc32(line.encode(), self.trace_hash)
        self.tail.append((self.now_ms, node.key.id, effect))

    # -- the network ---------------------------------------------------------------------------

    def send(self, node: SimNode, sent: Send) -> None:
        target = sent.peer.endpoint.port
        copies = 1 + (self.faults and self.rng.random() < self.plan.repeat)
        life, number = node.life, sent.correlation_id

        def reply(response: Any) -> None:
            if self._passes(target, node.key.id):
                self.after(self._delay(), node.answered, life, number, response)

        for _ in range(copies):
            if self._passes(node.key.id, target):
                self.after(self._delay(), self._deliver, target, sent.request, reply, True)

    def _deliver(self, target: int, request: Any, reply: Any, may_wait: bool) -> None:
        node = self.nodes[target]
        if node.is_up:
            node.receive(request, reply, may_wait=may_wait)
        elif self.rng.random() < 0.5:
            reply(None)

    def park(self, node: SimNode, request: FetchRequest, reply: Any) -> None:
        """A fetch without new records waits at the leader, and is then evaluated again."""
        life = node.life

        def again() -> None:
            if node.life == life:
                node.receive(request, reply, may_wait=False)

        self.after(10 + self.rng.randrange(60), again)

    def _passes(self, source: int, target: int) -> bool:
        if (source, target) in self._cut:
            self.note("cut")
            return False
        if self.faults and self.rng.random() < self.plan.loss:
            self.note("loss")
            return False
        return True

    def _delay(self) -> int:
        most = self.plan.delay_ms if self.faults else 3
        return 1 + self.rng.randrange(most)

    def sync_ms(self) -> int:
        return 1 + self.rng.randrange(self.plan.sync_ms if self.faults else 2)

    # -- faults --------------------------------------------------------------------------------

    def crashes_now(self) -> bool:
        return self.faults and self.rng.random() < self.plan.crash_between

    def restart_later(self, node: SimNode) -> None:
        self.after(1 + self.rng.randrange(400), self._restart, node)

    def _restart(self, node: SimNode) -> None:
        if not node.is_up and self.nodes[node.key.id] is node:
            node.start()

    def nemesis(self) -> None:
        """Now and then inject a fault, and let clients write."""
        rng, plan = self.rng, self.plan
        nodes = list(self.nodes.values())
        for node in nodes:
            if rng.random() < plan.append:
                self._value += 1
                node.append(self._value)
        victim = nodes[rng.randrange(len(nodes))]
        if rng.random() < plan.crash and victim.is_up:
            victim.crash()
            self.restart_later(victim)
        if rng.random() < plan.partition:
            self._partition()
        if rng.random() < plan.snapshot:
            victim.take_snapshot(cut=rng.random() < 0.7)
        if rng.random() < plan.resign and victim.leads:
            self.note("resign")
            victim.run(lambda: victim.machine.resign(victim.now_ms))
        if rng.random() < plan.change:
            self._change_voters()
        if rng.random() < plan.new_disk:
            self._replace_disk(victim)
        if self.faults:
            self.after(5 + rng.randrange(20), self.nemesis)

    def _partition(self) -> None:
        ids = list(self.nodes)
        side = {node_id for node_id in ids if self.rng.random() < 0.5}
        pairs = {(a, b) for a in ids for b in ids if (a in side) != (b in side)}
        if self.plan.one_way:
            pairs = {(a, b) for a, b in pairs if a in side}
        self._cut = pairs
        self.note("partition")
        self.after(50 + self.rng.randrange(800), self._heal)

    def _heal(self) -> None:
        self._cut = set()

    def _change_voters(self) -> None:
        """An operator adds or removes a voter, at a node that believes that it leads."""
        leaders = [node for node in self.nodes.values() if node.leads]
        if not leaders or not self.plan.dynamic:
            return
        leader = leaders[self.rng.randrange(len(leaders))]
        voters = leader.machine.voters
        node = self.nodes[self.rng.randrange(len(self.nodes))]
        gone = [key for key in voters.keys if key in self.checks.lost]
        if gone:
            request: Any = RemoveVoterRequest(gone[0])
        elif node.key in voters:
            request = RemoveVoterRequest(node.key)
        else:
            request = AddVoterRequest(node.local)
        answers: list[Any] = []
        leader.receive(request, answers.append, may_wait=False)
        if answers and answers[0].end_offset is not None:
            self.note("change")

    def _replace_disk(self, node: SimNode) -> None:
        """A voter comes back with an empty disk; a quorum survives one at a time."""
        known = {each.log.quorum.voters for each in self.nodes.values() if each.is_up}
        voters = node.machine.voters
        settled = len(known) == 1 and all(each.is_up for each in self.nodes.values())
        alone = self.checks.lost or not self.plan.dynamic or len(voters.voters) < 3
        if not settled or alone or node.key not in voters:
            return
        self.note("new disk")
        self.checks.lost.add(node.key)
        node.is_up = False
        self._add_node(self._voter(node.key.id), QuorumRecords()).start()

    # -- the whole history ---------------------------------------------------------------------

    def play(self) -> None:
        """Faults, then none; AssertionError if an invariant is violated."""
        self.nemesis()
        self.run_until(FAULTS_MS)
        self.faults = False
        self._heal()
        for node in self.nodes.values():
            if not node.is_up:
                node.start()
        self._last = self._value = self._value + 1
        self._writes()
        assert self.run_until(self.now_ms + PEACE_MS, self._agrees), "no progress without faults"

    def _writes(self) -> None:
        leaders = [node for node in self.nodes.values() if node.leads]
        for node in leaders:
            self._value += 1
            node.append(self._value)
        self.after(100, self._writes)

    def _agrees(self) -> bool:
        committed = self.checks.committed
        if not any(isinstance(e.value, int) and e.value > self._last for e in committed[-20:]):
            return False
        behind = len(committed) - 20
        return all(node.high_watermark > behind for node in self.nodes.values())


def play(seed: int) -> World:
    world = World(seed)
    world.play()
    return world
