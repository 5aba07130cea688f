"""Pending records over the committed state, as the next write must see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skylog.diskless.coordinator.state import FileState, Pin, StateView, StoredAnswer
from skylog.diskless.plane import CommitResult, TopicPartition
from skylog.diskless.rules.commits import Entries
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.pins import is_staged
from skylog.kernel.ids import Uuid


@dataclass(frozen=True, slots=True)
class PendingFile:
    """A commit in progress; repetitions join it."""

    size: int
    format: int
    results: list[CommitResult]


class Overlay:
    """Values by the offset of the record that last changed them.

    Once the committed state has reached that offset it contains the value, which is dropped here.
    """

    def __init__(self, state: StateView) -> None:
        self._state = state
        self._logs: dict[TopicPartition, tuple[int, LogState | None]] = {}
        self._producers: dict[tuple[TopicPartition, int], tuple[int, Entries]] = {}
        self._files: dict[str, tuple[int, PendingFile]] = {}
        self._received: dict[str, tuple[int, None]] = {}
        self._pinned: dict[str, tuple[int, None]] = {}
        # Partitions that were deleted, and perhaps created again: stored values do not apply.
        self._dropped: dict[TopicPartition, tuple[int, None]] = {}
        # By offset: a table, and the keys changed in it.
        self._changes: deque[tuple[int, dict[Any, tuple[int, Any]], Iterable[Any]]] = deque()

    def __len__(self) -> int:
        return len(self._changes)

    def log(self, partition: TopicPartition) -> LogState | None:
        pending = self._logs.get(partition)
        return self._state.log(partition) if pending is None else pending[1]

    def starts_pending(self, partition: TopicPartition) -> bool:
        """Whether a deletion is pending; then the committed counts are too high."""
        pending, committed = self._logs.get(partition), self._state.log(partition)
        if pending is None:
            return False
        log = pending[1]
        return (
            log is None
            or committed is None
            or partition in self._dropped
            or log.log_start_offset != committed.log_start_offset
            or log.wal_start_offset != committed.wal_start_offset
        )

    def partitions_of(self, topic_id: Uuid) -> list[int]:
        indexes = set(self._state.partitions_of(topic_id))
        for (topic, index), (_, log) in self._logs.items():
            if topic == topic_id:
                indexes.discard(index)
                if log is not None:
                    indexes.add(index)
        return sorted(indexes)

    def producer(self, partition: TopicPartition, producer_id: int) -> Entries:
        pending = self._producers.get((partition, producer_id))
        if pending is not None:
            return pending[1]
        return () if partition in self._dropped else self._state.producer(partition, producer_id)

    def pending_file(self, object_key: str) -> PendingFile | None:
        pending = self._files.get(object_key)
        return pending[1] if pending else None

    def file(self, object_key: str) -> FileState | None:
        return self._state.file(object_key)

    def pin(self, object_key: str) -> Pin | None:
        """The committed one: a pending pin has not been acknowledged yet."""
        return self._state.pins.get(object_key) if is_staged(object_key) else None

    def may_be_pinned(self, object_key: str) -> bool:
        return object_key in self._pinned or self.pin(object_key) is not None

    def is_received(self, object_key: str) -> bool:
        return object_key in self._received

    def answers(self, object_key: str) -> list[StoredAnswer] | None:
        return self._state.answers(object_key)

    # Changes, by the offset of their record

    def set_log(self, offset: int, partition: TopicPartition, log: LogState | None) -> None:
        self._set(self._logs, offset, partition, log)
        if log is None:
            self._set(self._dropped, offset, partition, None)
            for owner in [known for known in self._producers if known[0] == partition]:
                self._set(self._producers, offset, owner, ())

    def add_commit(
        self,
        offset: int,
        logs: Mapping[TopicPartition, LogState],
        producers: Mapping[tuple[TopicPartition, int], Entries],
    ) -> None:
        for partition, log in logs.items():
            self._logs[partition] = (offset, log)
        for owner, entries in producers.items():
            self._producers[owner] = (offset, entries)
        self._changes.append((offset, self._logs, logs))
        self._changes.append((offset, self._producers, producers))

    def add_file(self, offset: int, object_key: str, file: PendingFile) -> None:
        self._set(self._files, offset, object_key, file)

    def note_pin(self, offset: int, object_key: str) -> None:
        self._set(self._pinned, offset, object_key, None)

    def receive(self, offset: int, object_key: str) -> None:
        self._set(self._received, offset, object_key, None)

    def _set(self, table: dict[Any, tuple[int, Any]], offset: int, key: Any, value: Any) -> None:
        table[key] = (offset, value)
        self._changes.append((offset, table, (key,)))

    def forget_before(self, end_offset: int) -> None:
        """The committed state has reached ``end_offset``."""
        changes = self._changes
        while changes and changes[0][0] < end_offset:
            offset, table, keys = changes.popleft()
            for key in keys:
                held = table.get(key)
                if held is not None and held[0] == offset:
                    del table[key]
