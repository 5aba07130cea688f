"""The metadata topic as one broker reads it: behind the others, and with lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.consolidation.requests import Request
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.ports import Published
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.metadata_records import encode_remote_log
from skylog.wire.schema import Message

if TYPE_CHECKING:
    from sim.consolidation.broker import SimBroker


class SimRemoteLogs:
    """Implements ``tiered.ports.RemoteLogs`` for one partition."""

    def __init__(
        self, broker: SimBroker, partition: TopicIdPartition, topic: str, saved: Any
    ) -> None:
        self._broker = broker
        self._topic = broker.world.topic
        self._names = partition, topic
        self.remote = RemoteLog(*self._names) if saved is None else RemoteLog.restored(*saved)
        if self.remote.next_offset > self._topic.committed:
            self.remote = RemoteLog(*self._names)
        self.applied = self.remote.next_offset
        self._target = self._topic.committed
        self._life = self._topic.life
        self._outcomes: dict[int, Outcome] = {}
        self._listeners: list[Callable[[TopicIdPartition], None]] = []
        self._waiting: list[asyncio.Future[None]] = []
        # States of segments that this process has read.
        self.read_back: set[tuple[bytes, int]] = set()

    def read(self, count: int) -> bool:
        """Apply records; False if there are none."""
        topic, noted = self._topic, self._broker.world.noted
        was_ready = self.is_ready
        if self.applied > topic.committed:
            self.remote, self.applied = RemoteLog(*self._names), 0
            self._target = topic.committed
            self._outcomes.clear()
        end = min(self.applied + count, topic.committed)
        if (end, was_ready, topic.life) == (self.applied, self.is_ready, self._life):
            return False
        self._life = topic.life
        for offset in range(self.applied, end):
            record = topic.record(offset)
            outcome = self._outcomes[offset] = self.remote.apply(record, offset)
            if outcome is Outcome.EFFECTIVE:
                id_ = bytes(record.remote_log_segment_id.id)
                self.read_back.add((id_, record.remote_log_segment_state))
            noted[f"record {outcome.value}"] += 1
        self.applied = end
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()
        if self.is_ready:
            for listener in self._listeners:
                self._broker.loop.call_soon(listener, self._names[0])
        return True

    def saved(self) -> Any:
        head, segments = self.remote.snapshot()
        head.metadata_offset = self.applied
        return head, segments

    @property
    def is_ready(self) -> bool:
        return self.applied >= self._target

    async def _more(self) -> None:
        future = self._broker.loop.create_future()
        self._waiting.append(future)
        await future

    # --- RemoteLogs ---------------------------------------------------------------------------

    def follow(self, partition: TopicIdPartition, topic: str) -> None: ...

    def unfollow(self, partition: TopicIdPartition) -> None: ...

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        self._listeners.append(listener)

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.remote if self.is_ready else None

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        while not self.is_ready:
            await self._more()
        return self.remote

    async def caught_up(self, partition: TopicIdPartition) -> RemoteLog:
        self._target = max(self._target, self._topic.committed)
        return await self.ready(partition)

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        topic, value = self._topic, encode_remote_log(record)
        unclear = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
        lost = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        state = int(getattr(record, "remote_log_segment_state", -1))
        self._broker.check_epoch(getattr(record, "copier_epoch", -1))
        request = Request(
            self._broker,
            f"publish {state}",
            lambda: (topic.life, topic.append(value)),
            lost,
            unclear,
        )
        life, offset = await self._broker.ask(request)
        while topic.life == life and self.applied <= offset:
            await self._more()
        if topic.life != life:
            raise unclear
        effective = self._outcomes[offset] is Outcome.EFFECTIVE
        return Published.EFFECTIVE if effective else Published.VOID
