"""The scan for orphans of remote segments, on one broker of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.broker.tiered.registry import ClusterRegistry
from skylog.diskless.files.passes import Breather, PacedPass
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.objects.claim import BucketClaim
from skylog.tiered.orphans import OrphanScanner

if TYPE_CHECKING:
    from skylog.broker.assembly.tiered import TieredStorage
    from skylog.broker.background.tasks import Background
    from skylog.broker.services import Services
    from skylog.kernel.settings.tiered import TieredSettings


class CountedScan:
    """A pass that adds to the broker's totals."""

    def __init__(self, scanner: OrphanScanner, tiered: TieredStorage) -> None:
        self._scanner = scanner
        self._counts = tiered.counts

    async def run_once(self) -> None:
        with self._counts.orphans.run():
            try:
                await self._scanner.run_once()
            finally:
                self._counts.orphans_deleted = self._scanner.stats.deleted


def open_scanner(services: Services, settings: TieredSettings) -> OrphanScanner | None:
    """None without tiered storage."""
    tiered = services.tiered
    if tiered is None:
        return None
    registry = ClusterRegistry(
        services.settings.node.node_id,
        services.image,
        services.replicas,
        tiered.logs,
        services.peers,
        services.diskless.plane,
    )
    return OrphanScanner(
        BucketClaim(tiered.storage.store, services.cluster_id, "tiered.storage.url"),
        registry,
        services.clock,
        grace_ms=settings.orphan_grace_ms,
        rests=lambda: Breather(services.clock).rest,
    )


def start_orphan_scan(
    services: Services, settings: TieredSettings, background: Background
) -> PacedPass | None:
    """Scan repeatedly, on the broker that leads the first partition of the metadata topic."""
    scanner, tiered = open_scanner(services, settings), services.tiered
    if scanner is None or tiered is None:
        return None
    interval_ms = settings.orphan_interval_ms
    paced = PacedPass(
        "tiered orphans",
        CountedScan(scanner, tiered),
        services.clock,
        interval_ms,
        # Not a whole day after each start: a node that is restarted daily would never scan.
        first_ms=min(interval_ms, settings.orphan_grace_ms),
        wanted=lambda: _leads(services),
    )
    background.every(paced.turn_ms, paced.name, paced.run)
    return paced


def _leads(services: Services) -> bool:
    replica = services.replicas.get(METADATA_TOPIC, 0)
    return replica is not None and replica.is_leader
