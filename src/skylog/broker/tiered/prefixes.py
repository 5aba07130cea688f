"""The remote logs of diskless partitions on any broker, whether it has a replica of them or not.

A replica follows the metadata topic. Any other broker asks one for the finished segments, with API
512, when it is to read some of them, and keeps the answer: a segment that is finished can be read
for as long as the log start, which the coordinator knows, has not passed it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    REMOTE_PREFIX_ASK_AGAIN_SECONDS,
    REMOTE_PREFIX_FAILURES_MAX,
    REMOTE_PREFIX_LEARN_SECONDS_MAX,
    REMOTE_PREFIX_SEGMENTS_MAX,
    REMOTE_SEGMENTS_DESCRIBED_MAX,
)
from skylog.kernel.waiting import end_tasks
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.segments import RemoteSegment, SegmentState
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from skylog.broker.net.peers import BrokerPeers
    from skylog.controller.image import ClusterImage
    from skylog.kernel.clock import Clock
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.segments import TopicIdPartition
    from skylog.wire.messages.describe_remote_log_response import DescribedRemoteSegment

_LANE: Final = "remote-log-prefixes"


class TieredPrefixes:
    """Fills ``tiered.ports.KnownLogs``. All calls come from the event loop."""

    def __init__(
        self,
        logs: RemoteLogs,
        image: ClusterImage,
        peers: BrokerPeers,
        node_id: int,
        clock: Clock,
        *,
        segments_max: int = REMOTE_PREFIX_SEGMENTS_MAX,
    ) -> None:
        self._logs = logs
        self._image = image
        self._peers = peers
        self._node_id = node_id
        self._clock = clock
        self._segments_max = segments_max
        # What others told, least recently used first, and how many segments that is.
        self._told: OrderedDict[TopicIdPartition, RemoteLog] = OrderedDict()
        self._segments = 0
        # When replicas were asked in vain.
        self._failed: dict[TopicIdPartition, float] = {}
        self._asking: dict[TopicIdPartition, asyncio.Task[RemoteLog]] = {}
        self._waiting: dict[TopicIdPartition, set[asyncio.Future[None]]] = {}
        logs.on_change(self._wake)

    # -- what is known -------------------------------------------------------------------------

    def known(self, partition: TopicIdPartition) -> RemoteLog | None:
        """As far as this broker knows it; None if it has to be learnt."""
        found = self._logs.get(partition)
        if found is None and partition in self._told:
            self._told.move_to_end(partition)
            return self._told[partition]
        return found

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.known(partition)

    def forget(self, partition: TopicIdPartition) -> None:
        """What another broker told is wrong: it is asked again when it is needed."""
        told = self._told.pop(partition, None)
        if told is not None:
            self._segments -= len(told)

    # -- waiting -------------------------------------------------------------------------------

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        return self.known(partition) or await self.learn(partition)

    async def learn(self, partition: TopicIdPartition) -> RemoteLog:
        """As a replica knows it now. REPLICA_NOT_AVAILABLE if none of them tells."""
        return await asyncio.shield(self._ask(partition))

    async def reaching(
        self, partition: TopicIdPartition, has: Callable[[RemoteLog], bool], seconds: float
    ) -> RemoteLog | None:
        """The remote log as soon as it ``has`` what is missing; None if that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                if (found := self._logs.get(partition)) is not None:
                    while not has(found):
                        await self._changed(partition)
                        found = await self._logs.ready(partition)
                    return found
                found = await self.learn(partition)
                return found if has(found) else None
        except TimeoutError:
            return None
        except KafkaError as error:
            if error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise
            return None

    def learn_soon(self, partition: TopicIdPartition) -> None:
        """Ask for it, for reads to come; not again and again if nobody tells."""
        since = self._clock.monotonic() - self._failed.get(partition, -inf)
        if self._logs.get(partition) is None and since >= REMOTE_PREFIX_ASK_AGAIN_SECONDS:
            self._ask(partition)

    async def close(self) -> None:
        await end_tasks(self._asking.values())

    async def _changed(self, partition: TopicIdPartition) -> None:
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(partition, set())
        waiting.add(waits)
        try:
            await waits
        finally:
            waiting.discard(waits)
            if not waiting and self._waiting.get(partition) is waiting:
                del self._waiting[partition]

    def _wake(self, partition: TopicIdPartition) -> None:
        for waits in self._waiting.pop(partition, ()):
            if not waits.done():
                waits.set_result(None)

    # -- asking --------------------------------------------------------------------------------

    def _ask(self, partition: TopicIdPartition) -> asyncio.Task[RemoteLog]:
        task = self._asking.get(partition)
        if task is None:
            task = asyncio.ensure_future(self._learn(partition))
            self._asking[partition] = task
            task.add_done_callback(partial(self._ended, partition))
        return task

    def _ended(self, partition: TopicIdPartition, task: asyncio.Task[RemoteLog]) -> None:
        self._asking.pop(partition, None)
        # Whoever asked may be gone.
        if task.cancelled() or task.exception() is None:
            self._failed.pop(partition, None)
            return
        if len(self._failed) >= REMOTE_PREFIX_FAILURES_MAX:
            self._failed.clear()
        self._failed[partition] = self._clock.monotonic()

    async def _learn(self, partition: TopicIdPartition) -> RemoteLog:
        try:
            return await self._logs.ready(partition)
        except KafkaError as error:
            if error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise
        why = "no replica is known"
        for node_id in self._replicas(partition):
            try:
                async with asyncio.timeout(REMOTE_PREFIX_LEARN_SECONDS_MAX):
                    return self._keep(partition, await self._told_by(node_id, partition))
            except (KafkaError, TimeoutError) as error:
                why = f"broker {node_id}: {error}"
        raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"the remote log of {partition}: {why}")

    def _replicas(self, partition: TopicIdPartition) -> Iterator[int]:
        """The leader first: it is never behind."""
        topic = self._image.topic_by_id(partition.topic_id)
        state = None if topic is None else topic.partitions.get(partition.partition_index)
        if state is None:
            return
        for node_id in dict.fromkeys((state.leader, *state.isr, *state.replicas)):
            if node_id != self._node_id and self._image.is_alive(node_id):
                yield node_id

    async def _told_by(self, node_id: int, partition: TopicIdPartition) -> RemoteLog:
        request = DescribeRemoteLogRequest(
            topic_id=partition.topic_id,
            partition_index=partition.partition_index,
            limit=REMOTE_SEGMENTS_DESCRIBED_MAX,
            finished_only=True,
        )
        found: RemoteLog | None = None
        while True:
            page = await self._peers.send(node_id, request, lane=_LANE)
            if page.error_code:
                raise KafkaError(ErrorCode(page.error_code), page.error_message)
            if found is None:
                found = RemoteLog(partition, page.topic)
            for told in page.segments:
                _add(found, told)
            if not page.has_more or not page.segments:
                return found
            request.start_offset = page.segments[-1].start_offset
            request.after_segment_id = page.segments[-1].segment_id

    def _keep(self, partition: TopicIdPartition, log: RemoteLog) -> RemoteLog:
        self.forget(partition)
        self._told[partition] = log
        self._segments += len(log)
        while self._segments > self._segments_max and len(self._told) > 1:
            self.forget(next(iter(self._told)))
        return log


def _add(log: RemoteLog, told: DescribedRemoteSegment) -> None:
    """One more finished segment, by the records that say so: what cannot be one is left out."""
    segment = RemoteSegment(
        topic=log.topic,
        partition=log.partition,
        id=told.segment_id,
        start_offset=told.start_offset,
        end_offset=told.end_offset,
        broker_id=told.broker_id,
        max_timestamp_ms=told.max_timestamp_ms,
        event_timestamp_ms=told.event_timestamp_ms,
        epochs=tuple((entry.leader_epoch, entry.offset) for entry in told.segment_leader_epochs),
        size=told.segment_size_in_bytes,
        custom_metadata=told.custom_metadata,
        txn_index_empty=told.txn_index_empty,
    )
    if told.remote_log_segment_state != SegmentState.COPY_FINISHED:
        return
    log.apply(segment_started(segment), log.next_offset)
    finished = segment_updated(
        segment,
        SegmentState.COPY_FINISHED,
        broker_id=told.broker_id,
        now_ms=told.event_timestamp_ms,
    )
    log.apply(finished, log.next_offset)
