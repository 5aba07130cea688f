"""What a broker does for its diskless topics unasked: retention, cleaning, orphans, backups.

Each coordinator's files and records are the business of the broker that leads it; without
coordinators, a partition's records are its leader's. What is there but once in a cluster, the scan
of the store and the files of a plane without coordinators, is done by the *caretaker*: the leader
of the first coordinator, or the first broker that is alive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skylog.broker.background.backup import start_backup
from skylog.diskless.files.claim import BucketClaim
from skylog.diskless.files.cleaner import FileCleaner
from skylog.diskless.files.orphans import OrphanScanner
from skylog.diskless.files.passes import PacedPass
from skylog.diskless.files.retention import RetentionPass, RetentionRequest
from skylog.diskless.files.topics import TopicSweep
from skylog.kernel.topics import DISKLESS_METADATA

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.background.tasks import Background
    from skylog.broker.metadata.configs import Configs
    from skylog.controller.image import ClusterImage
    from skylog.controller.image.topics import Partition
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
    def settings(self) -> BrokerSettings: ...

    @property
    def cluster_id(self) -> str: ...

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
    engine, clock, node_id = parts.diskless, parts.clock, parts.settings.node.node_id
    by_topic = settings.control_plane == "topic"

    def is_mine(state: Partition) -> bool:
        if by_topic:
            return state.diskless_coordinator in engine.coordinators.led()
        return state.leader == node_id

    retention = RetentionPass(
        engine.plane,
        lambda: retention_limits(parts.image, parts.configs, is_mine),
        clock,
        batches_max=settings.retention_batches,
    )
    cleaner = FileCleaner(engine.plane, engine.store, clock, grace_ms=settings.grace_ms)
    orphans = OrphanScanner(
        engine.plane,
        BucketClaim(engine.store, parts.cluster_id),
        clock,
        grace_ms=settings.grace_ms,
        all_coordinators=lambda: reaches_all_coordinators(parts.image, settings),
    )
    maintenance = Maintenance(retention, cleaner, orphans, backup, [])

    def has_diskless_topics() -> bool:
        return parts.image.topic(DISKLESS_METADATA) is not None

    def takes_care() -> bool:
        return has_diskless_topics() and is_caretaker(parts.image, node_id, by_topic=by_topic)

    # Coordinators that lead elsewhere have no work here.
    own = has_diskless_topics if by_topic else takes_care

    def every(
        interval_ms: int, name: str, work: Pass, first_ms: int, wanted: Callable[[], bool] = own
    ) -> None:
        paced = PacedPass(name, work, clock, interval_ms, first_ms=first_ms, wanted=wanted)
        maintenance.passes.append(paced)
        background.every(paced.turn_ms, f"diskless {name}", paced.run)

    interval_ms = settings.retention_interval_ms
    every(interval_ms, "retention", retention, interval_ms, has_diskless_topics)
    every(settings.cleaner_interval_ms, "cleaner", cleaner, settings.cleaner_interval_ms)
    if settings.control_plane != "memory":
        # A plane in memory forgets with its process: what it does not know may be anybody's.
        interval_ms = settings.orphan_interval_ms
        # Not a whole day after each start, or a node that is restarted daily would never scan.
        first_ms = min(interval_ms, settings.grace_ms)
        every(interval_ms, "orphans", orphans, first_ms, takes_care)
    topics = TopicSweep(
        engine.plane,
        lambda topic_id: parts.image.topic_by_id(topic_id) is not None,
        clock,
        grace_ms=settings.grace_ms,
    )
    every(settings.cleaner_interval_ms, "topics", topics, settings.cleaner_interval_ms)
    if backup is not None:
        paced = start_backup(backup, parts.image, clock, settings.backup_interval_ms, background)
        maintenance.passes.append(paced)
    if engine.local is not None:
        filler = engine.local.filler
        background.every(FILLER_RESTART_MS, "diskless local segments", filler.run, first_ms=0)
    return maintenance


def retention_limits(
    image: ClusterImage, configs: Configs, is_mine: Callable[[Partition], bool]
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
                if state.writes_diskless and is_mine(state)
            ]
    return limits


def is_caretaker(image: ClusterImage, node_id: int, *, by_topic: bool) -> bool:
    """Whether this broker does what one broker of a cluster does for all."""
    if by_topic:
        first = image.partition(DISKLESS_METADATA, 0)
        return first is not None and first.leader == node_id
    alive = [number for number, broker in image.brokers.by_id.items() if not broker.fenced]
    return not alive or min(alive) == node_id


def reaches_all_coordinators(image: ClusterImage, settings: DisklessSettings) -> bool:
    """Whether every coordinator that may know a file has a leader who can be asked."""
    if settings.control_plane != "topic":
        return True
    topic = image.topic(DISKLESS_METADATA)
    return topic is not None and all(state.leader >= 0 for state in topic.partitions.values())
