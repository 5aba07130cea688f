"""A partition of ``__diskless_metadata`` as the log of a coordinator.

While this broker is the only in-sync replica, a record counts as committed once it is synced: a
power cut must not take back what was answered. Appends that come meanwhile share the next sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import DISKLESS_LOAD_READ_BYTES
from skylog.wire.batch import Batch, split_batches
from skylog.wire.buffers import Buffer


class ReadResult(Protocol):
    @property
    def buffer(self) -> Buffer: ...


class StoredLog(Protocol):
    """The partition's log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> ReadResult: ...

    @property
    def size(self) -> int: ...

    def sync(self) -> None: ...


class MetadataPartition(Protocol):
    """A partition that this broker leads; ``replication.partition.Partition`` is one."""

    @property
    def log(self) -> StoredLog: ...

    @property
    def isr(self) -> Sequence[int]: ...

    @property
    def leader_epoch(self) -> int: ...

    def append(self, batches: Sequence[Batch], now_ms: int) -> Any:
        """Append as the leader; a KafkaError leaves the log as it was."""
        ...

    def on_commit(self, listener: Callable[[int], None]) -> Any:
        """Call ``listener`` with every new high watermark."""
        ...

    def delete_records_before(self, offset: int) -> int: ...


class CoordinatorLog:
    """One per time of leading the partition. All calls come from the event loop."""

    def __init__(
        self, partition: MetadataPartition, executor: Executor, *, sync: bool = True
    ) -> None:
        """``sync``: what no follower has is on disk before it counts as committed."""
        self._partition = partition
        self._executor = executor
        self._syncs = sync
        self._synced = 0
        self._sync_task: asyncio.Task[None] | None = None
        self._moved: Callable[[], None] | None = None
        self._failed: Callable[[Exception], None] | None = None
        partition.on_commit(self._committed)

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        high_watermark = self._partition.log.high_watermark
        return min(high_watermark, self._synced) if self._must_sync else high_watermark

    @property
    def leader_epoch(self) -> int:
        return self._partition.leader_epoch

    @property
    def size(self) -> int:
        return self._partition.log.size

    @property
    def _must_sync(self) -> bool:
        return self._syncs and len(self._partition.isr) <= 1

    async def open(self, moved: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Make all that is there durable; from now on tell of moves and failures."""
        self._moved, self._failed = moved, failed
        await self._sync()

    def close(self) -> None:
        self._moved = self._failed = None

    def append(self, encoded: bytes, now_ms: int) -> int:
        """Append one batch; returns the log's end. KafkaError: nothing was appended."""
        self._partition.append([Batch(encoded)], now_ms)
        if self._must_sync and self._sync_task is None:
            task = asyncio.get_running_loop().create_task(self._sync_all())
            self._sync_task = task
        return self.end_offset

    async def _sync_all(self) -> None:
        try:
            while self._synced < self.end_offset and self._moved is not None:
                await self._sync()
                self._committed(self._synced)
        except Exception as error:  # noqa: BLE001 - whoever leads must not go on
            if self._failed is not None:
                self._failed(error)
        finally:
            self._sync_task = None

    async def _sync(self) -> None:
        end_offset = self.end_offset
        await self._executor.run(self._partition.log.sync)
        self._synced = end_offset

    async def settled(self) -> None:
        """Wait until no sync is under way."""
        while self._sync_task is not None:
            await asyncio.wait({self._sync_task})

    async def read(self, offset: int) -> AsyncIterator[list[Batch]]:
        """The batches from ``offset`` up to what is the end now, as many at a time as were read."""
        log = self._partition.log
        end_offset = log.log_end_offset
        while offset < end_offset:
            read = partial(
                log.read, offset, DISKLESS_LOAD_READ_BYTES, end_offset, min_one=True, block=True
            )
            batches = list(split_batches((await self._executor.run(read)).buffer))
            if not batches or batches[-1].next_offset <= offset:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"nothing to read at {offset}")
            offset = batches[-1].next_offset
            yield batches

    def prune(self, offset: int) -> None:
        """Let go of what a snapshot holds."""
        self._partition.delete_records_before(offset)

    def _committed(self, _high_watermark: int) -> None:
        if self._moved is not None:
            self._moved()
