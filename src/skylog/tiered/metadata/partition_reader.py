"""Reads one partition of the metadata topic and applies its records to the remote logs kept here.

The *tail* is read once, for all logs. A log that is followed later has missed what was before: a
second pass reads that from the beginning for it, until it has caught up with the tail and joins
it. A topic that was made anew, or has lost its end, is read again from the beginning.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError, ProtocolError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_METADATA_READ_BYTES, REMOTE_METADATA_RECORDS_PER_TURN
from skylog.kernel.logging import get_logger
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.records import partition_of
from skylog.tiered.metadata.snapshots import RemoteLogState, Snapshot, SnapshotFiles
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.metadata_records import decode_remote_log

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.tiered.ports import MetadataTopic, MetadataValue

_log = get_logger("tiered.metadata")
# A fault that passes sooner is not worth a line.
TOLD_AFTER_SECONDS: Final = 5
_UNKNOWN = -1


@dataclass(slots=True, eq=False)
class KeptLog:
    """The remote log of a partition that is followed."""

    log: RemoteLog
    # The end of the metadata partition, as of some time after following began.
    target: int = _UNKNOWN
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    # What records did, while somebody waits for the outcome of one.
    waiting: int = 0
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    applied: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, offset: int, outcome: Outcome) -> None:
        if self.waiting:
            self.outcomes[offset] = outcome
            self.applied.set()


class PartitionReader:
    """Follows one partition of the metadata topic. All calls come from the event loop."""

    def __init__(
        self,
        number: int,
        topic: MetadataTopic,
        files: SnapshotFiles,
        executor: Executor,
        retry_seconds: float,
        changed: Callable[[TopicIdPartition], None],
    ) -> None:
        """``changed`` is called for logs that are ready."""
        self.number = number
        self._topic = topic
        self._files = files
        self._executor = executor
        self._retry_seconds = retry_seconds
        self._changed = changed
        self._topic_id = Uuid(16)
        # Grows when all is read again.
        self._life = 0
        # None until the topic is there and its snapshot was looked for.
        self._position: int | None = None
        self._snapshot_position = 0
        self._tail: dict[TopicIdPartition, KeptLog] = {}
        self._late: dict[TopicIdPartition, KeptLog] = {}
        # Of the snapshot, not followed (yet).
        self._spare: dict[TopicIdPartition, KeptLog] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.outcomes: Counter[Outcome] = Counter()
        self.junk_records = 0

    # --- Who is followed ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._tail) + len(self._late)

    def add(self, partition: TopicIdPartition, topic: str) -> KeptLog:
        """Follow a partition that is not followed yet."""
        kept = self._spare.pop(partition, None)
        if kept is not None:
            self._tail[partition] = kept
        else:
            kept = KeptLog(RemoteLog(partition, topic))
            (self._late if self._position else self._tail)[partition] = kept
        self._start("tail", self._follow_tail)
        if self._position is not None:
            self._start_others()
        return kept

    def _start_others(self) -> None:
        self._start("aim", self._aim)
        if self._late:
            self._start("late", self._follow_late)

    def remove(self, partition: TopicIdPartition) -> None:
        kept = self._tail.pop(partition, None) or self._late.pop(partition, None)
        if kept is not None:
            # Whoever waits for it looks again.
            kept.ready.set()
            kept.applied.set()

    def _start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        task = self._tasks.get(name)
        if task is None or task.done():
            self._tasks[name] = asyncio.get_running_loop().create_task(self._retry(work))

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- Reading ------------------------------------------------------------------------------

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Until the work is done; it goes on where it was."""
        told, failures = "", 0
        while True:
            try:
                await work()
                return
            except ConfigError:
                return  # the node stops
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._begin_again()
                failures += 1
                # While brokers start, partitions have no leader for a while.
                is_lasting = failures * self._retry_seconds >= TOLD_AFTER_SECONDS
                if is_lasting and (text := str(error)) != told:
                    told = text
                    _log.warning("metadata not read", partition=self.number, error=told)
            await asyncio.sleep(self._retry_seconds)

    async def _open(self) -> int:
        """Begin with the snapshot, once the topic is there."""
        if not self._topic.partition_count:
            await self._topic.create()
        while not self._topic.partition_count:  # noqa: ASYNC110 - metadata tells it to nobody
            await asyncio.sleep(self._retry_seconds)
        topic_id = self._topic_id = self._topic.topic_id
        found = None
        if not self._life:  # otherwise it may have what the topic has lost
            found = await self._executor.run(lambda: self._files.read(topic_id, self.number))
        return self._adopt(found or Snapshot(0, ()))

    def _adopt(self, found: Snapshot) -> int:
        for log in found.logs:
            kept = self._tail.get(log.partition)
            if kept is None:
                self._spare[log.partition] = KeptLog(log)
            elif kept.log.next_offset == 0:
                kept.log = log
        contained = {log.partition for log in found.logs}
        if found.offset:
            for partition in [one for one in self._tail if one not in contained]:
                self._late[partition] = self._tail.pop(partition)
        self._snapshot_position = found.offset
        return found.offset

    def _begin_again(self) -> None:
        _log.warning("the metadata topic is another one: reading it again", partition=self.number)
        self._life += 1
        self._position = None
        self._spare.clear()
        self._tail |= self._late
        self._late.clear()
        for partition, kept in self._tail.items():
            kept.log = RemoteLog(partition, kept.log.topic)
            kept.target = _UNKNOWN
            kept.ready.clear()
        self._topic_id = Uuid(16)

    async def _follow_tail(self) -> None:
        while True:
            if self._position is None:
                self._position = await self._open()
                self._start_others()
            elif self._topic.topic_id != self._topic_id:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            position, life = self._position, self._life
            page = await self._topic.read(self.number, position, REMOTE_METADATA_READ_BYTES)
            for values in _turns(page.values):
                if self._life != life:
                    break
                self._apply(values, (self._tail, self._spare))
                self._position = values[-1].offset + 1
                await asyncio.sleep(0)
            if self._life == life:
                self._position = max(page.next_offset, position)
                self._show_ready()

    async def _follow_late(self) -> None:
        """Read from the beginning what the late ones have missed."""
        while self._late:
            late, position, life = dict(self._late), 0, self._life
            while (tail := self._position) is not None and position < tail:
                page = await self._topic.read(self.number, position, REMOTE_METADATA_READ_BYTES)
                for values in _turns(page.values):
                    if self._life != life:
                        return
                    self._apply(values, (late,))
                    await asyncio.sleep(0)
                if self._life != life:
                    return
                # An empty page is of a replica that has not got this far yet, and waited for it.
                position = max(page.next_offset, position)
            if self._life != life:
                return
            for partition, kept in late.items():
                if self._late.get(partition) is kept:
                    del self._late[partition]
                    self._tail[partition] = kept
            self._show_ready()

    async def _aim(self) -> None:
        """Find where a log is complete that was just followed."""
        while aimless := [kept for kept in self._all() if kept.target == _UNKNOWN]:
            life, target = self._life, await self._topic.end_offset(self.number)
            if self._life == life:
                for kept in aimless:
                    kept.target = target
                self._show_ready()

    def _all(self) -> Iterator[KeptLog]:
        return chain(self._tail.values(), self._late.values())

    def _show_ready(self) -> None:
        for partition, kept in tuple(self._tail.items()):
            position = self._position
            if position is None or kept.ready.is_set() or not 0 <= kept.target <= position:
                continue
            kept.ready.set()
            self._changed(partition)

    def _apply(
        self, values: Iterable[MetadataValue], logs: tuple[dict[TopicIdPartition, KeptLog], ...]
    ) -> None:
        changed: dict[TopicIdPartition, None] = {}
        for offset, value in values:
            try:
                record = decode_remote_log(value)
            except ProtocolError:
                record = None
            partition = None if record is None else partition_of(record)
            if record is None or partition is None:
                self.junk_records += 1
                continue
            for group in logs:
                kept = group.get(partition)
                if kept is None:
                    continue
                outcome = kept.log.apply(record, offset)
                if outcome is Outcome.SEEN:
                    continue
                self.outcomes[outcome] += 1
                kept.note(offset, outcome)
                if kept.ready.is_set():
                    changed[partition] = None
        for partition in changed:
            self._changed(partition)

    # --- Snapshots ----------------------------------------------------------------------------

    async def snapshot(self) -> None:
        """Write the file anew if there is anything new."""
        position = self._position
        if position is None or position == self._snapshot_position:
            return
        self._spare.clear()
        states = [RemoteLogState(*kept.log.snapshot()) for kept in self._tail.values()]
        topic_id, self._snapshot_position = self._topic_id, position
        await self._executor.run(lambda: self._files.write(topic_id, self.number, position, states))


def _turns(values: Sequence[MetadataValue]) -> Iterator[Sequence[MetadataValue]]:
    size = REMOTE_METADATA_RECORDS_PER_TURN
    return (values[at : at + size] for at in range(0, len(values), size))
