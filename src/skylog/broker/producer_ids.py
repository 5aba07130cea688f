"""Producer ids, handed out from blocks that the controller allots."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from skylog.broker.controller_channel import ControllerChannel
    from skylog.broker.lifecycle import Lifecycle


class ProducerIds:
    """One block at a time; whoever finds it empty waits for the next one with all others."""

    def __init__(self, lifecycle: Lifecycle, controller: ControllerChannel) -> None:
        self._lifecycle = lifecycle
        self._controller = controller
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id that nobody else in the cluster has."""
        async with self._lock:
            if self._next == self._end:
                await self._allocate()
            producer_id = self._next
            self._next += 1
            return producer_id

    async def _allocate(self) -> None:
        request = AllocateProducerIdsRequest(self._lifecycle.node_id, self._lifecycle.broker_epoch)
        try:
            response = await self._controller.submit(request, 0)
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
        if response.error_code or response.producer_id_len <= 0:
            # Clients try again after this code, and by then there will be a block.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
