"""What a node backs up into the object store.

A broker backs up coordinators and the cluster's metadata, a controller only the latter: without a
controller's copy no leader could be elected after a restore.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skylog.broker.assembly.diskless_planes import COORDINATORS_DIRECTORY
from skylog.broker.tiered.backup import remote_log_states
from skylog.diskless.files.backup import LogToBackup, MetadataBackup, NodeIdentity
from skylog.diskless.files.passes import PacedPass
from skylog.kernel.ids import METADATA_TOPIC_ID
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.kernel.topics import CLUSTER_METADATA, DISKLESS_METADATA
from skylog.quorum.election_file import FILE_NAME as ELECTION_NAME

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Background
    from skylog.broker.services import Services
    from skylog.controller.image import ClusterImage
    from skylog.kernel.clock import Clock
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.system import System
    from skylog.log.manager import LogManager
    from skylog.objects.store import ObjectStore
    from skylog.quorum.node import QuorumNode
    from skylog.quorum.storage import NodeStorage


def is_wanted(settings: BrokerSettings) -> bool:
    """A backup on the same disks that it protects is useless."""
    return bool(settings.diskless.storage_url) and settings.diskless.backup_interval_ms > 0


def open_backup(
    settings: BrokerSettings,
    system: System,
    image: ClusterImage,
    logs: LogManager,
    store: ObjectStore,
    storage: NodeStorage,
    quorum: QuorumNode,
) -> MetadataBackup:
    """The component that copies this node's metadata into ``store``."""
    directories = [storage.metadata_dir, *storage.directory_ids]
    identity = NodeIdentity(
        storage.cluster_id,
        storage.node_id,
        [str(storage.directory_ids[directory]) for directory in dict.fromkeys(directories)],
    )
    coordinators = coordinators_directory(settings)

    def sources() -> list[LogToBackup]:
        topic = image.topic(DISKLESS_METADATA)
        found = []
        for index in sorted(topic.partitions) if topic is not None else ():
            log = logs.get(DISKLESS_METADATA, index)
            if topic is not None and log is not None:
                snapshots = coordinators / f"{topic.topic_id}-{index}"
                found.append(LogToBackup(log.topic, index, topic.topic_id, snapshots, log))
        metadata = LogToBackup(
            CLUSTER_METADATA, 0, METADATA_TOPIC_ID, storage.metadata_log, quorum.stored
        )
        return [*found, metadata]

    return MetadataBackup(
        identity,
        sources,
        (storage.metadata_log / ELECTION_NAME).read_text,
        store,
        clock=system.clock,
        rng=system.rng,
        executor=system.executor,
    )


def broker_backup(
    services: Services, system: System, storage: NodeStorage, quorum: QuorumNode
) -> MetadataBackup | None:
    """That of a broker, if its settings want one."""
    settings, store = services.settings, services.diskless.store
    if not is_wanted(settings):
        return None
    backup = open_backup(settings, system, services.image, services.logs, store, storage, quorum)
    backup.include(lambda: remote_log_states(services))
    return backup


def start_backup(
    backup: MetadataBackup,
    image: ClusterImage,
    clock: Clock,
    interval_ms: int,
    background: Background,
) -> PacedPass:
    """Back up repeatedly, once the cluster has diskless or remote topics."""

    def wanted() -> bool:
        return any(image.topic(name) is not None for name in (DISKLESS_METADATA, METADATA_TOPIC))

    paced = PacedPass(
        "backup",
        backup,
        clock,
        interval_ms,
        first_ms=interval_ms,
        wanted=wanted,
    )
    background.every(paced.turn_ms, "diskless backup", paced.run)
    return paced


def coordinators_directory(settings: BrokerSettings) -> Path:
    """Where coordinators keep their snapshots."""
    return Path(settings.node.log_dirs[0]).absolute() / COORDINATORS_DIRECTORY
