"""Publishes committed batches, in order, to the followers of the metadata; then the high watermark.

Batches appended since the start are in memory; earlier ones are read from the log once they are
known to be committed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from skylog.kernel.executor import Executor
from skylog.kernel.waiting import end_tasks
from skylog.quorum.log import MetadataLog
from skylog.replicated.log import KeyValue, LoadedBatch, Unsubscribe
from skylog.wire.batch import Batch
from skylog.wire.records import decode_records

# Gets a snapshot (``from_snapshot``: the whole state) or one committed batch, in order.
Publisher = Callable[[LoadedBatch], None]


class Publishing:
    """One node's committed metadata. All calls come from the event loop."""

    def __init__(
        self, log: MetadataLog, executor: Executor, on_failure: Callable[[Exception], None]
    ) -> None:
        self._log = log
        self._executor = executor
        self._on_failure = on_failure
        latest = log.latest_snapshot
        self.high_watermark = 0 if latest is None else latest.offset
        self._published = self.high_watermark
        self._at_hand_from = log.end_offset
        # Appended and not yet committed: the end of each batch, and the batch.
        self._at_hand: deque[tuple[int, LoadedBatch]] = deque()
        self._publishers: list[Publisher] = []
        self._listeners: list[Callable[[int], None]] = []
        self._catching_up: asyncio.Task[None] | None = None

    def appended(self, end_offset: int, batch: LoadedBatch) -> None:
        self._at_hand.append((end_offset, batch))

    def fetched(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            if not batch.is_control:
                self.appended(batch.next_offset, _loaded(batch))

    def truncated(self, offset: int) -> None:
        while self._at_hand and self._at_hand[-1][0] > offset:
            self._at_hand.pop()
        self._at_hand_from = min(self._at_hand_from, offset)

    def installed(self, offset: int, records: Sequence[KeyValue]) -> None:
        """The log was replaced by a snapshot."""
        self._at_hand.clear()
        self._at_hand_from = self._published = offset
        self._publish(LoadedBatch(offset - 1, records, from_snapshot=True))

    def advance(self, high_watermark: int) -> None:
        """Publish everything committed so far."""
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        self._log.commit(high_watermark)
        if self._published >= self._at_hand_from or not self._publishers:
            self._publish_at_hand()
        elif self._catching_up is None:
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def subscribe(self, publisher: Publisher) -> Unsubscribe:
        """Pass ``publisher`` the latest snapshot and every committed batch, then all new ones."""
        log, offset = self._log, 0
        # More may be committed while it reads; it is live once there is nothing left to read.
        while True:
            latest = log.latest_snapshot
            if latest is not None and latest.offset > 0 and offset < max(1, log.start_offset):
                snapshot = await self._executor.run(lambda: log.read_snapshot(latest))  # noqa: B023
                offset = latest.offset
                publisher(LoadedBatch(offset - 1, snapshot.records, from_snapshot=True))
            if offset >= self._published:
                break
            end_offset = self._published
            async for batch in self.read_log(offset, end_offset):
                publisher(batch)
            offset = end_offset
        self._publishers.append(publisher)
        return lambda: self._publishers.remove(publisher)

    async def read_log(self, offset: int, end_offset: int) -> AsyncIterator[LoadedBatch]:
        log = self._log

        def read(start: int) -> tuple[int, list[LoadedBatch]]:
            batches = log.read(start, end_offset)
            loaded = [_loaded(batch) for batch in batches if not batch.is_control]
            return batches[-1].next_offset if batches else end_offset, loaded

        while offset < end_offset:
            start = offset
            offset, loaded = await self._executor.run(lambda: read(start))  # noqa: B023 — awaited
            for batch in loaded:
                yield batch

    async def close(self) -> None:
        if self._catching_up is not None:
            await end_tasks([self._catching_up])

    async def _catch_up(self) -> None:
        try:
            while self._published < min(self.high_watermark, self._at_hand_from):
                start, end = self._published, min(self.high_watermark, self._at_hand_from)
                found = [batch async for batch in self.read_log(start, end)]
                if self._published != start:
                    continue  # a snapshot was installed meanwhile
                for batch in found:
                    self._publish(batch)
                self._published = end
            self._publish_at_hand()
        except Exception as error:  # noqa: BLE001 — followers of the metadata would miss some
            self._on_failure(error)
        finally:
            self._catching_up = None

    def _publish_at_hand(self) -> None:
        high_watermark = self.high_watermark
        while self._at_hand and self._at_hand[0][0] <= high_watermark:
            self._publish(self._at_hand.popleft()[1])
        self._published = high_watermark
        for listener in tuple(self._listeners):
            listener(high_watermark)

    def _publish(self, batch: LoadedBatch) -> None:
        for publisher in tuple(self._publishers):
            publisher(batch)


def _loaded(batch: Batch) -> LoadedBatch:
    records = [(record.key, record.value) for record in decode_records(batch)]
    return LoadedBatch(batch.base_offset, records)
