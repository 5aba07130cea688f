"""The coordinators of consolidated partitions, and what speaks against letting go of their WAL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode
from skylog.tiered.consolidation.prune import Extent

if TYPE_CHECKING:
    from skylog.broker.tiered.assembly_source import AssemblySource
    from skylog.broker.tiered.consolidating import ConsolidatingPartitions
    from skylog.diskless.plane import ControlPlane, LogInfo
    from skylog.kernel.stages import Stage
    from skylog.tiered.segments import TopicIdPartition


class CoordinatorPruner:
    """Fills ``tiered.consolidation.prune.Pruner``. What it learns on the way is told to the
    sources: expiry goes by it."""

    def __init__(
        self,
        partitions: ConsolidatingPartitions,
        plane: ControlPlane,
        *,
        backup: Stage | None,
        delay_ms: int,
    ) -> None:
        """``backup`` of this node; None if it makes none."""
        self._partitions = partitions
        self._plane = plane
        self._backup = backup
        self._delay = delay_ms / 1000

    def led(self) -> Iterable[AssemblySource]:
        return self._partitions.led()

    def obstacle(self) -> str | None:
        """A backup older than the delay may know neither the segments nor that their records were
        ever committed."""
        if self._backup is None or self._backup.age_seconds <= self._delay:
            return None
        return "the backup of this node has not succeeded for diskless.tiering.prune.delay.ms"

    async def extents(self, partitions: Sequence[TopicIdPartition]) -> Sequence[Extent | None]:
        infos = await self._plane.log_info(partitions)
        return [
            self._learnt(partition, info) if info.error is ErrorCode.NONE else None
            for partition, info in zip(partitions, infos, strict=True)
        ]

    async def prune_to(
        self, targets: Sequence[tuple[TopicIdPartition, int]]
    ) -> Sequence[ErrorCode]:
        results = await self._plane.prune_to([(*key, offset) for key, offset in targets])
        for (partition, _), result in zip(targets, results, strict=True):
            source = self._partitions.get(partition)
            if source is not None and result.error is ErrorCode.NONE:
                # From now on expiry may have to see to retention.
                source.pruned(result.wal_start_offset)
        return [result.error for result in results]

    def _learnt(self, partition: TopicIdPartition, info: LogInfo) -> Extent:
        source = self._partitions.get(partition)
        if source is not None:
            source.learn(info)
        return Extent(info.wal_start_offset, info.high_watermark)
