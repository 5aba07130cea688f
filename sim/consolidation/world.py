"""The world of one seed: what happens to brokers, coordinator, store and topic, and when."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Final

from sim.consolidation import checks
from sim.consolidation.broker import PARTITION, TOPIC, SimBroker, State
from sim.consolidation.bucket import Bucket
from sim.consolidation.plan import Plan, new_plan
from sim.consolidation.requests import Request, at_once
from sim.consolidation.rot import rot
from sim.consolidation.writing import Written, wal_object
from sim.tiered.store import MetadataLog
from skylog.diskless.plane import PruneResult
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.clock import ManualClock
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.tiered.segments import TopicIdPartition

BEGIN_MS: Final = 1_000_000
TAIL: Final = 80
# How likely a request without a sender is held up once more.
LATE: Final = 0.9
# Out of a hundred prunes, how many senders give up.
IMPATIENCE: Final = 40
RECORDS_MAX: Final = 60
QUIET_ROUNDS: Final = 400
QUIET_MS: Final = 1_500
QUIET_MS_MIN: Final = 20_000
WAL_GRACE_MS: Final = 2_000
ORPHAN_GRACE_MS: Final = 60_000
# Its records are in the same WAL objects; nobody consolidates it.
NEIGHBOUR: Final = TopicIdPartition(Uuid(b"fedcba9876543210"), 0)


class World:
    """Plays one history. The same seed gives the same trace."""

    def __init__(self, seed: int, directory: str, plan: Plan | None = None) -> None:
        self.rng = Random(seed)
        self.plan = plan or new_plan(self.rng)
        self.clock = ManualClock(BEGIN_MS)
        self.directory = directory
        self.topic = MetadataLog(PARTITION, TOPIC)
        self.topic.on_delete = partial(checks.may_delete, self)
        self.bucket = Bucket(self.clock)
        self.wal = Bucket(self.clock)
        self.plane = MemoryPlane(self.clock)
        names = (TOPIC, PARTITION), ("neighbour", NEIGHBOUR)
        at_once(self.plane.create_partitions([(key.topic_id, name, 1) for name, key in names]))
        self.in_flight: list[Request] = []
        self._held_up: list[Request] = []
        self.noted: Counter[str] = Counter()
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._hash = blake2b(digest_size=8)
        self._count = 0
        # What was wrong in a task of a broker: there nobody would hear of it.
        self.failures: list[str] = []
        self.seen = checks.Seen()
        # Acknowledged records by offset, and how far users deleted them.
        self.committed: list[Written] = []
        self.deleted_to = 0
        self._batches = 0
        self.state = State(0, 0)
        self.brokers = [SimBroker(self, node_id) for node_id in range(self.plan.brokers)]
        for broker in self.brokers:
            broker.start()
            broker.learn(self.state)

    @property
    def log(self) -> LogState:
        found = self.plane._state.log(PARTITION)
        assert found is not None
        return found

    @property
    def trace_hash(self) -> str:
        return self._hash.hexdigest()

    def note(self, kind: str, *about: object) -> None:
        self._count += 1
        self.noted[kind] += 1
        line = f"{kind} {' '.join(map(str, about))}"
        self.tail.append(line)
        self._hash.update(line.encode())

    def fail(self, why: str) -> None:
        self.failures.append(why)
        raise AssertionError(why)

    # --- Playing ------------------------------------------------------------------------------

    def play(self) -> None:
        try:
            steps, weights = zip(*self._steps(), strict=True)
            for _ in range(self.plan.steps):
                count = self._count
                self.rng.choices(steps, weights)[0]()
                if self._count != count:
                    checks.after_step(self)
            self.settle()
            checks.at_the_end(self)
        finally:
            for broker in self.brokers:
                broker.kill()

    def _steps(self) -> list[tuple[Callable[[], None], int]]:
        plan = self.plan
        return [
            (self._work, 60),
            (self._deliver, 80),
            (self._read, 30),
            (self.produce, 14),
            (self._pass_time, 20),
            (self._learn, plan.learning),
            (self._delete_records, 1),
            (self._retention, 2),
            (self._clean_wal, 3),
            (self._elect, plan.elections),
            (self._kill, plan.kills),
            (self._start, 6),
            (self._pause, 1),
            (self._resume, 4),
            (self._damage, plan.damages),
            (self._rot, plan.rots),
            (self._fill, plan.fills),
            (self.topic.sync, 6),
            (self._topic_replicas, 1),
            (self._power_cut, 1),
            (self._save, 1),
        ]

    def _any(self, brokers: list[SimBroker]) -> SimBroker | None:
        return self.rng.choice(brokers) if brokers else None

    def _running(self) -> SimBroker | None:
        return self._any([broker for broker in self.brokers if broker.runs])

    # --- Brokers ------------------------------------------------------------------------------

    def _work(self) -> None:
        broker = self._running()
        if broker is not None and broker.loop.run_ready():
            self.note("work", broker.node_id)

    def _deliver(self) -> None:
        if not self.in_flight:
            return
        request = self.in_flight[self.rng.randrange(len(self.in_flight))]
        dice = self.rng.randrange(100)
        if not request.sender_waits and self.rng.random() < LATE:
            return  # much later
        # There are few prunes.
        impatience = IMPATIENCE if request.name == "prune" else self.plan.given_up
        if dice < impatience and request.sender_waits:
            request.give_up()
            self.note("given up", request.name)
            return
        self.in_flight.remove(request)
        if not request.sender_waits:
            self._noted_late(request)
        if dice >= 100 - self.plan.lost:
            request.lose()
            self.note("lost", request.name)
            return
        is_answered = dice % 10 != 9 or not self.plan.given_up or not request.sender_waits
        request.arrive(is_answered=is_answered)
        self.note("arrived" if is_answered else "answer lost", request.name)

    def _noted_late(self, request: Request) -> None:
        self.noted[f"late {request.name.split()[0]}"] += 1
        self.bucket.late.add(request.segment_id)

    def _read(self) -> None:
        broker = self._running()
        if broker is not None and broker.logs.read(self.rng.randint(1, 5)):
            self.note("read", broker.node_id, broker.logs.applied)

    def _save(self) -> None:
        broker = self._running()
        if broker is not None:
            broker.save()
            self.noted["snapshot"] += 1

    def _learn(self) -> None:
        broker = self._running()
        if broker is not None and broker.known != self.state:
            was_leading = broker.leads
            broker.learn(self.state)
            self.note("lead" if broker.leads else "learn", broker.node_id, self.state.epoch)
            if was_leading and not broker.leads:
                self.noted["deposed"] += 1

    # --- Records ------------------------------------------------------------------------------

    def produce(self) -> None:
        """Through any broker, so that the leader has no part in it."""
        if len(self.committed) >= RECORDS_MAX:
            return
        key = ObjectKey.new("wal", self.clock.now_ms(), self.rng)
        made = wal_object(key, self.clock.now_ms(), self.rng, (PARTITION, NEIGHBOUR), self._batches)
        self._batches += len(made.file.batches)
        at_once(self.wal.put(key, made.data))
        self.wal.changes += 1
        at_once(self.plane.commit_file(made.file))
        self.committed += made.written
        for broker in self.brokers:
            broker.moved(len(self.committed))
        self.note("produce", len(self.committed))

    def _delete_records(self) -> None:
        low, high = self.log.log_start_offset, self.log.high_watermark
        self.delete_to(self.rng.randint(low, min(high, low + 8)))

    def delete_to(self, offset: int) -> None:
        at_once(self.plane.delete_records([(*PARTITION, offset)]))
        self.deleted_to = max(self.deleted_to, offset)
        self.note("delete records", offset)

    def _retention(self) -> None:
        """The coordinator's own pass."""
        before = self.log
        limits = self.plan.retention_bytes, self.plan.retention_ms
        at_once(self.plane.enforce_retention([(*PARTITION, *limits)], 5))
        at_once(self.plane.enforce_retention([(*NEIGHBOUR, -1, 10_000)], 5))
        if self.log != before:
            self.note("retention", self.log.log_start_offset)

    def _clean_wal(self) -> None:
        keys = at_once(self.plane.files_to_delete(self.clock.now_ms() - WAL_GRACE_MS, 0))
        if keys:
            at_once(self.wal.delete_many([ObjectKey.parse(key) for key in keys]))
            self.wal.changes += 1
            at_once(self.plane.confirm_deleted(keys))
            self.note("wal cleaned", len(keys))

    def prune(self, node: int, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        """A request of a broker has arrived."""
        before = self.log
        for topic_id, index, offset in requests:
            if (topic_id, index) == PARTITION:
                checks.may_prune(self, offset)
        results: list[PruneResult] = at_once(self.plane.prune_to(requests))
        if self.log.log_start_offset != before.log_start_offset:
            self.fail("T5: a prune moved the log start")
        if self.log.wal_start_offset > before.wal_start_offset:
            self.note("prune", node, self.log.wal_start_offset)
        return results

    # --- Faults -------------------------------------------------------------------------------

    def _elect(self) -> None:
        alive = [broker.node_id for broker in self.brokers if broker.up]
        if not alive:
            return
        node = self.rng.choice(alive)
        self.note("same leader" if node == self.state.leader else "elected", node)
        self.state = State(node, self.state.epoch + 1)

    def _kill(self) -> None:
        broker = self._any([one for one in self.brokers if one.up])
        if broker is not None:
            self.note("kill", broker.node_id)
            broker.kill()

    def _start(self) -> None:
        broker = self._any([one for one in self.brokers if not one.up])
        if broker is not None:
            self._register(broker)

    def _register(self, broker: SimBroker) -> None:
        # A new registration gives up what the process before it led.
        if self.state.leader == broker.node_id:
            self.state = State(broker.node_id, self.state.epoch + 1)
        broker.start()
        self.note("start", broker.node_id)

    def _pause(self) -> None:
        broker = self._running()
        if broker is not None:
            broker.paused = True
            self.note("pause", broker.node_id)

    def _resume(self) -> None:
        broker = self._any([one for one in self.brokers if one.paused])
        if broker is not None:
            broker.paused = False
            self.note("resume", broker.node_id)

    def _damage(self) -> None:
        """A byte of an assembly is another one."""
        broker = self._any([one for one in self.brokers if one.up])
        if broker is not None and broker.damage(self.rng):
            self.note("damage", broker.node_id)

    def _fill(self) -> None:
        """A disk is full, or has room again."""
        broker = self.rng.choice(self.brokers)
        broker.has_full_disk = not broker.has_full_disk

    def _rot(self) -> None:
        if rot(self):
            self.note("rot")

    def _topic_replicas(self) -> None:
        """Others join or leave the one replica of the metadata topic that is in sync."""
        if self.topic.is_alone:
            self.topic.is_alone = False
            self.topic.advance()
        else:
            # What was committed before is on two machines; from now on the disk decides.
            self.topic.synced = self.topic.committed
            self.topic.is_alone = True
        self.note("topic alone", self.topic.is_alone)

    def _power_cut(self) -> None:
        lost = self.topic.power_cut()
        if lost:
            self.note("power cut", lost)

    def _pass_time(self) -> None:
        self.clock.advance(self.rng.randint(50, 1_500))

    # --- The end ------------------------------------------------------------------------------

    def settle(self) -> None:
        """All faults are over, and time passes until there is nothing more to do."""
        self.topic.is_alone = False
        self.topic.advance()
        for broker in self.brokers:
            if not broker.up:
                self._register(broker)
            broker.paused = broker.has_full_disk = False
        self.quiesce()
        # What was held up longest arrives when everything is over.
        for request in self._held_up:
            self._noted_late(request)
            request.arrive()
        checks.after_step(self)
        self.quiesce()
        self._collect_orphans()

    def quiesce(self) -> None:
        """Whoever runs does what there is to do, without further faults."""
        quiet_ms = 0
        for _ in range(QUIET_ROUNDS):
            before = self.log, self.bucket.changes, self.topic.committed
            while self._round():
                checks.after_step(self)
            self._retention()
            self._clean_wal()
            checks.after_step(self)
            self.clock.advance(QUIET_MS)
            is_same = before == (self.log, self.bucket.changes, self.topic.committed)
            quiet_ms = quiet_ms + QUIET_MS if is_same else 0
            if quiet_ms > self.plan.segment_ms + self.plan.prune_delay_ms + QUIET_MS_MIN:
                return
        raise AssertionError("T16: there is always something to do")

    def _round(self) -> bool:
        """Everybody does what there is to do; False if that is nothing."""
        is_busy = bool(self.in_flight)
        requests, self.in_flight = self.in_flight, []
        for request in requests:
            if request.sender_waits:
                self.arrived(request)
            else:
                self._held_up.append(request)
        for broker in self.brokers:
            if not broker.runs:
                continue
            if self.informs(broker):
                broker.learn(self.state)
            is_busy |= broker.logs.read(1000)
            is_busy |= broker.loop.run_ready()
        return is_busy

    def informs(self, broker: SimBroker) -> bool:
        """Whether a broker reads the cluster's metadata, while there are no faults."""
        return True

    def arrived(self, request: Request) -> None:
        """In the order of their sending, while there are no faults."""
        request.arrive()

    def _collect_orphans(self) -> None:
        """Past every grace, what the metadata topic does not name goes."""
        self.clock.advance(ORPHAN_GRACE_MS + 1)
        for _ in range(at_once(self.brokers[self.state.leader].scan(ORPHAN_GRACE_MS))):
            self.note("orphan")
        self.bucket.changes += 1
        checks.after_step(self)
