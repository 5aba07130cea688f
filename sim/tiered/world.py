"""The world of one seed: what happens to brokers, the metadata topic and the store, and when."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Final

from sim.tiered import checks
from sim.tiered.broker import COPY, EXPIRE, PARTITION, REBUILD, TOPIC, SimBroker, State
from sim.tiered.disk import SimLog
from sim.tiered.plan import new_plan
from sim.tiered.store import MetadataLog, Stored, is_late
from sim.tiered.waiting import Request
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.objects.store import ObjectError, Outcome
from skylog.tiered.lineage import Lineage

BEGIN_MS: Final = 1_000_000
TAIL: Final = 60
# How likely a request without a sender is held up once more.
LATE: Final = 0.95
LOG_END_MAX: Final = 48
QUIET_ROUNDS: Final = 2_000


class World:
    """Plays one history. The same seed gives the same trace."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.plan = new_plan(self.rng)
        self.clock = ManualClock(BEGIN_MS)
        self.config = LogConfig(
            remote_storage_enable=True, remote=True, retention_ms=self.plan.retention_ms
        )
        self.topic = MetadataLog(PARTITION, TOPIC)
        self.topic.on_delete = partial(checks.may_delete, self)
        self.stored = Stored()
        self.in_flight: list[Request] = []
        self.noted: Counter[str] = Counter()
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._hash = blake2b(digest_size=8)
        self._count = 0
        # What the store and the topic were like when they were checked.
        self.checked = (-1, -1, -1)
        # Acknowledged records by offset, and how far they may be deleted.
        self.committed: list[tuple[int, int]] = []
        self.deleted_to = 0
        self._written: dict[tuple[int, int], tuple[int, int]] = {}
        self.brokers = [SimBroker(self, node_id) for node_id in range(self.plan.brokers)]
        self.isr = {0}
        self.state = State(0, 0)
        for broker in self.brokers:
            broker.start()
            broker.learn(self.state)
        self.isr = set(range(self.plan.brokers))

    @property
    def trace_hash(self) -> str:
        return self._hash.hexdigest()

    def note(self, kind: str, *about: object) -> None:
        self._count += 1
        self.noted[kind] += 1
        line = f"{kind} {' '.join(map(str, about))}"
        self.tail.append(line)
        self._hash.update(line.encode())

    # --- Playing ------------------------------------------------------------------------------

    def play(self) -> None:
        steps, weights = zip(*self._steps(), strict=True)
        for _ in range(self.plan.steps):
            count = self._count
            self.rng.choices(steps, weights)[0]()
            if self._count != count:
                checks.after_step(self)
        self._settle()
        checks.at_the_end(self)

    def _steps(self) -> list[tuple[Callable[[], None], int]]:
        plan = self.plan
        return [
            (self._work, 70),
            (self._deliver, 60),
            (self._read, 30),
            (self._produce, 12),
            (self._fetch, 25),
            (self._learn, plan.learning),
            (self._local_retention, 10),
            (self._pass_time, 4),
            (self._delete_records, 2),
            (self._move_stable, 2),
            (self._elect, plan.elections),
            (self._kill, plan.kills),
            (self._start, 6),
            (self._pause, 1),
            (self._resume, 4),
            (self._shrink, 2),
            (self.topic.sync, 6),
            (self._topic_replicas, 1),
            (self._power_cut, 1),
            (self._save, 1),
        ]

    def send(self, request: Request) -> None:
        self.in_flight.append(request)

    def _any(self, brokers: list[SimBroker]) -> SimBroker | None:
        return self.rng.choice(brokers) if brokers else None

    def _running(self) -> SimBroker | None:
        return self._any([broker for broker in self.brokers if broker.runs])

    @property
    def leader(self) -> SimBroker | None:
        """The leader, if it knows that it is."""
        broker = self.brokers[self.state.leader]
        return broker if broker.runs and broker.known == self.state else None

    # --- Brokers ------------------------------------------------------------------------------

    def _work(self) -> None:
        broker = self._any([one for one in self.brokers if one.runs and (one.leads or one.lanes)])
        if broker is None:
            return
        lane = self.rng.choice((COPY, COPY, EXPIRE))
        if REBUILD in broker.lanes:
            lane = REBUILD
        if broker.work(lane):
            self.note(lane, broker.node_id)

    def _deliver(self) -> None:
        if not self.in_flight:
            return
        request = self.in_flight[self.rng.randrange(len(self.in_flight))]
        dice = self.rng.randrange(100)
        if not request.sender_waits and self.rng.random() < LATE:
            return  # much later
        if dice < self.plan.given_up and request.sender_waits:
            request.sender_waits = False  # and it arrives later
            self.note("given up", request.name)
            return
        self.in_flight.remove(request)
        if not request.sender_waits:
            self.noted[f"late {request.name.split()[0]}"] += 1
        if is_late(request, self.topic):
            self.stored.late.add(request.about)
        if dice >= 100 - self.plan.lost:
            failed: Exception = ObjectError(request.name, Outcome.NOT_DONE)
            if request.name.startswith("publish"):
                failed = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            request.fail(failed)
            self.note("lost", request.name)
            return
        request.arrive()
        self.note("arrived", request.name)
        if dice % 10 == 9 and request.sender_waits:
            request.sender_waits = False
            request.is_answered = False
            self.note("answer lost", request.name)

    def _read(self) -> None:
        broker = self._running()
        if broker is not None and broker.read(self.rng.randint(1, 5)):
            self.note("read", broker.node_id, broker.applied)
            if self.rng.random() < 0.05:
                checks.same_as_replayed(self, broker)

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

    def _produce(self) -> None:
        """Also to one that does not know yet that it leads no more."""
        broker = self._any([one for one in self.brokers if one.runs and one.leads])
        if broker is None or broker.disk.log_end_offset > LOG_END_MAX:
            return
        epoch = broker.known.epoch
        for _ in range(self.rng.randint(1, 4)):
            record = self._written[broker.disk.log_end_offset, epoch] = epoch, self.clock.now_ms()
            broker.disk.append(record)
        if self.rng.random() < 0.1:
            broker.disk.roll()
        self.note("produce", broker.node_id, broker.disk.log_end_offset)
        self._advance(broker)

    def _fetch(self) -> None:
        broker = self._running()
        leader = self.brokers[broker.known.leader] if broker and broker.known.leader >= 0 else None
        if broker is None or leader is None or leader is broker or not leader.runs:
            return
        if leader.known != broker.known:
            return
        broker.fetch_from(leader)
        end = leader.ends.get(broker.node_id, -1)
        if leader is self.leader and end >= max(leader.disk.high_watermark, leader.epoch_start):
            self.isr.add(broker.node_id)
        self._advance(leader)

    def _advance(self, leader: SimBroker) -> None:
        """The leader's high watermark, and with it what counts as acknowledged."""
        if leader is not self.leader:
            return
        disk = leader.disk
        ends = [leader.ends.get(node, 0) for node in self.isr if node != leader.node_id]
        disk.high_watermark = max(disk.high_watermark, min([disk.log_end_offset, *ends]))
        if disk.open_transaction is None and disk.high_watermark > len(self.committed):
            self.noted["ack"] += 1
        self._acknowledge(disk)

    def _acknowledge(self, disk: SimLog) -> None:
        lineage = Lineage(disk.epochs, disk.log_end_offset)
        for offset in range(len(self.committed), disk.high_watermark):
            # After an unclean election it may be remote, or deleted.
            epoch = lineage.epoch_of(offset)
            self.committed.append(
                self._written.get((offset, -1 if epoch is None else epoch), checks.GONE)
            )

    def _local_retention(self) -> None:
        broker = self._running()
        segment = None if broker is None else broker.disk.droppable()
        if broker is None or segment is None:
            return
        checks.may_drop(self, broker, segment)
        broker.disk.drop_first()
        self.note("local retention", broker.node_id, segment.base_offset)

    def _delete_records(self) -> None:
        """Also of one that does not know yet that it leads no more."""
        leader = self._any([one for one in self.brokers if one.runs and one.hosted.is_prepared])
        if leader is None:
            return
        low, high = leader.disk.log_start_offset, leader.disk.high_watermark
        offset = self.rng.randint(low, min(high, low + 10))
        leader.disk.move_start(offset)
        self.deleted_to = max(self.deleted_to, offset)
        self.note("delete records", offset)

    def _move_stable(self) -> None:
        """A transaction begins or ends."""
        if self.leader is None:
            return
        disk = self.leader.disk
        begins = disk.open_transaction is None
        disk.open_transaction = disk.last_stable_offset if begins else None
        self.note("transaction", begins)

    # --- Faults -------------------------------------------------------------------------------

    def _elect(self) -> None:
        alive = [broker.node_id for broker in self.brokers if broker.up]
        clean = [node for node in alive if node in self.isr]
        if clean:
            node = self.rng.choice(clean)
            self.note("same leader" if node == self.state.leader else "elected", node)
            self.isr = {one for one in self.isr if one in alive} | {node}
        elif alive and self.rng.random() < 0.5:
            node = self.rng.choice(alive)
            disk = self.brokers[node].disk
            self.committed.clear()
            self._acknowledge(disk)
            self.isr = {node}
            self.note("unclean", node, disk.high_watermark)
        else:
            return
        self.state = State(node, self.state.epoch + 1)

    def _kill(self) -> None:
        broker = self._any([one for one in self.brokers if one.up])
        if broker is not None:
            self.note("kill", broker.node_id, *sorted(broker.lanes))
            broker.kill()

    def _start(self) -> None:
        broker = self._any([one for one in self.brokers if not one.up])
        if broker is not None:
            self._register(broker)

    def _register(self, broker: SimBroker) -> None:
        # A new registration gives up what the process before it led.
        if self.state.leader == broker.node_id:
            self.state = State(broker.node_id, self.state.epoch + 1)
        if self.rng.random() < 0.1:
            broker.disk.lose_epochs()
            self.note("epochs lost", broker.node_id)
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

    def _shrink(self) -> None:
        others = sorted(self.isr - {self.state.leader})
        if self.leader is not None and others:
            node = self.rng.choice(others)
            self.isr.discard(node)
            self.note("shrink", node)
            self._advance(self.leader)

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
        self.clock.advance(self.rng.randint(50, 2_000))

    # --- The end ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """All faults are over; what is on its way arrives."""
        self.topic.is_alone = False
        self.topic.advance()
        for broker in self.brokers:
            if not broker.up:
                self._register(broker)
            broker.paused = False
            broker.disk.open_transaction = None
        self.isr.add(self.state.leader)
        for _ in range(QUIET_ROUNDS):
            is_busy = self._round()
            checks.after_step(self)
            if not is_busy:
                break
        else:
            raise AssertionError("T16: there is always something to do")
        self._collect_orphans()

    def _round(self) -> bool:
        """Everybody does what there is to do; False if that is nothing."""
        is_busy = bool(self.in_flight)
        for request in self.in_flight:
            if is_late(request, self.topic):
                self.stored.late.add(request.about)
            request.arrive()
        self.in_flight.clear()
        leader = self.brokers[self.state.leader]
        for broker in self.brokers:
            broker.learn(self.state)
            is_busy |= broker.read(1000)
            if broker is not leader:
                before = broker.disk.log_end_offset
                broker.fetch_from(leader)
                is_busy |= broker.disk.log_end_offset != before
            before = leader.disk.high_watermark
            self._advance(leader)
            is_busy |= leader.disk.high_watermark != before
            for lane in (COPY, EXPIRE, *broker.lanes):
                while broker.work(lane):
                    is_busy = True
                    if self.in_flight or not broker.is_free(lane):
                        break
        return is_busy

    def _collect_orphans(self) -> None:
        """Past every grace, what the metadata topic does not name goes."""
        named = {bytes(segment.id) for segment in self.topic.truth.all()}
        for id_ in [one for one in self.stored.objects if bytes(one) not in named]:
            del self.stored.objects[id_]
            self.note("orphan")
