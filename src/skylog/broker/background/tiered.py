"""What a broker does for tiered storage in the background, beside copying and expiry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from skylog.broker.tiered.pruning import CoordinatorPruner
from skylog.diskless.files.passes import PacedPass
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.objects.holds import read_holds
from skylog.tiered.consolidation.prune import PrunePass
from skylog.tiered.consolidation.read_back import read_back
from skylog.tiered.sweep import MetadataSweep

if TYPE_CHECKING:
    from skylog.broker.assembly.tiered import TieredStorage
    from skylog.broker.background.tasks import Background
    from skylog.broker.services import Services
    from skylog.kernel.stages import Stage

SWEEP_INTERVAL_MS: Final = 60_000


def start_prune(
    services: Services, tiered: TieredStorage, backup: Stage | None, background: Background
) -> PrunePass:
    """Let go of WAL batches that remote segments have, while ``backup`` of this node succeeds."""
    settings, plane = services.settings.tiered, services.diskless.plane
    delay_ms = settings.prune_delay_ms
    pruner = CoordinatorPruner(tiered.consolidating, plane, backup=backup, delay_ms=delay_ms)
    prune = PrunePass(
        tiered.logs,
        pruner,
        partial(read_back, tiered.storage),
        services.clock,
        tiered.counts,
        delay_ms=delay_ms,
    )
    interval_ms = settings.prune_interval_ms
    paced = PacedPass("prune", prune, services.clock, interval_ms, first_ms=interval_ms)
    background.every(paced.turn_ms, "tiered prune", paced.run)
    return prune


def start_sweep(services: Services, tiered: TieredStorage, background: Background) -> MetadataSweep:
    """Complete the deletion of topics whose leaders died over it."""
    image, node_id = services.image, services.settings.node.node_id

    def led() -> Iterator[tuple[int, int]]:
        topic = image.topic(METADATA_TOPIC)
        for index, state in topic.partitions.items() if topic is not None else ():
            if state.leader == node_id:
                yield index, state.leader_epoch

    async def is_held() -> bool:
        return bool(await read_holds(tiered.storage.store))

    grace_ms = services.settings.tiered.orphan_grace_ms
    sweep = MetadataSweep(
        tiered.metadata_topic,
        led,
        lambda topic_id: image.topic_by_id(topic_id) is not None,
        tiered.manager.complete_deletion,
        is_held,
        services.clock,
        grace_ms=grace_ms,
    )
    interval_ms = min(grace_ms, SWEEP_INTERVAL_MS)
    paced = PacedPass("sweep", sweep, services.clock, interval_ms, first_ms=interval_ms)
    background.every(paced.turn_ms, "tiered sweep", paced.run)
    return sweep
