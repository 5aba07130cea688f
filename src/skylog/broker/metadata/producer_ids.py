"""Producer ids, handed out from blocks that the controller allocates."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.waiting import end_tasks
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from skylog.broker.metadata.controller_channel import ControllerChannel
    from skylog.broker.metadata.lifecycle import Lifecycle


class ProducerIds:
    """One block at a time; callers that find it empty share the request for the next one.

    They do not wait for long: if this broker cannot reach the controller, another may have ids.
    """

    def __init__(self, lifecycle: Lifecycle, controller: ControllerChannel) -> None:
        self._lifecycle = lifecycle
        self._controller = controller
        self._next = 0
        self._end = 0
        self._asking: asyncio.Task[None] | None = None

    async def next(self) -> int:
        """An id that is unique in the cluster."""
        try:
            async with asyncio.timeout(limits.PRODUCER_IDS_WAIT_SECONDS_MAX):
                while self._next == self._end:
                    await asyncio.shield(self._asked())
        except TimeoutError:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def close(self) -> None:
        if self._asking is not None:
            await end_tasks([self._asking])

    def _asked(self) -> asyncio.Task[None]:
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._allocate())
            self._asking.add_done_callback(self._answered)
        return self._asking

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # waiting callers are woken

    async def _allocate(self) -> None:
        request = AllocateProducerIdsRequest(self._lifecycle.node_id, self._lifecycle.broker_epoch)
        try:
            response = await self._controller.submit(request, 0)
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
        if response.error_code or response.producer_id_len <= 0:
            # Clients retry after this code, and by then there will be a block.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
