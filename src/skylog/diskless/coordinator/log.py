"""A partition of ``__diskless_metadata`` as the log of a coordinator.

While this broker is the only in-sync replica, a record counts as committed once it is synced: a
power failure must not lose what was acknowledged. Appends during a sync share the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import DISKLESS_LOAD_READ_BYTES
from skylog.replicated.topic_log import StoredLog, read_log
from skylog.wire.batch import Batch


class Syncs(Protocol):
    """Makes the log durable."""

    def sync(self) -> None: ...


class MetadataLog(StoredLog, Protocol):
    """The partition's log."""

    @property
    def size(self) -> int: ...

    @property
    def durability(self) -> Syncs: ...


class MetadataPartition(Protocol):
    """A partition that this broker leads; implemented by ``replication.partition.Partition``."""

    @property
    def log(self) -> MetadataLog: ...

    @property
    def isr(self) -> Sequence[int]: ...

    @property
    def leader_epoch(self) -> int: ...

    def append(self, batches: Sequence[Batch], now_ms: int) -> Any:
        """Append as the leader; after a KafkaError the log is unchanged."""
        ...

    def on_commit(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call ``listener`` with every new high watermark, until the returned function is
        called."""
        ...

    def delete_records_before(self, offset: int) -> int: ...

    def require_in_sync(self) -> None:
        """NOT_ENOUGH_REPLICAS when too few replicas are in sync for an append."""
        ...


class CoordinatorLog:
    """One for each term of leadership. All calls come from the event loop."""

    def __init__(
        self, partition: MetadataPartition, executor: Executor, *, sync: bool = True
    ) -> None:
        """``sync``: without followers, records are synced before they count as committed."""
        self._partition = partition
        self._executor = executor
        self._syncs = sync
        self._synced = 0
        self._high_watermark = 0
        self._sync_task: asyncio.Task[None] | None = None
        self._moved: Callable[[], None] | None = None
        self._failed: Callable[[Exception], None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """It never decreases: what followers had stays committed, even after they leave the ISR."""
        high_watermark = self._partition.log.high_watermark
        if self._must_sync:
            high_watermark = min(high_watermark, self._synced)
        self._high_watermark = max(self._high_watermark, high_watermark)
        return self._high_watermark

    @property
    def leader_epoch(self) -> int:
        return self._partition.leader_epoch

    @property
    def size(self) -> int:
        return self._partition.log.size

    @property
    def isr(self) -> Sequence[int]:
        return self._partition.isr

    @property
    def _must_sync(self) -> bool:
        return self._syncs and len(self._partition.isr) <= 1

    async def open(self, moved: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Make everything durable; from now on report advances and failures."""
        self._moved, self._failed = moved, failed
        self._unsubscribe = self._partition.on_commit(self._committed)
        await self._sync()

    def close(self) -> None:
        self._moved = self._failed = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def require_in_sync(self) -> None:
        """Check this before handling a write: one that cannot be appended costs a reload."""
        try:
            self._partition.require_in_sync()
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def append(self, encoded: bytes, now_ms: int) -> int:
        """Append one batch; returns the log's end. KafkaError: nothing was appended."""
        self._partition.append([Batch(encoded)], now_ms)
        self._start_sync()
        return self.end_offset

    def _start_sync(self) -> None:
        if self._must_sync and self._sync_task is None and self._synced < self.end_offset:
            self._sync_task = asyncio.get_running_loop().create_task(self._sync_all())

    async def _sync_all(self) -> None:
        try:
            while self._synced < self.end_offset and self._moved is not None:
                await self._sync()
                self._committed(self._synced)
        except Exception as error:  # noqa: BLE001 - the leader must stop
            if self._failed is not None:
                self._failed(error)
        finally:
            self._sync_task = None

    async def _sync(self) -> None:
        end_offset = self.end_offset
        await self._executor.run(self._partition.log.durability.sync)
        self._synced = end_offset

    async def settled(self) -> None:
        """Wait until no sync is running."""
        while self._sync_task is not None:
            await asyncio.wait({self._sync_task})

    async def read(self, offset: int) -> AsyncIterator[list[Batch]]:
        """The batches from ``offset`` to the current end, as many at a time as one read returns."""
        log, end_offset = self._partition.log, self.end_offset
        async for batches in read_log(
            log, self._executor, offset, end_offset, DISKLESS_LOAD_READ_BYTES
        ):
            yield batches

    def prune(self, offset: int) -> None:
        """Delete what a snapshot covers."""
        self._partition.delete_records_before(offset)

    def _committed(self, _high_watermark: int) -> None:
        if self._moved is not None:
            self._start_sync()  # the last follower may have left since the append
            self._moved()


class FollowedLog:
    """A replica of a coordinator's log on a broker that does not lead it: the committed part."""

    def __init__(self, log: StoredLog, executor: Executor) -> None:
        self._log = log
        self._executor = executor

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The high watermark as far as this replica knows it."""
        return min(self._log.high_watermark, self._log.log_end_offset)

    @property
    def stored_end_offset(self) -> int:
        return self._log.log_end_offset

    async def read(self, offset: int) -> AsyncIterator[list[Batch]]:
        async for batches in read_log(
            self._log, self._executor, offset, self.end_offset, DISKLESS_LOAD_READ_BYTES
        ):
            yield batches
