"""One broker: a process with the real manager, assembler and prune pass, and what outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from sim.consolidation.bucket import BrokerStore
from sim.consolidation.disk import SimFiles
from sim.consolidation.loop import ProcessLoop
from sim.consolidation.plane import BrokerPlane
from sim.consolidation.remote_logs import SimRemoteLogs
from sim.consolidation.requests import Request
from skylog.broker.assembly.consolidation import ASSEMBLY_DIRECTORY
from skylog.broker.tiered.assembly_source import AssemblyPorts
from skylog.broker.tiered.consolidating import ConsolidatingPartitions
from skylog.broker.tiered.log_infos import LogInfos
from skylog.broker.tiered.pruning import CoordinatorPruner
from skylog.broker.tiered.registry import ClusterRegistry
from skylog.broker.tiered.wal import DisklessWal
from skylog.diskless.reader import DisklessReader
from skylog.diskless.reader.cache import ObjectCache
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.config import LogConfig
from skylog.objects.keys import ObjectKey
from skylog.tiered.consolidation.assembler import Assembler, AssemblerSettings
from skylog.tiered.consolidation.prune import PrunePass
from skylog.tiered.consolidation.read_back import read_back
from skylog.tiered.consolidation.snapshots import ProducerSnapshots
from skylog.tiered.counts import TieredCounts
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.manager import ManagerSettings, RemoteLogManager
from skylog.tiered.orphans import OrphanScanner
from skylog.tiered.sagas import FAILURES, RetrySettings
from skylog.tiered.segments import SegmentState, TopicIdPartition
from skylog.tiered.storage import ObjectRemoteStorage

if TYPE_CHECKING:
    from sim.consolidation.world import World
    from skylog.diskless.plane import HighWatermarkListener, Unsubscribe

TOPIC: Final = "t"
PARTITION: Final = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)
QUICK: Final = RetrySettings(backoff_ms=100, backoff_ms_max=1_000, jitter=0.0)
PRUNE_INTERVAL_MS: Final = 500
TASK_INTERVAL_MS: Final = 500
ASSEMBLY_INTERVAL_MS: Final = 300
CACHE_BYTES: Final = 1 << 20
OPEN_FILES: Final = 16


class State(NamedTuple):
    """What the controller has decided."""

    leader: int
    epoch: int


class SimBroker:
    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.directory = Path(world.directory) / str(node_id)
        self.directory.mkdir()
        self.up = False
        self.paused = False
        self.has_full_disk = False
        self.known = State(-1, -1)
        # The snapshot file.
        self._saved: Any = None
        self._requests: list[Request] = []

    # --- Life ---------------------------------------------------------------------------------

    def start(self) -> None:
        world = self.world
        self.up, self.paused, self.known = True, False, State(-1, -1)
        self.loop = ProcessLoop(world.clock)
        self._listeners: list[HighWatermarkListener] = []
        self.logs = SimRemoteLogs(self, PARTITION, TOPIC, self._saved)
        self.loop.call_soon(self._open)
        self.loop.run_ready()

    def _open(self) -> None:
        world, executor = self.world, InlineExecutor()
        clock, plan, counts = world.clock, world.plan, TieredCounts(world.clock)
        system = System(clock, Random(world.rng.random()), executor)
        storage = ObjectRemoteStorage(BrokerStore(self, world.bucket), AivenLayout(), executor)
        settings = ManagerSettings(task_interval_ms=TASK_INTERVAL_MS, retry=QUICK)
        plane: Any = BrokerPlane(self)
        manager = RemoteLogManager(self.node_id, self.logs, storage, system, settings, counts)
        reader = DisklessReader(
            plane, BrokerStore(self, world.wal), ObjectCache(CACHE_BYTES), clock
        )
        files = SimFiles(OPEN_FILES, self._finds_disk_full)
        assembler = Assembler(
            self.directory / ASSEMBLY_DIRECTORY,
            DisklessWal(plane, reader, clock),
            files,
            system,
            AssemblerSettings(plan.disk_bytes, ASSEMBLY_INTERVAL_MS),
        )
        snapshots = ProducerSnapshots(self.logs, storage, files, system)
        configs: Any = SimpleNamespace(
            log_config=lambda topic: self._config, changed_topics=lambda delta: ()
        )
        self.manager, self.assembler = manager, assembler
        self.consolidating = ConsolidatingPartitions(
            self.node_id,
            self.logs,
            manager,
            configs,
            AssemblyPorts(
                plane,
                LogInfos(plane),
                assembler,
                snapshots,
                clock,
                manager.rolled,
                manager.start_moved,
            ),
        )
        pruner = CoordinatorPruner(
            self.consolidating, plane, backup=None, delay_ms=plan.prune_delay_ms
        )
        self.prune = PrunePass(
            self.logs,
            pruner,
            partial(read_back, storage),
            clock,
            counts,
            delay_ms=plan.prune_delay_ms,
        )
        manager.start()
        assembler.start()
        self._pruning = self.loop.create_task(self._prune())

    async def _prune(self) -> None:
        """As ``Pass`` does."""
        while True:
            await asyncio.sleep(PRUNE_INTERVAL_MS / 1000)
            with contextlib.suppress(*FAILURES):
                await self.prune.run_once()

    @property
    def _config(self) -> LogConfig:
        plan = self.world.plan
        return LogConfig(
            remote_storage_enable=True,
            remote=True,
            retention_ms=plan.retention_ms,
            retention_bytes=plan.retention_bytes,
            segment_bytes=plan.segment_bytes,
            segment_ms=plan.segment_ms,
        )

    def kill(self) -> None:
        if self.up:
            self.up = self.paused = False
            for request in self._requests:
                request.is_dead = True
            self._requests.clear()
            # What tasks do when they end has no effect any more.
            kept = self.directory.rename(self.directory.with_suffix(".kept"))
            self.loop.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
            kept.rename(self.directory)

    @property
    def runs(self) -> bool:
        return self.up and not self.paused

    @property
    def leads(self) -> bool:
        """Whether it believes so."""
        return self.up and self.known.leader == self.node_id

    def learn(self, state: State) -> None:
        """Read the cluster's metadata."""
        if state == self.known:
            return
        self.known = state
        delta: Any = SimpleNamespace(topics_deleted={}, partitions={PARTITION.topic_id: [0]})
        self.loop.call_soon(self.consolidating.metadata_changed, self._image, delta)

    @property
    def _image(self) -> Any:
        """The cluster's metadata, as this broker has read it."""
        partition = SimpleNamespace(
            replicas=range(len(self.world.brokers)),
            leader=self.known.leader,
            leader_epoch=self.known.epoch,
            is_pure=True,
            writes_diskless=True,
        )
        topic = SimpleNamespace(
            name=TOPIC,
            topic_id=PARTITION.topic_id,
            diskless_enabled=True,
            partitions={0: partition},
        )
        return SimpleNamespace(topic_by_id=lambda _: topic, topic=lambda _: topic)

    async def scan(self, grace_ms: int) -> int:
        """The scan for orphans; returns how many there were."""

        async def require() -> None:
            """The store is this cluster's."""

        world, nobody = self.world, cast(Any, None)
        claim: Any = SimpleNamespace(store=world.bucket, require=require)
        plane: Any = world.plane
        registry = ClusterRegistry(self.node_id, self._image, nobody, self.logs, nobody, plane)
        scanner = OrphanScanner(claim, registry, world.clock, grace_ms=grace_ms)
        return (await scanner.scan(delete=True)).orphans

    def save(self) -> None:
        self._saved = self.logs.saved()

    # --- What its parts ask -------------------------------------------------------------------

    async def ask(self, request: Request) -> Any:
        self.world.in_flight.append(request)
        self._requests.append(request)
        try:
            return await request.answered()
        finally:
            if request in self._requests:
                self._requests.remove(request)

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def moved(self, high_watermark: int) -> None:
        if self.up:
            for listener in self._listeners:
                self.loop.call_soon(listener, PARTITION, high_watermark)

    # --- What must hold when it sends something -----------------------------------------------

    def check_epoch(self, epoch: int) -> None:
        if epoch != self.manager._hosted[PARTITION].leader_epoch:
            self.world.fail("T7: written in another epoch than the present")

    def check_put(self, key: ObjectKey) -> None:
        self._check(key, SegmentState.COPY_STARTED)
        if self.known != self.world.state:
            # The next leader may have cleaned it; the scan for orphans sees to it.
            self.world.bucket.late.add(self._id(key))
        segment = self.logs.remote.segment(self._id(key))
        if segment is not None and segment.end_offset >= self.world.log.high_watermark:
            self.world.fail("T11: copied above the high watermark")

    def check_delete(self, key: ObjectKey) -> None:
        self._check(key, SegmentState.DELETE_STARTED)

    def _check(self, key: ObjectKey, state: SegmentState) -> None:
        id_ = self._id(key)
        mine = self.logs.remote.segment(id_)
        is_known = (id_, state) in self.logs.read_back or (mine and mine.state is state)
        if not is_known:
            self.world.fail(f"T3, T7: {key} before the record was read back")

    @staticmethod
    def _id(key: ObjectKey) -> bytes:
        assert key.segment is not None
        return bytes(key.segment.segment_id)

    # --- Its disk -----------------------------------------------------------------------------

    def _finds_disk_full(self) -> bool:
        if self.has_full_disk:
            self.world.noted["full disk"] += 1
        return self.has_full_disk

    def assembled_logs(self) -> list[str]:
        return sorted(path.name for path in self.directory.rglob("*.log"))

    def damage(self, rng: Random) -> bool:
        """Change a byte of a log that is put together; False if there is none."""
        logs = sorted(self.directory.rglob("*.log"))
        logs = [path for path in logs if path.stat().st_size]
        if not logs:
            return False
        path = rng.choice(logs)
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        return True
