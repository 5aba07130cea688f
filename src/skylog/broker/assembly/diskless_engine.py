"""The diskless engine of a broker: store, control plane, writer, reader and watchers."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skylog.broker.assembly.bulk_access import BulkAccess
from skylog.broker.assembly.diskless_planes import Coordination, open_plane
from skylog.broker.assembly.local_segments import watch_commits
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import ControlPlane
from skylog.diskless.reader import (
    DisklessReader,
    ObjectCache,
    ReaderSettings,
    ReadRequest,
    ReadResult,
)
from skylog.diskless.reader.objects import ObjectReaderSettings
from skylog.diskless.writer import DisklessWriter, WriterSettings
from skylog.kernel.errors import ErrorCode
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.metered import StoreStats
from skylog.objects.open import open_store, parse_url

if TYPE_CHECKING:
    from skylog.broker.assembly.local_segments import LocalSegments
    from skylog.broker.metadata.auto_create import AutoCreate
    from skylog.controller.image import ClusterImage, Delta
    from skylog.controller.image.topics import Topic
    from skylog.diskless.coordinator.calls import Peers
    from skylog.kernel.ids import Uuid
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.settings.diskless import DisklessSettings
    from skylog.kernel.system import System
    from skylog.log.files import Files
    from skylog.objects.store import ObjectStore

_log = get_logger("broker.diskless")
# The default directory of objects: beside the logs.
OBJECTS_DIRECTORY: Final = "diskless-objects"
# Errors that are not the client's fault.
_FETCH_FAILURES: Final = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)
# Runs work; if it fails, runs it again after a while.
UntilDone = Callable[[str, Callable[[], Awaitable[object]]], None]


@dataclass(slots=True)
class DisklessEngine:
    """The parts of the engine that handlers use."""

    store: ObjectStore
    plane: ControlPlane
    writer: DisklessWriter
    reader: DisklessReader
    partitions: DisklessPartitions
    # None: the plane has no coordinators.
    coordination: Coordination | None
    store_stats: StoreStats
    fetch_stage: Stage
    local: LocalSegments | None = None
    bulk: BulkAccess = field(default_factory=BulkAccess)

    async def fetch(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, *, min_one: bool
    ) -> list[ReadResult]:
        """Records for each request, wherever they are stored, within one budget."""
        source = self.reader if self.local is None else self.local
        stage, began = self.fetch_stage, self.fetch_stage.begin()
        try:
            results = await source.fetch(requests, fetch_max_bytes, min_one=min_one)
        except Exception:
            stage.failed(began)
            raise
        failed = any(result.error in _FETCH_FAILURES for result in results)
        (stage.failed if failed else stage.succeeded)(began)
        return results

    def records_deleted(self, topic_id: Uuid, index: int, log_start: int) -> None:
        """From now on this broker does not serve the deleted records."""
        if self.local is not None:
            self.local.partitions.log_started((topic_id, index), log_start)

    async def close(self) -> None:
        await self.writer.close()
        if self.local is not None:
            await self.local.filler.close()
        await self.plane.close()
        await self.store.close()


class DisklessFollower:
    """Keeps the engine in line with metadata: new partitions, deleted topics."""

    def __init__(
        self, engine: DisklessEngine, auto_create: AutoCreate, until_done: UntilDone
    ) -> None:
        self._engine = engine
        self._auto_create = auto_create
        self._until_done = until_done

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        engine = self._engine
        if engine.coordination is not None:
            coordinators = image.topic(DISKLESS_METADATA)
            if coordinators is not None and coordinators.topic_id in delta.partitions:
                engine.coordination.cluster.leaders_changed()
        gone = [t.topic_id for t in delta.topics_deleted.values() if t.diskless_enabled]
        for topic_id in gone:
            engine.partitions.delete_topic(topic_id)
            if engine.local is not None:
                engine.local.partitions.delete_topic(topic_id)
        if gone:
            self._until_done("delete diskless topics", partial(self._delete, gone))
        created = []
        for topic_id, indexes in delta.partitions.items():
            topic = image.topic_by_id(topic_id)
            if topic is not None and topic.diskless_enabled and self._assign(topic, indexes):
                created.append((topic_id, topic.name, len(topic.partitions)))
        if created:
            work = partial(self._create, image, created)
            self._until_done("create diskless partitions", work)

    def _assign(self, topic: Topic, indexes: Iterable[int]) -> bool:
        """Take up partitions as they are now; True if one of them is new."""
        engine, new = self._engine, False
        for index in indexes:
            state = topic.partitions[index]
            if not state.writes_diskless:
                continue
            new = new or engine.partitions.get(topic.topic_id, index) is None
            engine.partitions.assign(
                topic.name, topic.topic_id, index, state.leader, state.leader_epoch
            )
            if engine.local is not None:
                engine.local.assign(topic.name, topic.topic_id, index, state)
        return new

    async def _create(self, image: ClusterImage, topics: list[tuple[Any, str, int]]) -> None:
        """Every broker does this, whichever brokers lead coordinators: repeating it is harmless."""
        if image.topic(DISKLESS_METADATA) is None:
            await self._auto_create.create([DISKLESS_METADATA])
        await self._engine.plane.loaded()
        # A topic that was deleted meanwhile must not be created again.
        there = [one for one in topics if image.topic_by_id(one[0]) is not None]
        await self._engine.plane.create_partitions(there)

    async def _delete(self, topic_ids: list[Any]) -> None:
        await self._engine.plane.delete_topics(topic_ids)


def storage_url_of(settings: BrokerSettings) -> str:
    """Where the objects of a node are stored."""
    directory = Path(settings.node.log_dirs[0]).absolute() / OBJECTS_DIRECTORY
    return settings.diskless.storage_url or directory.as_uri()


def open_engine(
    settings: BrokerSettings,
    image: ClusterImage,
    peers: Peers,
    files: Files,
    system: System,
) -> DisklessEngine:
    """Put the engine together from the node's settings."""
    diskless = settings.diskless
    clock, rng, executor = system.clock, system.rng, system.executor
    plane, coordination = open_plane(settings, image, peers, files, system)
    url = storage_url_of(settings)
    stats = StoreStats()
    store = open_store(
        url,
        settings.storage,
        stats=stats,
        clock=clock,
        rng=rng,
        beside_logs=not settings.diskless.storage_url,
    )
    cache = ObjectCache(diskless.cache_bytes_max)
    writer = DisklessWriter(
        WriterSettings(
            broker_id=settings.node.node_id,
            buffer_bytes_max=diskless.buffer_bytes_max,
            interval_ms=diskless.commit_interval_ms,
            adaptive=diskless.adaptive,
            puts_per_second=_puts_per_second(diskless, remote=parse_url(url).is_remote),
            inflight_bytes_max=diskless.inflight_bytes_max,
            upload_concurrency=diskless.upload_concurrency,
            commit_age_max_ms=diskless.commit_age_max_ms,
        ),
        store,
        plane,
        clock=clock,
        rng=rng,
        cache_put=cache.put,
    )
    objects = ObjectReaderSettings(
        concurrency=diskless.fetch_concurrency,
        lagging_concurrency=diskless.lagging_concurrency,
        hedge_ms=diskless.hedge_ms,
    )
    reader = DisklessReader(plane, store, cache, clock, ReaderSettings(objects))
    partitions = DisklessPartitions()
    engine = DisklessEngine(
        store,
        plane,
        writer,
        reader,
        partitions,
        coordination,
        stats,
        fetch_stage=Stage(clock),
    )
    watch_commits(engine, settings, files, executor, clock)
    return engine


def _puts_per_second(diskless: DisklessSettings, *, remote: bool) -> float:
    """No limit for a directory; for a bucket, as many uploads as the commit interval costs
    anyway."""
    if diskless.puts_per_second >= 0:
        return diskless.puts_per_second
    return 1000 / diskless.commit_interval_ms if remote else math.inf
