"""The coordinator's state in dictionaries, for tests and simulation: the reference semantics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

from skylog.diskless.batch import BatchCoordinate, Committed
from skylog.diskless.coordinator.pin_store import MemoryPins
from skylog.diskless.coordinator.state import (
    Applied,
    Counts,
    FileState,
    StateView,
    StoredAnswer,
    batch_id,
)
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules import ranges
from skylog.diskless.rules.commits import Entries
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.ids import Uuid


class MemoryState:
    """See ``StateStore``."""

    def __init__(self) -> None:
        self._applied = Applied()
        self._logs: dict[TopicPartition, tuple[str, LogState]] = {}
        self._batches: dict[TopicPartition, list[BatchCoordinate]] = {}
        self._producers: dict[tuple[TopicPartition, int], Entries] = {}
        self._files: dict[str, FileState] = {}
        self._keys: dict[int, str] = {}
        self._answers: dict[str, list[StoredAnswer]] = {}
        self._pins = MemoryPins()

    # Looking

    @property
    def applied(self) -> Applied:
        return self._applied

    @property
    def pins(self) -> MemoryPins:
        return self._pins

    def log(self, partition: TopicPartition) -> LogState | None:
        found = self._logs.get(partition)
        return found[1] if found else None

    def partitions_of(self, topic_id: Uuid) -> list[int]:
        return sorted(index for topic, index in self._logs if topic == topic_id)

    def producer(self, partition: TopicPartition, producer_id: int) -> Entries:
        return self._producers.get((partition, producer_id), ())

    def file(self, object_key: str) -> FileState | None:
        return self._files.get(object_key)

    def answers(self, object_key: str) -> list[StoredAnswer] | None:
        return self._answers.get(object_key)

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]:
        batches = self._batches.get(partition, [])
        first = bisect_left(batches, from_offset, key=lambda batch: batch.stamp.last_offset)
        yield from batches[first:]

    def batch_at_time(
        self, partition: TopicPartition, timestamp: int, from_offset: int
    ) -> BatchCoordinate | None:
        batches = self.batches(partition, from_offset)
        return next((batch for batch in batches if batch.stamp.timestamp >= timestamp), None)

    def latest_batch(self, partition: TopicPartition, from_offset: int) -> BatchCoordinate | None:
        batches = self.batches(partition, from_offset)
        return max(batches, key=lambda batch: batch.stamp.timestamp, default=None)

    def split_page(
        self, partition: TopicPartition, span: ranges.Span, split_bytes: int, limit: int
    ) -> ranges.SplitPage:
        batches = ranges.within(self.batches(partition, span.start), span, limit)
        return ranges.split_page(map(ranges.SizedBatch.of, batches), span, split_bytes)

    def free_files(
        self, marked_before_ms: int, limit: int, coordinator_id: int, *, waiting: bool = False
    ) -> list[FileState]:
        found = [
            file
            for file in self._files.values()
            if not file.live_batches
            and file.deletable_since_ms < marked_before_ms
            and file.is_had_by(coordinator_id) is not waiting
        ]
        found.sort(key=lambda file: (file.deletable_since_ms, file.log_offset))
        return found[: limit or None]

    def oldest_file_ms(self) -> int | None:
        live = (file.committed_ms for file in self._files.values() if file.live_batches)
        return min(live, default=None)

    def list_files(self, after: str, limit: int) -> list[tuple[FileState, int]]:
        listed = {
            file.object_key: (file, sum(batch.extent.byte_size for _, batch in held))
            for file, held in self.all_files()
            if file.object_key > after
        }
        return [listed[key] for key in sorted(listed)[:limit]]

    def counts(self) -> Counts:
        live = sum(file.live_batches > 0 for file in self._files.values())
        batches = sum(map(len, self._batches.values()))
        files = (live, len(self._files) - live)
        pins = sum(1 for _ in self._pins.all())
        return Counts(len(self._logs), batches, *files, len(self._producers), pins)

    def all_partitions(self) -> Iterator[tuple[TopicPartition, str, LogState]]:
        for partition, (name, log) in self._logs.items():
            yield partition, name, log

    def all_files(self) -> Iterator[tuple[FileState, list[tuple[TopicPartition, BatchCoordinate]]]]:
        held: dict[str, list[tuple[TopicPartition, BatchCoordinate]]] = {}
        for partition in sorted(self._batches):
            for batch in self._batches[partition]:
                held.setdefault(batch.extent.object_key, []).append((partition, batch))
        for _, key in sorted(self._keys.items()):
            yield self._files[key], held.get(key, [])

    def all_producers(self) -> Iterator[tuple[TopicPartition, int, Entries]]:
        for (partition, producer_id), entries in self._producers.items():
            yield partition, producer_id, entries

    # Changing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield

    def set_applied(self, applied: Applied) -> None:
        self._applied = applied

    def create_partition(self, partition: TopicPartition, name: str) -> None:
        self._logs[partition] = (name, LogState())
        self._batches[partition] = []

    def set_log(self, partition: TopicPartition, log: LogState) -> None:
        self._logs[partition] = (self._logs[partition][0], log)

    def drop_partition(self, partition: TopicPartition) -> None:
        del self._logs[partition], self._batches[partition]
        for owner in [known for known in self._producers if known[0] == partition]:
            del self._producers[owner]

    def add_batches(
        self, partition: TopicPartition, log_offset: int, batches: Sequence[Committed]
    ) -> None:
        self._batches[partition] += [
            BatchCoordinate(
                batch_id=batch_id(log_offset, extent.byte_offset), extent=extent, stamp=stamp
            )
            for extent, stamp in batches
        ]

    def remove_batches(
        self, partition: TopicPartition, below_offset: int | None
    ) -> tuple[dict[int, int], int]:
        batches = self._batches[partition]
        gone = [b for b in batches if below_offset is None or b.stamp.last_offset < below_offset]
        del batches[: len(gone)]
        counts = Counter(self._files[b.extent.object_key].log_offset for b in gone)
        return counts, sum(batch.extent.byte_size for batch in gone)

    def set_producer(self, partition: TopicPartition, producer_id: int, entries: Entries) -> None:
        self._producers[partition, producer_id] = entries

    def add_file(self, file: FileState, answers: Iterable[StoredAnswer]) -> None:
        self._files[file.object_key] = file
        self._keys[file.log_offset] = file.object_key
        self._answers[file.object_key] = list(answers)

    def set_received(self, object_key: str) -> None:
        self._files[object_key] = replace(self._files[object_key], received=True)

    def release_batches(self, log_offset: int, count: int, now_ms: int) -> None:
        file = self._files[self._keys[log_offset]]
        left = file.live_batches - count
        since = file.deletable_since_ms if left else now_ms
        self._files[file.object_key] = replace(file, live_batches=left, deletable_since_ms=since)

    def forget_file(self, object_key: str) -> None:
        file = self._files.pop(object_key, None)
        if file is not None:
            del self._keys[file.log_offset]
            self._answers.pop(object_key, None)

    def expire(self, producers_before_ms: int, answers_before_ms: int) -> None:
        for owner, entries in list(self._producers.items()):
            if entries[-1].log_append_timestamp <= producers_before_ms:
                del self._producers[owner]
        for key in list(self._answers):
            if self._files[key].committed_ms < answers_before_ms:
                del self._answers[key]

    @contextmanager
    def snapshot_view(self) -> Iterator[StateView]:
        yield deepcopy(self)

    def checkpoint(self) -> int:
        """Nothing is on disk."""
        return 0

    def close(self) -> None:
        """Nothing to release."""
