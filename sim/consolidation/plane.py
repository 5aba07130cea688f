"""The coordinator as one broker reaches it: the real rules behind requests that may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sim.consolidation.requests import Request, at_once
from skylog.diskless.plane import (
    DeleteRecordsResult,
    FindRequest,
    FindResult,
    HighWatermarkListener,
    LogInfo,
    PruneResult,
    TopicPartition,
    Unsubscribe,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

if TYPE_CHECKING:
    from sim.consolidation.broker import SimBroker


class BrokerPlane:
    """What consolidation uses of ``ControlPlane``."""

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._plane = broker.world.plane

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        found: list[LogInfo] = await self._ask(
            "log info", lambda: at_once(self._plane.log_info(partitions))
        )
        return found

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        limits = fetch_max_bytes, max_batches_per_partition
        found: list[FindResult] = await self._ask(
            "find", lambda: at_once(self._plane.find_batches(requests, *limits))
        )
        return found

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        found: list[DeleteRecordsResult] = await self._ask(
            "move start", lambda: at_once(self._plane.delete_records(requests))
        )
        return found

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        world, broker = self._broker.world, self._broker

        def act() -> list[PruneResult]:
            return world.prune(broker.node_id, requests)

        found: list[PruneResult] = await self._ask("prune", act)
        return found

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._broker.watch(listener)

    async def _ask(self, name: str, act: Any) -> Any:
        lost = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        unclear = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
        return await self._broker.ask(Request(self._broker, name, act, lost, unclear))
