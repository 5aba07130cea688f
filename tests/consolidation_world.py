"""Leaders, a pruner and one diskless partition, step by step in any order.

The coordinator is a real plane in memory, and so are sagas, expiry and pruning; what they ask of
others waits at a *gate* until the test opens it, before it happens and before its answer comes. A
process that ends may leave a request on its way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from skylog.broker.tiered.assembly_source import NOT_LEADING, AssemblySource
from skylog.broker.tiered.log_infos import LogInfos
from skylog.broker.tiered.pruning import CoordinatorPruner
from skylog.diskless.plane import FileToCommit, FindRequest
from skylog.diskless.planes.memory import MemoryPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.closed import ClosedSegment
from skylog.log.config import LogConfig
from skylog.objects.keys import ObjectKey
from skylog.objects.store import NotFound, ObjectError
from skylog.objects.store import Outcome as StoreOutcome
from skylog.tiered.consolidation.prune import PrunePass
from skylog.tiered.copier import Copier
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.counts import TieredCounts
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.leading import Preparation
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.ports import Published, SegmentFiles
from skylog.tiered.quota import ByteQuota
from skylog.tiered.sagas import FAILURES, RetrySettings, SagaRunner
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.slots import Slots
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log
from skylog.wire.schema import Message
from tests.unit.diskless.batches import to_commit

T = TypeVar("T")
TOPIC = "t"
PARTITION = TopicIdPartition(Uuid(b"consolidated----"), 0)
RECORD_BYTES = 100
DELAY_MS = 1_000
NO_PAUSE = RetrySettings(backoff_ms=0, backoff_ms_max=0, jitter=0.0)
CONFIG = LogConfig(remote_storage_enable=True, remote=True, retention_ms=-1)
PARTS = ("log", "indexes", "manifest")
# Turns of the event loop after which all wait at gates again.
_TURNS = 15


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of what awaits nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")


class World:
    """What outlives every broker; ``rng`` decides all there is to decide."""

    def __init__(self, rng: random.Random, config: LogConfig = CONFIG, *, faults: float) -> None:
        self.rng = rng
        self.config = config
        self.faults = faults
        self.clock = ManualClock()
        self.plane = MemoryPlane(self.clock)
        at_once(self.plane.create_partitions([(PARTITION.topic_id, TOPIC, 1)]))
        # The metadata topic, and what it means.
        self.topic: list[bytes] = []
        self.truth = RemoteLog(PARTITION, TOPIC)
        self.objects: set[tuple[bytes, str]] = set()
        # The bytes of each record that was ever committed, and what users and the coordinator's
        # own retention have deleted.
        self.sizes: list[int] = []
        self.deleted_to = 0
        self.log_start = 0
        self.gates: list[asyncio.Future[None]] = []
        # Requests of processes that have ended.
        self.late: list[Callable[[], object]] = []
        self.pruned = 0
        # Of ours: what stores and coordinators say is expected.
        self.errors: list[BaseException] = []

    # -- gates

    async def gate(self) -> None:
        gate = asyncio.get_running_loop().create_future()
        self.gates.append(gate)
        try:
            await gate
        finally:
            if gate in self.gates:
                self.gates.remove(gate)

    async def effect(
        self, act: Callable[[], T], error: Callable[[bool], Exception], *, reads: bool = False
    ) -> T:
        """Do ``act`` between two gates; it may fail, or its answer may be lost."""
        try:
            await self.gate()
        except asyncio.CancelledError:
            if not reads and self.rng.random() < 0.5:
                self.late.append(act)
            raise
        if self.rng.random() < self.faults:
            raise error(True)
        result = act()
        if self.rng.random() < self.faults:
            raise error(False)
        await self.gate()
        return result

    def open_gate(self) -> None:
        self.rng.choice(self.gates).set_result(None)

    async def settle(self) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    # -- the partition

    def produce(self, records: int) -> None:
        key = ObjectKey.new("wal", self.clock.now_ms(), self.rng).text
        size = records * RECORD_BYTES
        batch = to_commit(
            key,
            topic_id=PARTITION.topic_id,
            partition=0,
            byte_offset=1,
            byte_size=size,
            base_offset=0,
            last_offset=records - 1,
            batch_max_timestamp=self.clock.now_ms(),
        )
        file = FileToCommit(object_key=key, size=size + 1, batches=[batch], coordinator_ids=(0,))
        (result,) = at_once(self.plane.commit_file(file))
        assert result.assigned_base_offset == len(self.sizes)
        self.sizes += [RECORD_BYTES] * records

    def delete_records(self, offset: int) -> None:
        (result,) = at_once(self.plane.delete_records([(*PARTITION, offset)]))
        assert result.error is ErrorCode.NONE
        self.deleted_to = max(self.deleted_to, result.low_watermark)

    def enforce_retention(self) -> None:
        limits = self.config.retention_bytes, self.config.retention_ms
        (before,) = at_once(self.plane.log_info([PARTITION]))
        (result,) = at_once(self.plane.enforce_retention([(*PARTITION, *limits)], 2))
        if before.log_start_offset < before.wal_start_offset:
            is_same = result.log_start_offset == before.log_start_offset
            assert is_same, "the start of a tiered part is moved by its leader"
        self.deleted_to = max(self.deleted_to, result.log_start_offset)

    def append(self, value: bytes) -> int:
        at = len(self.topic)
        self.topic.append(value)
        record = decode_remote_log(value)
        assert record is not None
        self.truth.apply(record, at)
        return at

    # -- checks

    def check(self, views: Sequence[RemoteLog]) -> None:
        for error in self.errors:
            raise RuntimeError from error
        (info,) = at_once(self.plane.log_info([PARTITION]))
        assert info.high_watermark == len(self.sizes)
        self._check_start(info.log_start_offset)
        for offset in range(info.log_start_offset, info.wal_start_offset):
            segment = self.truth.segment_for(0, offset)
            assert segment is not None, f"T1: {offset} is neither in the WAL nor remote"
        for view in (self.truth, *views):
            for segment in view.all():
                is_there = segment.state is SegmentState.COPY_FINISHED
                if is_there and segment.end_offset >= info.log_start_offset:
                    missing = [part for part in PARTS if (segment.id, part) not in self.objects]
                    assert not missing, f"T2: {segment.start_offset} has no {missing}"
        self.pruned = max(self.pruned, info.wal_start_offset - info.log_start_offset)

    def _check_start(self, start: int) -> None:
        assert start >= self.log_start, "the log start went back"
        if start > max(self.log_start, self.deleted_to):
            limit = self.config.retention_bytes
            assert limit >= 0, "T5: nobody may move the log start"
            assert sum(self.sizes[start:]) >= limit, f"expiry keeps too little from {start} on"
        self.log_start = start


def _refused(what: str, code: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> Any:
    return lambda definite: KafkaError(code, what)


def _store_error(what: str) -> Any:
    return lambda definite: ObjectError(
        what, StoreOutcome.NOT_DONE if definite else StoreOutcome.AMBIGUOUS
    )


class GatedPlane:
    """The coordinator as a broker reaches it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._world.plane, name)
        reads = name in ("log_info", "find_batches")

        async def gated(*args: Any) -> Any:
            act = lambda: at_once(call(*args))  # noqa: E731 - said here what it does
            return await self._world.effect(act, _refused(name), reads=reads)

        return gated


class Logs:
    """``RemoteLogs`` of one broker, which reads the topic when it is told to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.remote = RemoteLog(PARTITION, TOPIC)
        self.changed: Callable[[], None] = lambda: None
        self.read()

    def read(self, end: int | None = None) -> dict[int, Outcome]:
        found = {}
        for at in range(self.remote.next_offset, len(self._world.topic) if end is None else end):
            record = decode_remote_log(self._world.topic[at])
            assert record is not None
            found[at] = self.remote.apply(record, at)
            self.changed()
        return found

    def get(self, partition: TopicIdPartition) -> RemoteLog:
        return self.remote

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        value = encode_remote_log(record)
        outcome: Outcome | None = None
        at = await self._world.effect(lambda: self._world.append(value), _refused("publish"))
        outcome = self.read(at + 1).get(at)
        if outcome is None:  # read before the answer came
            again = RemoteLog(PARTITION, TOPIC)
            for number, known in enumerate(self._world.topic[: at + 1]):
                decoded = decode_remote_log(known)
                assert decoded is not None
                outcome = again.apply(decoded, number)
        return Published.EFFECTIVE if outcome is Outcome.EFFECTIVE else Published.VOID


class Store:
    """``RemoteStorage``: three objects for each segment."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def copy(self, segment: RemoteSegment, files: SegmentFiles) -> bytes | None:
        for part in PARTS:
            key = segment.id, part
            await self._world.effect(
                lambda key=key: self._world.objects.add(key), _store_error("put")
            )
        return None

    async def delete(self, segment: RemoteSegment) -> None:
        for part in ("manifest", "log", "indexes"):
            key = segment.id, part
            await self._world.effect(
                lambda key=key: self._world.objects.discard(key), _store_error("delete")
            )

    async def read_back(self, segment: RemoteSegment) -> None:
        for part in PARTS:
            key = segment.id, part
            is_there = await self._world.effect(
                lambda key=key: key in self._world.objects, _store_error("head"), reads=True
            )
            if not is_there:
                raise NotFound(part)

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> bytes:
        raise AssertionError("nobody reads records here")

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> bytes:
        raise AssertionError("a leader of a diskless partition needs no index")


class Source(AssemblySource):
    """What the WAL has, in segments of ``cut`` batches; two brokers cut at other places."""

    def __init__(self, world: World, plane: GatedPlane, cut: int) -> None:
        reached: Any = plane
        ports: Any = SimpleNamespace(
            plane=plane,
            infos=LogInfos(reached),
            clock=world.clock,
            start_moved=lambda partition: None,
        )
        super().__init__(PARTITION, TOPIC, world.config, ports)
        self._plane = plane
        self._cut = cut
        # (first offset, end, largest timestamp)
        self.batches: list[tuple[int, int, int]] = []

    async def assemble(self) -> None:
        start = self.assembled_end
        asked = FindRequest(*PARTITION, start, 1 << 30)
        (found,) = await self._plane.find_batches([asked], 1 << 30)
        # Dropped since, or begun anew behind what others copied.
        if found.error is ErrorCode.NONE and self.leader_epoch >= 0 and start == self.assembled_end:
            self.heard(found.log_start_offset, found.high_watermark)
            self.batches += [
                (one.stamp.base_offset, one.stamp.last_offset + 1, one.stamp.timestamp)
                for one in found.batches
            ]

    def drop(self) -> None:
        self.batches = []

    def _review(self) -> None:
        """``assemble`` puts together what the test wants."""

    @property
    def assembled_end(self) -> int:
        covered = self.covered_end
        if self.batches and self.batches[-1][1] <= covered:
            self.drop()
        return self.batches[-1][1] if self.batches else covered

    def _groups(self) -> list[list[tuple[int, int, int]]]:
        whole = len(self.batches) // self._cut
        return [self.batches[n * self._cut : (n + 1) * self._cut] for n in range(whole)]

    @property
    def closed_end(self) -> int:
        groups = self._groups()
        return groups[-1][-1][1] if groups else self.covered_end

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        names = ("log", "index", "timeindex", None, "snapshot")
        return [
            ClosedSegment(
                group[0][0],
                group[-1][1],
                (group[-1][1] - group[0][0]) * RECORD_BYTES,
                max(one[2] for one in group),
                *names,
            )
            for group in self._groups()
            if group[-1][1] > from_offset
        ]

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        epochs = epoch_checkpoint(self.epochs, closed.next_offset)
        return SegmentFiles("log", "index", "timeindex", None, "snapshot", epochs)


class Broker:
    """One process; ``start`` begins what its manager or its background would."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        system = System(world.clock, random.Random(world.rng.random()), InlineExecutor())
        self.logs, self.store, plane = Logs(world), Store(world), GatedPlane(world)
        counts, slots = TieredCounts(world.clock), Slots(2)
        runner = SagaRunner(
            node_id,
            self.logs,  # type: ignore[arg-type]
            self.store,
            system,
            NO_PAUSE,
            counts,
        )
        self.source = Source(world, plane, 2 + node_id)
        self.hosted = Hosted(PARTITION, TOPIC, self.source)
        self.logs.changed = lambda: self.hosted.follow(self.logs.remote)
        self.copier = Copier(
            self.logs,  # type: ignore[arg-type]
            runner,
            Preparation(self.store),
            system,
            ByteQuota(2**63 - 1, 11, 1),
            slots,
            counts,
        )
        self.expirer = Expirer(runner, system, slots, counts)
        here = SimpleNamespace(
            led=lambda: [self.source] if self.source.leader_epoch >= 0 else [],
            get=lambda partition: self.source,
        )
        pruner = CoordinatorPruner(
            here,  # type: ignore[arg-type]
            plane,  # type: ignore[arg-type]
            backup=None,
            delay_ms=DELAY_MS,
        )
        self.prune = PrunePass(
            self.logs,  # type: ignore[arg-type]
            pruner,
            self.store.read_back,
            world.clock,
            counts,
            delay_ms=DELAY_MS,
        )
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def lead(self, epoch: int) -> None:
        self.source.leader_epoch = epoch
        self.hosted.led(epoch)
        self.hosted.follow(self.logs.remote)

    def unlead(self) -> None:
        self.source.leader_epoch = NOT_LEADING
        self.source.drop()
        self.hosted.deposed()
        for name in ("copy", "expire", "assemble"):
            if name in self.tasks:
                self.tasks[name].cancel()

    def kill(self) -> None:
        for task in self.tasks.values():
            task.cancel()

    def start(self, name: str) -> None:
        if name in self.tasks:
            return
        task = asyncio.get_running_loop().create_task(self._run(name))
        self.tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        del self.tasks[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.errors.append(error)

    async def _run(self, name: str) -> None:
        try:
            await getattr(self, f"_{name}")()
        except FAILURES:
            return  # it is tried again

    async def _assemble(self) -> None:
        if self.hosted.is_prepared:
            await self.source.assemble()

    async def _copy(self) -> None:
        if self.hosted.leads and self.copier.has_work(self.hosted, self.logs.remote):
            await self.copier.run(self.hosted, self.logs.remote)

    async def _expire(self) -> None:
        if self.hosted.leads and self.expirer.has_work(self.hosted, self.logs.remote):
            await self.expirer.run(self.hosted, self.logs.remote)

    async def _prune(self) -> None:
        await self.prune.run_once()


class History:
    """One run: whatever ``rng`` draws, with the invariants checked after every step."""

    def __init__(self, seed: int, *, faults: float = 0.03, retention_bytes: int = -1) -> None:
        config = replace(CONFIG, retention_bytes=retention_bytes)
        self.world = World(random.Random(seed), config, faults=faults)
        self.brokers = [Broker(self.world, number) for number in range(2)]
        self.epoch = 0
        self.leader = self.brokers[0]
        self.leader.lead(0)

    async def run(self, steps: int = 120) -> None:
        actions: list[tuple[int, Callable[[], object]]] = [
            (8, self._produce),
            (18, lambda: self._some("assemble")),
            (18, lambda: self._some("copy")),
            (20, lambda: self._some("prune")),
            (8, lambda: self._some("expire")),
            (6, self._read),
            (14, lambda: self.world.clock.advance(DELAY_MS * 2 // 3)),
            (2, self._delete_records),
            (6, self.world.enforce_retention),
            (2, self._elect),
            (1, self._restart),
            (3, self._late),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            (action,) = self.world.rng.choices([act for _, act in actions], weights)
            action()
            # What is under way goes on a little, or for long.
            for _ in range(self.world.rng.choice((0, 1, 4, 15, 40))):
                await self.world.settle()
                self.check()
                self._open()
            await self.world.settle()
            self.check()
        await self.quiesce()

    def check(self) -> None:
        self.world.check([broker.logs.remote for broker in self.brokers])

    def _some(self, name: str) -> None:
        self.world.rng.choice([self.leader, *self.brokers]).start(name)

    def _read(self) -> None:
        self.world.rng.choice(self.brokers).logs.read()

    def _produce(self) -> None:
        for _ in range(self.world.rng.randint(1, 4)):
            self.world.produce(self.world.rng.randint(1, 3))

    def _open(self) -> None:
        if self.world.gates:
            self.world.open_gate()

    def _delete_records(self) -> None:
        start, end = self.world.log_start, len(self.world.sizes)
        self.world.delete_records(self.world.rng.randint(start, min(end, start + 10)))

    def _elect(self) -> None:
        """The one that led may not hear of it for long."""
        self.epoch += 1
        rng, old = self.world.rng, self.leader
        self.leader = rng.choice(self.brokers)
        if old is not self.leader and rng.random() < 0.6:
            old.unlead()
        self.leader.lead(self.epoch)

    def _restart(self) -> None:
        number = self.world.rng.randrange(2)
        old = self.brokers[number]
        old.kill()
        new = self.brokers[number] = Broker(self.world, number)
        if old is self.leader:
            self.epoch += 1
            self.leader = new
            new.lead(self.epoch)

    def _late(self) -> None:
        if self.world.late:
            self.world.late.pop(self.world.rng.randrange(len(self.world.late)))()

    # -- the end

    async def quiesce(self) -> None:
        """No more faults: what is under way ends, and the leader does what is left."""
        world = self.world
        world.faults = 0.0
        self.epoch += 1
        for broker in self.brokers:
            if broker is not self.leader:
                broker.unlead()
        self.leader.lead(self.epoch)
        while world.late:
            self._late()
        for _ in range(6):
            for broker in self.brokers:
                broker.logs.read()
            for name in ("copy", "assemble", "copy", "expire", "prune"):
                self.leader.start(name)
                await self._drain()
            world.clock.advance(DELAY_MS)
            self.check()
        left = world.truth.unfinished()
        assert not left, f"T16: {left}"
        source = self.leader.source
        await source_refreshed(self, source)
        run = list(world.truth.run(0, source.local_log_start_offset))
        assert not run, f"T16: {run} are not pruned"

    async def _drain(self) -> None:
        for _ in range(10_000):
            await self.world.settle()
            if not self.world.gates:
                return
            self.world.open_gate()
            self.check()
        raise AssertionError("it never ends")


async def source_refreshed(history: History, source: Source) -> None:
    """What the coordinator has at the end."""
    (info,) = at_once(history.world.plane.log_info([PARTITION]))
    source.learn(info)
