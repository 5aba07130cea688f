"""One partition on this broker: its log, its place in the cluster, and how far it is committed.

Whoever waits for data *watches* a partition and is told when it moves, so that a waiting fetch
costs nothing until something happens, however many partitions it covers.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError, invariant
from skylog.kernel.ids import Uuid
from skylog.log.verification import CLIENT, Origin
from skylog.wire.batch import Batch

if TYPE_CHECKING:
    from skylog.log.log import AppendInfo, Log
    from skylog.log.producers import TransactionEnd


class Watcher(Protocol):
    """Somebody who waits for a partition to move."""

    def partition_moved(self, appended_bytes: int) -> None:
        """More is readable; 0 bytes: something else changed (leader, log start, deletion)."""
        ...


class Partition:
    """A replica of a partition. All methods run on the event loop."""

    __slots__ = (
        "_commit_listeners",
        "_waiting",
        "_watchers",
        "deleted",
        "index",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "node_id",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(self, node_id: int, topic: str, index: int, topic_id: Uuid, log: Log) -> None:
        self.node_id = node_id
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader_id = -1
        self.leader_epoch = -1
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.deleted = False
        self._watchers: dict[Watcher, None] = {}
        self._commit_listeners: list[Callable[[int], None]] = []
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.node_id and not self.deleted

    def has_follower(self, node_id: int) -> bool:
        return node_id != self.node_id and node_id in self.replicas

    def update(
        self, leader_id: int, leader_epoch: int, replicas: Sequence[int], isr: Sequence[int]
    ) -> None:
        """Take over what the metadata log says of this partition."""
        invariant(leader_epoch >= self.leader_epoch, f"{self}: leader epoch went back")
        was_leader = self.is_leader
        moved = (leader_id, leader_epoch) != (self.leader_id, self.leader_epoch)
        self.leader_id, self.leader_epoch = leader_id, leader_epoch
        self.replicas, self.isr = replicas, isr
        if self.is_leader and moved:
            self.log.assign_epoch(leader_epoch)
            self._advance_high_watermark()
        if was_leader and not self.is_leader:
            self._fail_waiting(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if moved:
            self._notify(0)

    def mark_deleted(self) -> None:
        """The topic is gone: nobody may go on waiting for it."""
        self.deleted = True
        self._fail_waiting(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        self._notify(0)

    def append(self, batches: Sequence[Batch], now_ms: int, origin: Origin = CLIENT) -> AppendInfo:
        """Append as the leader; raises KafkaError and leaves the log as it was."""
        info = self.log.append(batches, self.leader_epoch, now_ms, origin)
        if not info.duplicate:
            self._advance_high_watermark()
            if self._watchers:
                self._notify(sum(batch.size for batch in batches))
        return info

    def append_marker(self, end: TransactionEnd, now_ms: int) -> AppendInfo:
        """End a transaction as the leader; raises KafkaError and leaves the log as it was."""
        info = self.log.append_marker(end, self.leader_epoch, now_ms)
        self._advance_high_watermark()
        # The whole transaction becomes readable for some, however small its marker.
        self._notify(0)
        return info

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up; returns the new one."""
        start = self.log.delete_records_before(offset)
        self._notify(0)
        return start

    def committed(self, offset: int) -> asyncio.Future[None] | None:
        """What to await until ``offset`` is below the high watermark; None when it already is."""
        if self.log.high_watermark > offset:
            return None
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, id(future), future))
        return future

    def watch(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def on_commit(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call ``listener`` with every new high watermark, until what comes back is called."""
        self._commit_listeners.append(listener)
        return partial(self._commit_listeners.remove, listener)

    def _advance_high_watermark(self) -> None:
        if len(self.isr) > 1:
            return  # followers' fetches move it
        log = self.log
        if log.high_watermark >= log.log_end_offset:
            return
        log.high_watermark = log.log_end_offset
        for listener in tuple(self._commit_listeners):
            listener(log.high_watermark)
        while self._waiting and self._waiting[0][0] < log.high_watermark:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def _fail_waiting(self, error: KafkaError) -> None:
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    def _notify(self, appended_bytes: int) -> None:
        for watcher in tuple(self._watchers):
            watcher.partition_moved(appended_bytes)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"
