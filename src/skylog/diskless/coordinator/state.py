"""A diskless coordinator's state, behind a small synchronous port.

The log is authoritative. A store of this state is a cache: it contains the log up to
``applied.end_offset``, is changed only by ``apply.py``, and is discarded at the first
inconsistency. There are two: SQLite on disk (``sqlite.py``) and dictionaries (``memory.py``) for
tests and simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from skylog.diskless.batch import BatchCoordinate, Committed
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.commits import Entries
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.ranges import Span, SplitPage
from skylog.kernel.ids import Uuid

# Batches in a file are never closer than this (a batch header is larger). So the log offset of the
# commit, and the position in the file in these units, make an id of 63 bits.
BATCH_SPACING_BITS: Final = 5
FILE_POSITION_BITS: Final = 31 - BATCH_SPACING_BITS


class Applied(NamedTuple):
    """How far the log is applied, and the last batch: its base offset and checksum."""

    end_offset: int = 0
    timestamp_ms: int = -1
    last_base_offset: int = -1
    last_crc: int = -1


@dataclass(frozen=True, slots=True)
class FileState:
    """A WAL object of this coordinator. ``deletable_since_ms`` is -1 while it has live batches."""

    object_key: str
    format: int
    size: int
    uploader_broker_id: int
    coordinator_ids: tuple[int, ...]
    # The log offset of its commit: unique, in the order of commits.
    log_offset: int
    committed_ms: int
    live_batches: int = 0
    deletable_since_ms: int = -1
    # All earlier owners have released the file.
    received: bool = False

    def is_had_by(self, coordinator_id: int) -> bool:
        return self.received or self.coordinator_ids[:1] == (coordinator_id,)


class StoredAnswer(NamedTuple):
    """The result of a commit for the batch at ``byte_offset``."""

    byte_offset: int
    error: int
    base_offset: int
    log_append_time: int


class Counts(NamedTuple):
    """Totals."""

    partitions: int
    batches: int
    live_files: int
    free_files: int
    producers: int
    pins: int


class Pin(NamedTuple):
    """A staged object before or after its commit; before it, ``size`` is -1.

    The results stay with the pin after the file and its own results are forgotten.
    """

    object_key: str
    writer_id: str
    epoch: int
    expires_ms: int
    size: int = -1
    format: int = 0
    answers: tuple[StoredAnswer, ...] = ()

    @property
    def is_committed(self) -> bool:
        return self.size >= 0


def batch_id(log_offset: int, byte_offset: int) -> int:
    """The same on all replicas, and after a snapshot."""
    return log_offset << FILE_POSITION_BITS | byte_offset >> BATCH_SPACING_BITS


class PinStore(Protocol):
    """The pins, by the key of their object."""

    def get(self, object_key: str) -> Pin | None: ...

    def put(self, pin: Pin) -> None: ...

    def remove(self, object_key: str) -> None: ...

    def expire(self, before_ms: int) -> None: ...

    def all(self) -> Iterator[Pin]:
        """In key order."""
        ...


class StateView(Protocol):
    """Read access: the committed part of the log and nothing else."""

    @property
    def applied(self) -> Applied: ...

    @property
    def pins(self) -> PinStore: ...

    def log(self, partition: TopicPartition) -> LogState | None: ...

    def partitions_of(self, topic_id: Uuid) -> list[int]: ...

    def producer(self, partition: TopicPartition, producer_id: int) -> Entries: ...

    def file(self, object_key: str) -> FileState | None: ...

    def answers(self, object_key: str) -> list[StoredAnswer] | None:
        """The results of its commit; None if they have been forgotten."""
        ...

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]:
        """By offset, from the batch that contains ``from_offset``; read lazily."""
        ...

    def batch_at_time(
        self, partition: TopicPartition, timestamp: int, from_offset: int
    ) -> BatchCoordinate | None:
        """The first batch that is not older than ``timestamp``."""
        ...

    def latest_batch(self, partition: TopicPartition, from_offset: int) -> BatchCoordinate | None:
        """Of the batches with the largest timestamp, the first."""
        ...

    def split_page(
        self, partition: TopicPartition, span: Span, split_bytes: int, limit: int
    ) -> SplitPage:
        """At most this many batches of a span, split by bytes (``ranges.split_page``)."""
        ...

    def free_files(
        self, marked_before_ms: int, limit: int, coordinator_id: int, *, waiting: bool = False
    ) -> list[FileState]:
        """Files without live batches that this coordinator owns now, oldest first; limit 0 = all.

        ``waiting``: those that earlier owners still have.
        """
        ...

    def oldest_file_ms(self) -> int | None: ...

    # For inspection; these may read everything.

    def list_files(self, after: str, limit: int) -> list[tuple[FileState, int]]:
        """Files with greater keys, by key, and the bytes of their live batches."""
        ...

    def counts(self) -> Counts: ...

    # Everything, for snapshots and digests.

    def all_partitions(self) -> Iterator[tuple[TopicPartition, str, LogState]]: ...

    def all_files(self) -> Iterator[tuple[FileState, list[tuple[TopicPartition, BatchCoordinate]]]]:
        """In the order of commits, with the live batches by partition and offset."""
        ...

    def all_producers(self) -> Iterator[tuple[TopicPartition, int, Entries]]: ...


class StateStore(StateView, Protocol):
    """Write access; every change is within ``transaction``."""

    def transaction(self) -> AbstractContextManager[None]: ...

    def set_applied(self, applied: Applied) -> None: ...

    def create_partition(self, partition: TopicPartition, name: str) -> None: ...

    def set_log(self, partition: TopicPartition, log: LogState) -> None: ...

    def drop_partition(self, partition: TopicPartition) -> None:
        """Forget it and its producers; its batches have already been removed."""
        ...

    def add_batches(
        self, partition: TopicPartition, log_offset: int, batches: Sequence[Committed]
    ) -> None:
        """Batches of the file whose commit is at ``log_offset``."""
        ...

    def remove_batches(
        self, partition: TopicPartition, below_offset: int | None
    ) -> tuple[dict[int, int], int]:
        """Remove those that end below an offset (None: all).

        Returns the number removed for each file (by its commit's log offset), and their bytes.
        """
        ...

    def set_producer(
        self, partition: TopicPartition, producer_id: int, entries: Entries
    ) -> None: ...

    def add_file(self, file: FileState, answers: Iterable[StoredAnswer]) -> None: ...

    def set_received(self, object_key: str) -> None: ...

    def release_batches(self, log_offset: int, count: int, now_ms: int) -> None:
        """This many batches of a file were deleted; with the last one it becomes deletable."""
        ...

    def forget_file(self, object_key: str) -> None: ...

    def expire(self, producers_before_ms: int, answers_before_ms: int) -> None:
        """Producers and commit results; pins expire separately."""
        ...

    def snapshot_view(self) -> AbstractContextManager[StateView]:
        """A view of the current state, for another thread to read concurrently."""
        ...

    def checkpoint(self) -> int:
        """Checkpoint the database, on another thread while this one continues.

        Returns how many pages have been written since the last complete checkpoint.
        """
        ...

    def close(self) -> None: ...


def digest(view: StateView) -> str:
    """Equal for equal states, in any store.

    Files without live batches are not included: their deletion is not logged, so a replica or a
    replay may have some that are already deleted.
    """
    out = blake2b(digest_size=16)

    def add(*parts: object) -> None:
        out.update(repr(parts).encode())

    add(view.applied.end_offset)
    for partition, name, log in sorted(view.all_partitions()):
        add(partition, name, log)
    for file, batches in view.all_files():
        if file.live_batches:
            add(file.object_key, file.format, file.size, file.coordinator_ids, file.log_offset)
            add(file.committed_ms, file.live_batches, file.received, batches)
    for partition, producer_id, entries in sorted(view.all_producers()):
        add(partition, producer_id, entries)
    for pin in view.pins.all():
        add(pin.object_key, pin.writer_id, pin.epoch, pin.expires_ms, pin.size)
    return out.hexdigest()
