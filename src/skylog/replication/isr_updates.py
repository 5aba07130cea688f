"""Requests ISR changes from the controller: one request at a time, with all pending changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.replication.leader import IsrAnswer, IsrChange
from skylog.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.alter_partition_response import AlterPartitionResponse

if TYPE_CHECKING:
    from skylog.kernel.ids import Uuid
    from skylog.replication.partition import Partition
    from skylog.wire.schema import Message

log = get_logger("replication.isr")
VERSION: Final = 3
RETRY_SECONDS: Final = 0.05


class Controller(Protocol):
    """Sends requests to the controller."""

    async def submit(self, request: Message, version: int) -> Any: ...


class IsrUpdates:
    """Changes that await the controller's response. All calls come from the event loop."""

    def __init__(
        self, node_id: int, broker_epoch: Callable[[], int], controller: Controller
    ) -> None:
        self._node_id = node_id
        self.broker_epoch = broker_epoch
        self._controller = controller
        self._waiting: dict[Partition, IsrChange] = {}
        self._task: asyncio.Task[None] | None = None
        # Totals since the start, for metrics.
        self.expands = self.shrinks = self.failed = 0

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Request a change; ``partition.isr_answered`` gets the result."""
        self._waiting[partition] = change
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            await end_tasks([self._task])

    async def _run(self) -> None:
        while self._waiting:
            sent, self._waiting = self._waiting, {}
            # Newer metadata may have superseded the request.
            sent = {p: c for p, c in sent.items() if p.leader is not None and p.leader.pending is c}
            if sent and not await self._send(sent):
                await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, sent: dict[Partition, IsrChange]) -> bool:
        """False if some must be requested again, after a pause."""
        try:
            response = await self._controller.submit(self._request(sent), VERSION)
            code = ErrorCode(response.error_code)
        except KafkaError as error:
            code = error.code
        except Exception:
            log.exception("request to the controller failed")
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        if code is not ErrorCode.NONE:
            log.debug("ISR not changed yet", error=code.name)
            self.failed += len(sent)
            self._repeat(sent)
            return False
        answers = _answers(response)
        again = {}
        for partition, change in sent.items():
            answer = answers.get((partition.topic_id, partition.index))
            if answer is not None and self._answered(partition, change, answer):
                again[partition] = change
        self._repeat(again)
        return not again

    def _answered(
        self, partition: Partition, change: IsrChange, answer: IsrAnswer | ErrorCode
    ) -> bool:
        before = partition.isr
        again = partition.isr_answered(change, answer)
        if isinstance(answer, ErrorCode):
            self.failed += 1
            log.debug("ISR change refused", partition=str(partition), error=answer.name)
            return again
        self.expands += change.added is not None
        self.shrinks += bool(change.removed)
        log.info(
            "ISR changed",
            partition=str(partition),
            before=list(before),
            now=list(answer.isr),
            high_watermark=partition.log.high_watermark,
            end_offset=partition.log.log_end_offset,
        )
        return again

    def _repeat(self, changes: dict[Partition, IsrChange]) -> None:
        for partition, change in changes.items():
            self._waiting.setdefault(partition, change)

    def _request(self, changes: dict[Partition, IsrChange]) -> AlterPartitionRequest:
        topics: dict[Uuid, TopicData] = {}
        for partition, change in changes.items():
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = TopicData(partition.topic_id)
            topic.partitions.append(
                PartitionData(
                    partition_index=partition.index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=[BrokerState(*member) for member in change.isr],
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(self._node_id, self.broker_epoch(), list(topics.values()))


def _answers(
    response: AlterPartitionResponse,
) -> dict[tuple[Uuid, int], IsrAnswer | ErrorCode]:
    found: dict[tuple[Uuid, int], IsrAnswer | ErrorCode] = {}
    for topic in response.topics:
        for data in topic.partitions:
            key = topic.topic_id, data.partition_index
            if data.error_code:
                found[key] = ErrorCode(data.error_code)
            else:
                found[key] = IsrAnswer(data.leader_epoch, data.partition_epoch, tuple(data.isr))
    return found
