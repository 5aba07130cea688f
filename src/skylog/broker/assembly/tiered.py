"""Tiered storage, put together from the broker's parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skylog.broker.assembly.consolidation import assembler_settings, open_consolidation
from skylog.broker.background.tiered import start_sweep
from skylog.broker.partitions.pure import TieredReading
from skylog.broker.tiered.bulk_ranges import TieredRanges
from skylog.broker.tiered.diskless_offsets import TieredOffsets
from skylog.broker.tiered.diskless_reads import DisklessReads
from skylog.broker.tiered.external_batches import PlaneBatches
from skylog.broker.tiered.metadata_topic import ClusterMetadataTopic, MetadataTopicPorts
from skylog.broker.tiered.prefixes import TieredPrefixes
from skylog.broker.tiered.reads import RemoteReads
from skylog.broker.tiered.remote_tier import StoredTier
from skylog.broker.tiered.replicas import TieredReplicas
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.kernel.waiting import end_tasks
from skylog.objects.metered import StoreStats
from skylog.tiered.configuration import (
    RemoteStorageConfig,
    open_remote_storage,
    remote_storage_config,
)
from skylog.tiered.consolidation.external import ExternalAssembly
from skylog.tiered.counts import TieredCounts
from skylog.tiered.manager import ManagerSettings, RemoteLogManager
from skylog.tiered.metadata.follower import FollowerSettings, MetadataFollower
from skylog.tiered.reading.indexes import DIRECTORY as INDEX_CACHE
from skylog.tiered.reading.indexes import IndexCache
from skylog.tiered.reading.reader import ReaderSettings, RemoteReader
from skylog.tiered.sagas import RetrySettings

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.assembly.replication import Replication
    from skylog.broker.assembly.undo import Undo
    from skylog.broker.background.tasks import Background
    from skylog.broker.metadata.auto_create import AutoCreate
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.net.peers import BrokerPeers
    from skylog.broker.services import Services
    from skylog.broker.tiered.consolidating import ConsolidatingPartitions
    from skylog.controller.image import ClusterImage
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.settings.tiered import TieredSettings
    from skylog.kernel.system import System
    from skylog.log.manager import LogManager
    from skylog.tiered.storage import ObjectRemoteStorage


@dataclass(slots=True)
class TieredStorage:
    """The parts of tiered storage that others use."""

    # Which segments are remote, of the partitions that have a replica here.
    logs: MetadataFollower
    # The same, and those of other partitions once they were asked for.
    prefixes: TieredPrefixes
    storage: ObjectRemoteStorage
    manager: RemoteLogManager
    reader: RemoteReader
    reads: RemoteReads
    diskless: TieredReading
    counts: TieredCounts
    store_stats: StoreStats
    metadata_topic: ClusterMetadataTopic
    # The diskless partitions whose batches are put together into remote segments.
    consolidating: ConsolidatingPartitions
    # The segments of those whose assembler is a job.
    external: ExternalAssembly
    _snapshots: asyncio.Task[None] | None = field(default=None, init=False)

    def start(self) -> None:
        self.manager.start()
        self.consolidating.assembler.start()
        self._snapshots = asyncio.get_running_loop().create_task(self.logs.run())

    def reconfigure(self, settings: BrokerSettings) -> None:
        """Dynamic settings changed."""
        self.manager.reconfigure(manager_settings(settings.tiered))
        self.consolidating.assembler.reconfigure(assembler_settings(settings.tiered))
        self.reader.configure(reader_settings(settings.tiered))
        self.reader.indexes.resize(settings.tiered.index_cache_bytes_max)
        self.reads.reconfigure(settings.tiered)

    async def close(self) -> None:
        await self.consolidating.assembler.close()
        await self.external.close()
        await self.manager.close()
        await self.reader.close()
        await self.prefixes.close()
        if self._snapshots is not None:
            await end_tasks([self._snapshots])
        await self.logs.close()
        await self.storage.store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredPorts:
    """What tiered storage needs of its broker."""

    image: ClusterImage
    configs: Configs
    replication: Replication
    diskless: DisklessEngine
    local: LogManager
    peers: BrokerPeers
    auto_create: AutoCreate
    system: System
    # Told of what makes it impossible to go on.
    failed: Callable[[Exception], None]


def check_tiered(settings: BrokerSettings) -> None:
    """ConfigError for a mistake in the settings of the store, before anything is written."""
    if settings.tiered.enabled:
        storage_config(settings)


def storage_config(settings: BrokerSettings) -> RemoteStorageConfig:
    log_dir = str(Path(settings.node.log_dirs[0]).absolute())
    return remote_storage_config(
        settings.tiered, settings.storage, settings.diskless.storage_url, log_dir
    )


def open_tiered(
    settings: BrokerSettings, cluster_id: str, ports: TieredPorts
) -> TieredStorage | None:
    """None unless ``remote.log.storage.system.enable`` is true. Idle until ``start_tiered``."""
    if not settings.tiered.enabled:
        return None
    log_dir = Path(settings.node.log_dirs[0]).absolute()
    system, replicas = ports.system, ports.replication.replicas
    config = storage_config(settings)
    tiered, stats, counts = config.tiered, StoreStats(), TieredCounts(system.clock)
    storage = open_remote_storage(config, system, cluster_id, stats)
    topic = _metadata_topic(tiered, ports)
    logs = MetadataFollower(
        topic,
        system.executor,
        FollowerSettings(
            partitions=tiered.metadata_topic.partitions,
            consume_wait_ms=tiered.metadata_topic.consume_wait_ms,
            retry_ms=tiered.metadata_topic.initialization_interval_ms,
            directory=str(log_dir),
        ),
    )
    node_id = settings.node.node_id
    manager = RemoteLogManager(node_id, logs, storage, system, manager_settings(tiered), counts)
    indexes = IndexCache(
        log_dir / INDEX_CACHE,
        storage,
        system,
        bytes_max=tiered.index_cache_bytes_max,
        idle_ms_max=tiered.index_cache_ttl_ms,
    )
    storage.on_delete = indexes.forget
    prefixes = TieredPrefixes(logs, ports.image, ports.peers, node_id, system.clock)
    reader = RemoteReader(
        prefixes, storage, indexes, system, counts, reader_settings(tiered), at_hand=storage
    )
    reads = RemoteReads(reader, tiered, counts, system)
    listener = TieredReplicas(
        logs,
        manager,
        ports.local,
        system.executor,
        lambda: ports.image.topic(METADATA_TOPIC) is not None,
    )
    replicas.add_listener(listener)
    ports.local.add_listener(listener)
    configs = ports.configs
    ports.replication.fetchers.use_remote_tier(
        StoredTier(logs, storage, counts, lambda: configs.current.tiered.fetch_last_tiered_offset)
    )
    return TieredStorage(
        logs=logs,
        prefixes=prefixes,
        storage=storage,
        manager=manager,
        reader=reader,
        reads=reads,
        diskless=TieredReading(
            DisklessReads(ports.diskless, prefixes, reads),
            TieredOffsets(ports.diskless.plane, prefixes, reader, reads),
            configs,
        ),
        counts=counts,
        store_stats=stats,
        metadata_topic=topic,
        consolidating=open_consolidation(settings, logs, storage, manager, ports),
        external=_external(manager, logs, storage, ports, counts),
    )


async def start_tiered(services: Services, undo: Undo, background: Background) -> None:
    """Metadata was read up to this broker's registration: what it leads it leads alone.

    StorageError if the store is another cluster's.
    """
    tiered = services.tiered
    if tiered is not None:
        await tiered.storage.check_owner()
        services.partitions.use_remote(tiered.reads, tiered.diskless)
        services.diskless.bulk.tiers = TieredRanges(
            services.diskless,
            tiered.prefixes,
            tiered.reader,
            tiered.storage.layout,
            storage_config(services.settings).url,
        )
        services.configs.on_change(tiered.reconfigure)
        undo.stop_by(tiered.close)
        tiered.start()
        start_sweep(services, tiered, background)


def _external(
    manager: RemoteLogManager,
    logs: MetadataFollower,
    storage: ObjectRemoteStorage,
    ports: TieredPorts,
    counts: TieredCounts,
) -> ExternalAssembly:
    engine = ports.diskless
    batches = PlaneBatches(engine.plane, engine.reader, engine.bulk.locating)
    return ExternalAssembly(manager, logs, manager.runner, storage, batches, ports.system, counts)


def _metadata_topic(tiered: TieredSettings, ports: TieredPorts) -> ClusterMetadataTopic:
    return ClusterMetadataTopic(
        MetadataTopicPorts(
            image=ports.image,
            replicas=ports.replication.replicas,
            peers=ports.peers,
            auto_create=ports.auto_create,
            system=ports.system,
            failed=ports.failed,
        ),
        tiered.metadata_topic.partitions,
    )


def manager_settings(tiered: TieredSettings) -> ManagerSettings:
    return ManagerSettings(
        copiers=tiered.copiers,
        expirers=tiered.expirers,
        task_interval_ms=tiered.task_interval_ms,
        copy_bytes_per_second_max=tiered.copy_bytes_per_second_max,
        copy_window_count=tiered.copy_window_count,
        copy_window_seconds=tiered.copy_window_seconds,
        retry=RetrySettings(
            tiered.retry_backoff_ms, tiered.retry_backoff_ms_max, tiered.retry_jitter
        ),
    )


def reader_settings(tiered: TieredSettings) -> ReaderSettings:
    return ReaderSettings(
        readers=tiered.readers,
        pending_max=tiered.reads_pending_max,
        cache_bytes_max=tiered.cache_bytes_max,
        prefetch_bytes_max=tiered.prefetch_bytes_max,
    )
