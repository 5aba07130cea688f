"""What a broker does for its diskless topics unasked: retention, cleaning, orphans, backups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skylog.diskless.files.claim import BucketClaim
from skylog.diskless.files.cleaner import FileCleaner
from skylog.diskless.files.orphans import OrphanScanner
from skylog.diskless.files.passes import PacedPass
from skylog.diskless.files.retention import RetentionPass, RetentionRequest
from skylog.diskless.files.topics import TopicSweep
from skylog.kernel.topics import DISKLESS_METADATA

if TYPE_CHECKING:
    from skylog.broker.background import Background
    from skylog.broker.configs import Configs
    from skylog.broker.diskless import DisklessEngine
    from skylog.controller.image import ClusterImage
    from skylog.diskless.files.backup import MetadataBackup
    from skylog.diskless.files.passes import Pass
    from skylog.kernel.clock import Clock
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.settings.diskless import DisklessSettings

# The filler runs on and on; should it fail, it begins anew.
FILLER_RESTART_MS: Final = 1_000


class Parts(Protocol):
    """The parts of a broker that maintenance needs; ``services.Services`` has them."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def settings(self) -> BrokerSettings: ...

    @property
    def image(self) -> ClusterImage: ...

    @property
    def configs(self) -> Configs: ...

    @property
    def diskless(self) -> DisklessEngine: ...

    @property
    def clock(self) -> Clock: ...


@dataclass(slots=True)
class Maintenance:
    """The passes, for those who show what became of them."""

    retention: RetentionPass
    cleaner: FileCleaner
    orphans: OrphanScanner
    backup: MetadataBackup | None
    passes: list[PacedPass]


def start_maintenance(
    parts: Parts,
    settings: DisklessSettings,
    background: Background,
    backup: MetadataBackup | None,
) -> Maintenance:
    """Start all passes; a cluster without diskless topics has none of their work."""
    engine, clock = parts.diskless, parts.clock
    retention = RetentionPass(
        engine.plane,
        lambda: retention_limits(parts.image, parts.configs, parts.settings.node.node_id),
        clock,
        batches_max=settings.retention_batches,
    )
    cleaner = FileCleaner(engine.plane, engine.store, clock, grace_ms=settings.grace_ms)
    orphans = OrphanScanner(
        engine.plane,
        BucketClaim(engine.store, parts.cluster_id),
        clock,
        grace_ms=settings.grace_ms,
        all_coordinators=lambda: reaches_all_coordinators(parts.image, engine, settings),
    )
    maintenance = Maintenance(retention, cleaner, orphans, backup, [])

    def has_diskless_topics() -> bool:
        return parts.image.topic(DISKLESS_METADATA) is not None

    def every(interval_ms: int, name: str, work: Pass, first_ms: int) -> None:
        paced = PacedPass(
            name, work, clock, interval_ms, first_ms=first_ms, wanted=has_diskless_topics
        )
        maintenance.passes.append(paced)
        background.every(paced.turn_ms, f"diskless {name}", paced.run)

    interval_ms = settings.retention_interval_ms
    every(interval_ms, "retention", retention, interval_ms)
    every(settings.cleaner_interval_ms, "cleaner", cleaner, settings.cleaner_interval_ms)
    if settings.control_plane != "memory":
        # A plane in memory forgets with its process: what it does not know may be anybody's.
        interval_ms = settings.orphan_interval_ms
        # Not a whole day after each start, or a node that is restarted daily would never scan.
        every(interval_ms, "orphans", orphans, min(interval_ms, settings.grace_ms))
    topics = TopicSweep(
        engine.plane,
        lambda topic_id: parts.image.topic_by_id(topic_id) is not None,
        clock,
        grace_ms=settings.grace_ms,
    )
    interval_ms = settings.cleaner_interval_ms
    every(interval_ms, "topics", topics, interval_ms)
    if backup is not None:
        interval_ms = settings.backup_interval_ms
        every(interval_ms, "backup", backup, interval_ms)
    if engine.local is not None:
        filler = engine.local.filler
        background.every(FILLER_RESTART_MS, "diskless local segments", filler.run, first_ms=0)
    return maintenance


def retention_limits(image: ClusterImage, configs: Configs, node_id: int) -> list[RetentionRequest]:
    """The diskless partitions that this node leads and whose records go by age or size.

    Any broker could do it; the leader does, so that there is one at a time and everybody knows who.
    """
    limits = []
    for name in image.topic_names():
        topic = image.topic(name)
        if topic is None or not any(state.is_diskless for state in topic.partitions.values()):
            continue
        config = configs.log_config(name)
        if config.deletes:
            limits += [
                (topic.topic_id, index, config.retention_bytes, config.retention_ms)
                for index, state in topic.partitions.items()
                if state.leader == node_id
            ]
    return limits


def reaches_all_coordinators(
    image: ClusterImage, engine: DisklessEngine, settings: DisklessSettings
) -> bool:
    """Whether no coordinator that may know a file is anywhere but here."""
    if settings.control_plane != "topic":
        return True
    topic = image.topic(DISKLESS_METADATA)
    return topic is not None and engine.coordinators.led() == sorted(topic.partitions)
