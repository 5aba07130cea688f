"""All remote segments of a partition go: its topic was deleted, or is not remote any more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.tiered.copying import NO_LEADER_EPOCH, NO_LOG_START, Stage, deleting
from skylog.tiered.metadata.records import partition_deleted
from skylog.tiered.segments import PartitionDeleteState

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.sagas import Author, SagaRunner
    from skylog.tiered.segments import TopicIdPartition
    from skylog.tiered.slots import Slots

_log = get_logger("tiered.delete")


@dataclass(frozen=True, slots=True)
class Nobody:
    """The author of records of a topic that is gone: there is no leader epoch any more."""

    leads: bool = True
    leader_epoch: int = NO_LEADER_EPOCH
    log_start_offset: int = NO_LOG_START


class PartitionDeletion:
    """May be repeated, by any broker, from wherever an earlier attempt ended."""

    def __init__(self, runner: SagaRunner, logs: RemoteLogs, system: System, slots: Slots) -> None:
        self._runner = runner
        self._logs = logs
        self._clock = system.clock
        self._slots = slots

    async def of_disabled(self, hosted: Hosted) -> None:
        """In the leader's name: if it is deposed, the next one goes on."""
        await self._delete_all(hosted.partition, hosted.topic, hosted)

    async def of_deleted(self, partition: TopicIdPartition, topic: str) -> None:
        """Raises ``KafkaError`` if the metadata topic cannot be written; then it is repeated."""
        remote = await self._logs.ready(partition)
        if not len(remote) and remote.delete_state is PartitionDeleteState.FINISHED:
            return
        await self._mark(partition, topic, PartitionDeleteState.MARKED)
        await self._mark(partition, topic, PartitionDeleteState.STARTED)
        await self._delete_all(partition, topic, Nobody())
        await self._mark(partition, topic, PartitionDeleteState.FINISHED)

    async def _delete_all(self, partition: TopicIdPartition, topic: str, author: Author) -> None:
        count = 0
        while segments := list((await self._logs.ready(partition)).all()):
            for segment in segments:
                async with self._slots:
                    saga = await self._runner.run(deleting(segment), author, sleep=self._pause)
                if saga.stage is Stage.STOPPED:
                    return
                count += 1
        _log.info(
            "remote segments deleted",
            topic=topic,
            partition=partition.partition_index,
            count=count,
        )

    async def _pause(self, seconds: float) -> None:
        await self._slots.let_go(asyncio.sleep(seconds))

    async def _mark(
        self, partition: TopicIdPartition, topic: str, state: PartitionDeleteState
    ) -> None:
        remote = self._logs.get(partition)
        if remote is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{topic} is not followed any more")
        if remote.delete_state is not None and remote.delete_state >= state:
            return
        record = partition_deleted(
            topic,
            partition,
            state,
            broker_id=self._runner.node_id,
            now_ms=self._clock.now_ms(),
        )
        await self._logs.publish(partition, record)
