"""Brokers, their controller, the network between them, time, and everything that goes wrong.

A seed decides all of it. After a while the faults stop, and then all replicas must be in sync, hold
the same records, and lack no acknowledged one.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sim.replication.broker import Fetch, Fetched, SimBroker
from sim.replication.checks import Checks
from sim.replication.controller import SimController
from sim.replication.log import Remote
from skylog.kernel.errors import ErrorCode
from skylog.log.config import LogConfig
from skylog.replication.leader import IsrAnswer, IsrChange

CONTROLLER: Final = -1
SESSION_MS: Final = 90
TICK_MS: Final = 5
FAULTS_MS: Final = 2_500
PEACE_MS: Final = 4_000
_STRAGGLE_MS: Final = 300
_FETCH_RECORDS: Final = 50
_TRACE_KEPT: Final = 200
# How often a broker copies, or drops what is copied, and how often a rebuild of its log ends early.
_TIER: Final = 0.2
_KILLED_IN_REBUILD: Final = 0.3


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of a seed, each as a probability per tick."""

    brokers: int
    replicas: int
    min_isr: int
    unclean: bool
    elr: bool
    loss: float
    delay_ms: int
    straggle: float
    deaf: float
    restart: float
    fetch: int
    kill: float
    power: float
    pause: float
    cut: float
    fence: float
    preferred: float
    reassign: float
    delete: float
    produce: float
    acks_all: float

    @classmethod
    def draw(cls, rng: random.Random) -> Plan:
        """Every kind of fault is off in some seeds, so that none hides what another shows."""

        def sometimes(high: float) -> float:
            return rng.random() * high if rng.random() < 0.6 else 0.0

        brokers = 2 + rng.randrange(4)
        replicas = 1 + rng.randrange(brokers)
        return cls(
            brokers=brokers,
            replicas=replicas,
            min_isr=1 + rng.randrange(replicas),
            unclean=rng.random() < 0.15,
            elr=rng.random() < 0.5,
            loss=sometimes(0.2),
            delay_ms=rng.choice([1, 4, 25]),
            straggle=sometimes(0.05),
            deaf=sometimes(0.95),
            restart=rng.choice([0.05, 0.3]),
            fetch=rng.choice([1, 4, 50]),
            kill=sometimes(0.02),
            power=sometimes(0.01),
            pause=sometimes(0.02),
            cut=sometimes(0.02),
            fence=sometimes(0.1),
            preferred=sometimes(0.05),
            reassign=sometimes(0.03),
            delete=sometimes(0.02),
            produce=0.1 + 0.6 * rng.random(),
            acks_all=rng.choice([1.0, 0.7]),
        )


class World:
    """One seed's history."""

    def __init__(self, seed: int, *, tiered: bool = False) -> None:
        """``tiered``: leaders copy records to a store, and replicas drop their own."""
        self.rng = random.Random(seed)
        self.plan = plan = Plan.draw(self.rng)
        self.tiered = tiered
        self.remote: Remote = []
        self.now_ms = 0
        self.checks = Checks()
        self.noted: Counter[str] = Counter()
        self.faults = True
        self.trace_hash = 0
        self.tail: deque[str] = deque(maxlen=_TRACE_KEPT)
        replicas = self.rng.sample(range(plan.brokers), plan.replicas)
        self.controller = SimController(replicas, plan.min_isr, unclean=plan.unclean, elr=plan.elr)
        config = LogConfig(min_insync_replicas=plan.min_isr)
        self.brokers = [SimBroker(self, number, config) for number in range(plan.brokers)]
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._value = 0
        self._looked_at = 0
        # Brokers that lost records and are still in the controller's ISR.
        self._damaged: set[int] = set()
        self._cut: set[tuple[int, int]] = set()
        for broker in self.brokers:
            broker.start()
            broker.registered(self.controller.admit(broker.node_id), 0)
            self._at(self.rng.randrange(TICK_MS), self._tick, broker)
        self._at(1, self._tick_controller)

    @property
    def fetch_records(self) -> int:
        """How many records one fetch returns."""
        return self.plan.fetch if self.faults else _FETCH_RECORDS

    def note(self, what: str) -> None:
        self.noted[what] += 1
        line = f"{self.now_ms} {what}"
        self.tail.append(line)
        self.trace_hash = zlib.crc32(line.encode(), self.trace_hash)

    # -- time and network ----------------------------------------------------------------------

    def _at(self, delay_ms: int, work: Callable[..., None], *args: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._number, work, args))

    def _send(self, source: int, target: int, work: Callable[..., None], *args: Any) -> None:
        """Send a message to the current life of its target; it arrives late or never."""
        if self.faults and (self.rng.random() < self.plan.loss or (source, target) in self._cut):
            self.noted["loss"] += 1
            return
        life = self.brokers[target].life if target != CONTROLLER else 0
        delay_ms = 1 + self.rng.randrange(self.plan.delay_ms)
        if self.faults and self.rng.random() < self.plan.straggle:
            self.noted["straggle"] += 1
            delay_ms += self.rng.randrange(_STRAGGLE_MS)
        self._at(delay_ms, self._deliver, target, life, work, args)

    def _deliver(
        self, target: int, life: int, work: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        if target != CONTROLLER:
            broker = self.brokers[target]
            if not broker.up or broker.life != life:
                return
            if broker.paused:
                self._at(TICK_MS, self._deliver, target, life, work, args)
                return
        work(*args)

    # -- messages between brokers and the controller ------------------------------------------

    def ask_controller(self, broker: SimBroker, change: IsrChange) -> None:
        def decide(epoch: int) -> None:
            answer = self.controller.alter_partition(broker.node_id, epoch, change)
            self._published()
            what = "shrink" if change.removed else "expand"
            self.note(answer.name if isinstance(answer, ErrorCode) else what)
            self._send(CONTROLLER, broker.node_id, reply, answer)

        def reply(answer: IsrAnswer | ErrorCode) -> None:
            broker.isr_answered(change, answer)

        self._send(broker.node_id, CONTROLLER, decide, broker.epoch)

    def fetch(self, follower: SimBroker, leader_id: int, number: int, fetch: Fetch) -> None:
        leader = self.brokers[leader_id]

        def serve() -> None:
            answer: Fetched = leader.serve(fetch)
            self._send(leader_id, follower.node_id, follower.fetched, number, answer)

        self._send(follower.node_id, leader_id, serve)

    def _register(self, broker: SimBroker, life: int) -> None:
        """Retry until there is a response."""

        def register() -> None:
            if broker.up and broker.life == life and broker.epoch < 0:
                epoch = self.controller.register(broker.node_id, life, self.now_ms)
                self._published()
                version = self.controller.registered_at[broker.node_id]
                self._send(CONTROLLER, broker.node_id, broker.registered, epoch, version)

        if broker.up and broker.life == life and broker.epoch < 0:
            self._send(broker.node_id, CONTROLLER, register)
            self._at(60, self._register, broker, life)

    def _published(self) -> None:
        """Record unclean elections, and losses that no guarantee covers."""
        for version in self.controller.history[self._looked_at :]:
            isr = set(version.partition.isr)
            self._damaged &= isr
            if isr and isr <= self._damaged:
                # All others left the ISR while its tail was lost.
                self.checks.lenient = True
            if version.unclean:
                # The last known leader may lead again without being in sync (KIP-966).
                assert self.plan.unclean or self.plan.elr, "an unclean election"
                self.checks.lenient = True
                self.note("unclean")
        self._looked_at = len(self.controller.history)

    def _start(self, broker: SimBroker) -> None:
        broker.start()
        self._register(broker, broker.life)

    # -- events --------------------------------------------------------------------------------

    def _tick(self, broker: SimBroker) -> None:
        self._at(1 + self.rng.randrange(2 * TICK_MS), self._tick, broker)
        if self.faults:
            self._trouble(broker)
        if not broker.up or broker.paused:
            return
        versions = self.controller.history
        hears = not self.faults or self.rng.random() >= self.plan.deaf
        if hears and (broker.seen < len(versions) - 1 or not broker.loaded):
            self._send(CONTROLLER, broker.node_id, broker.learn, versions, len(versions) - 1)
        if broker.epoch >= 0:
            heartbeat = self.controller.heartbeat
            self._send(
                broker.node_id,
                CONTROLLER,
                lambda seen: heartbeat(broker.node_id, broker.epoch, seen, self.now_ms),
                broker.seen,
            )
        broker.tick()
        if self.rng.random() < self.plan.produce:
            count = 1 + self.rng.randrange(3)
            values = list(range(self._value, self._value + count))
            self._value += count
            broker.produce(values, acks_all=self.rng.random() < self.plan.acks_all)
        if broker.log is not None and self.rng.random() < 0.2:
            broker.log.sync()
        if self.tiered and self.rng.random() < _TIER:
            broker.tier()

    def _trouble(self, broker: SimBroker) -> None:
        rng, plan = self.rng, self.plan
        if not broker.up:
            if rng.random() < plan.restart:
                self._start(broker)
            return
        if broker.paused:
            if rng.random() < 0.1:
                broker.paused = False
        elif rng.random() < plan.kill:
            self.note(f"kill {broker.node_id}")
            self.noted["kill"] += 1
            broker.crash(power=False)
        elif rng.random() < plan.power and self._may_lose(broker):
            self.note(f"power {broker.node_id}")
            self.noted["power"] += 1
            self._damaged.add(broker.node_id)
            broker.crash(power=True)
        elif rng.random() < plan.pause:
            self.noted["pause"] += 1
            broker.paused = True
        elif rng.random() < plan.delete:
            broker.delete_records()
        if rng.random() < plan.cut:
            self._cut_lines(broker)

    def killed_in_rebuild(self, broker: SimBroker) -> bool:
        if not self.faults or self.rng.random() >= _KILLED_IN_REBUILD:
            return False
        self.note("killed in rebuild")
        broker.crash(power=False)
        return True

    def _may_lose(self, broker: SimBroker) -> bool:
        """Only while another in-sync replica is up: no guarantee covers more."""
        return any(
            self.brokers[each].up
            for each in self.controller.partition.isr
            if each != broker.node_id
        )

    def _cut_lines(self, broker: SimBroker) -> None:
        self.noted["cut"] += 1
        if self._cut:
            self._cut.clear()
            return
        others = [each.node_id for each in self.brokers if each is not broker]
        chosen = self.rng.sample([*others, CONTROLLER], 1 + self.rng.randrange(len(others)))
        for other in chosen:
            self._cut |= {(broker.node_id, other), (other, broker.node_id)}

    def _tick_controller(self) -> None:
        self._at(TICK_MS, self._tick_controller)
        controller, rng, plan = self.controller, self.rng, self.plan
        controller.expire(self.now_ms, SESSION_MS)
        self._published()
        if not self.faults:
            return
        if rng.random() < plan.fence:
            self.noted["fence"] += 1
            controller.fence(rng.randrange(plan.brokers))
        if rng.random() < plan.preferred:
            self.noted["preferred"] += 1
            controller.elect_preferred()
        if rng.random() < plan.reassign:
            self.noted["reassign"] += 1
            controller.reassign(rng.sample(range(plan.brokers), plan.replicas))
        self._published()

    # -- the history ---------------------------------------------------------------------------

    def play(self) -> None:
        self._run(FAULTS_MS)
        self.faults = False
        self._cut.clear()
        for broker in self.brokers:
            broker.paused = False
            if not broker.up:
                self._start(broker)
        acked = len(self.checks.acked)
        self._run(self.now_ms + PEACE_MS)
        assert len(self.checks.acked) > acked or self.plan.acks_all == 0, "nobody can write"
        self._quiesce()

    def _quiesce(self) -> None:
        """Without further writes, all replicas reach the same state."""
        object.__setattr__(self.plan, "produce", 0.0)
        self._run(self.now_ms + 1_500)
        state = self.controller.partition
        assert set(state.isr) == set(state.replicas), f"in sync: {state}"
        assert not state.reassigning, f"reassignment does not end: {state}"
        logs = {}
        for node_id in state.replicas:
            log = self.brokers[node_id].log
            assert log is not None
            logs[node_id] = log
            assert log.high_watermark == log.log_end_offset, f"{node_id}: {log.high_watermark}"
        self.checks.settled(logs)

    def _run(self, until_ms: int) -> None:
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, work, args = heapq.heappop(self._queue)
            work(*args)
        self.now_ms = until_ms
