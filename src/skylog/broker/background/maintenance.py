"""What a broker does for its diskless topics in the background: retention, cleaning, orphans,
backups.

The control plane says which of it is this broker's duty (``diskless/duties.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.broker.background.backup import start_backup
from skylog.broker.background.orphans import start_orphan_scan
from skylog.broker.background.tiered import start_prune
from skylog.diskless.files.cleaner import FileCleaner
from skylog.diskless.files.orphans import OrphanScanner
from skylog.diskless.files.passes import PacedPass
from skylog.diskless.files.retention import RetentionPass, RetentionRequest
from skylog.diskless.files.topics import TopicSweep
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.claim import BucketClaim

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Background
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.services import Services
    from skylog.controller.image import ClusterImage
    from skylog.diskless.files.backup import MetadataBackup
    from skylog.diskless.files.passes import Pass
    from skylog.diskless.plane import TopicPartition
    from skylog.kernel.settings.diskless import DisklessSettings

# The filler runs for ever; if it fails, it is restarted.
FILLER_RESTART_MS: Final = 1_000


@dataclass(slots=True)
class Maintenance:
    """The passes, for the collectors that report on them."""

    retention: RetentionPass
    cleaner: FileCleaner
    orphans: OrphanScanner
    backup: MetadataBackup | None
    passes: list[PacedPass]


def start_maintenance(
    services: Services,
    settings: DisklessSettings,
    background: Background,
    backup: MetadataBackup | None,
) -> Maintenance:
    """Start all passes; a cluster without diskless topics has none of their work."""
    engine, plane, clock = services.diskless, services.diskless.plane, services.clock
    retention = RetentionPass(
        plane,
        lambda: retention_limits(services.image, services.configs, plane.owns),
        clock,
        batches_max=settings.retention_batches,
    )
    cleaner = FileCleaner(plane, engine.store, clock, grace_ms=settings.grace_ms)
    claim = BucketClaim(engine.store, services.cluster_id)
    orphans = OrphanScanner(plane, claim, clock, grace_ms=settings.grace_ms)
    maintenance = Maintenance(retention, cleaner, orphans, backup, [])

    def has_diskless_topics() -> bool:
        return services.image.topic(DISKLESS_METADATA) is not None

    def every(
        interval_ms: int, name: str, work: Pass, first_ms: int, mine: Callable[[], bool]
    ) -> None:
        def wanted() -> bool:
            return has_diskless_topics() and mine()

        paced = PacedPass(name, work, clock, interval_ms, first_ms=first_ms, wanted=wanted)
        maintenance.passes.append(paced)
        background.every(paced.turn_ms, f"diskless {name}", paced.run)

    interval_ms = settings.retention_interval_ms
    # It asks for each partition whether this broker is responsible.
    every(interval_ms, "retention", retention, interval_ms, lambda: True)
    interval_ms = settings.cleaner_interval_ms
    every(interval_ms, "cleaner", cleaner, interval_ms, plane.owns_files)
    if plane.is_durable:
        interval_ms = settings.orphan_interval_ms
        # Not a whole day after each start: a node that is restarted daily would never scan.
        first_ms = min(interval_ms, settings.grace_ms)
        every(interval_ms, "orphans", orphans, first_ms, plane.is_caretaker)
    topics = TopicSweep(
        plane,
        lambda topic_id: services.image.topic_by_id(topic_id) is not None,
        clock,
        grace_ms=settings.grace_ms,
    )
    interval_ms = settings.cleaner_interval_ms
    every(interval_ms, "topics", topics, interval_ms, plane.owns_files)
    backed_up = None
    if backup is not None:
        paced = start_backup(backup, services.image, clock, settings.backup_interval_ms, background)
        maintenance.passes.append(paced)
        backed_up = paced.stage
    if services.tiered is not None:
        start_prune(services, services.tiered, backed_up, background)
    if engine.local is not None:
        filler = engine.local.filler
        background.every(FILLER_RESTART_MS, "diskless local segments", filler.run, first_ms=0)
    start_orphan_scan(services, services.configs.current.tiered, background)
    return maintenance


def retention_limits(
    image: ClusterImage, configs: Configs, owns: Callable[[TopicPartition], bool]
) -> list[RetentionRequest]:
    """The partitions of diskless topics whose records this broker deletes by age or size."""
    limits = []
    for name in image.topic_names():
        topic = image.topic(name)
        if topic is None or not topic.diskless_enabled:
            continue
        config = configs.log_config(name)
        if config.deletes:
            limits += [
                (topic.topic_id, index, config.retention_bytes, config.retention_ms)
                for index, state in topic.partitions.items()
                if state.writes_diskless and owns((topic.topic_id, index))
            ]
    return limits
