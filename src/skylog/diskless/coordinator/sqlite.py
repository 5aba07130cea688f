"""The coordinator's state in SQLite: indexed, on disk, of any size, and never authoritative.

``synchronous=NORMAL`` in WAL mode may lose the last transactions in a power failure, but never part
of one. How far the log is applied is stored in the same transaction, so what is lost is applied
again.

Changes of logs and producers and new batches are collected and written at the end of a transaction,
so that many commits to one partition cost one statement; so is the applied offset.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from struct import Struct
from typing import Any, Final

from skylog.diskless.batch import BatchCoordinate, Committed
from skylog.diskless.coordinator import schema
from skylog.diskless.coordinator.pin_store import SqlitePins
from skylog.diskless.coordinator.state import (
    Applied,
    Counts,
    FileState,
    StateView,
    StoredAnswer,
)
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.commits import Entries, ProducerEntry
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.ranges import Span, SplitPage, page_of_groups
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_CACHED_ROWS_MAX

_ANSWER: Final = Struct(">ihqq")
_ENTRY: Final = Struct(">hiiqq")


class _Row:
    """A partition in memory: its row id, its log and its largest timestamp."""

    __slots__ = ("id", "log", "max_seen_ms")

    def __init__(self, number: int, log: LogState, max_seen_ms: int) -> None:
        self.id = number
        self.log = log
        self.max_seen_ms = max_seen_ms


class SqliteState:
    """See ``StateStore``. One thread at a time."""

    def __init__(
        self, path: Path, identity: str, *, read_only: bool = False, check: bool = True
    ) -> None:
        """``identity`` names the cached log; a cache of another log is refused.

        ``check``: read all of it, which takes seconds for a million batches.
        """
        self._path = path
        self._identity = identity
        # Known partitions and producers, and which of them are not in the tables yet.
        self._rows: dict[TopicPartition, _Row] = {}
        self._producers: dict[tuple[int, int], Entries] = {}
        self._changed_rows: dict[int, _Row] = {}
        self._changed_producers: set[tuple[int, int]] = set()
        self._new_batches: list[tuple[int, ...]] = []
        # Transactions are begun explicitly.
        self._db = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self.pins = SqlitePins(self._db)
        try:
            self._applied = schema.prepare(self._db, identity, read_only=read_only, check=check)
        except BaseException:
            self._db.close()
            raise

    # Looking

    @property
    def applied(self) -> Applied:
        return self._applied

    def log(self, partition: TopicPartition) -> LogState | None:
        row = self._row(partition)
        return row.log if row else None

    def _row(self, partition: TopicPartition) -> _Row | None:
        row = self._rows.get(partition)
        if row is None:
            found = self._db.execute(schema.PARTITION, partition).fetchone()
            if found is None:
                return None
            row = _Row(found[0], LogState._make(found[1:-1]), found[-1])
            self._keep_small(self._rows)
            self._rows[partition] = row
        return row

    def _keep_small(self, known: dict[Any, Any]) -> None:
        if len(known) >= DISKLESS_CACHED_ROWS_MAX:
            self._write_changes()
            known.clear()

    def partitions_of(self, topic_id: Uuid) -> list[int]:
        return [index for (index,) in self._db.execute(schema.PARTITIONS_OF, (topic_id,))]

    def producer(self, partition: TopicPartition, producer_id: int) -> Entries:
        row = self._row(partition)
        if row is None:
            return ()
        entries = self._producers.get((row.id, producer_id))
        if entries is None:
            found = self._db.execute(schema.PRODUCER, (row.id, producer_id)).fetchone()
            entries = _entries(found[0]) if found else ()
            self._keep_small(self._producers)
            self._producers[row.id, producer_id] = entries
        return entries

    def file(self, object_key: str) -> FileState | None:
        found = self._db.execute(schema.FILE, (object_key,)).fetchone()
        return _file(found) if found else None

    def answers(self, object_key: str) -> list[StoredAnswer] | None:
        found = self._db.execute(schema.ANSWERS, (object_key,)).fetchone()
        return [StoredAnswer(*one) for one in _ANSWER.iter_unpack(found[0])] if found else None

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]:
        row = self._row(partition)
        if row is not None:
            found = self._db.execute(schema.BATCHES, (row.id, from_offset))
            yield from map(BatchCoordinate.of_row, found)

    def batch_at_time(
        self, partition: TopicPartition, timestamp: int, from_offset: int
    ) -> BatchCoordinate | None:
        """A binary search: the largest timestamp so far grows with the offset.

        A deleted batch may have had the largest timestamp, so the search continues from there.
        """
        row = self._row(partition)
        if row is None:
            return None
        low, high = from_offset, row.log.high_watermark - 1
        first = None
        while low <= high:
            middle = (low + high) // 2
            found = self._db.execute(schema.MAX_SEEN, (row.id, middle)).fetchone()
            if found is None:
                high = middle - 1
            elif found[1] >= timestamp:
                first, high = found[0], middle - 1
            else:
                low = found[0] + 1
        if first is None:
            return None
        at = self._db.execute(schema.BATCH_AT_TIME, (row.id, first, timestamp)).fetchone()
        return BatchCoordinate.of_row(at) if at else None

    def latest_batch(self, partition: TopicPartition, from_offset: int) -> BatchCoordinate | None:
        row = self._row(partition)
        if row is None:
            return None
        likely = self.batch_at_time(partition, row.max_seen_ms, from_offset)
        if likely is not None:
            return likely
        found = self._db.execute(schema.LATEST_BATCH, (row.id, from_offset)).fetchone()
        return BatchCoordinate.of_row(found) if found else None

    def split_page(
        self, partition: TopicPartition, span: Span, split_bytes: int, limit: int
    ) -> SplitPage:
        row = self._row(partition)
        if row is None:
            return SplitPage((), 0, 0, span.start)
        values = {
            "id": row.id,
            **span._asdict(),
            "split_bytes": split_bytes,
            "limit": limit,
        }
        return page_of_groups(self._db.execute(schema.SPLIT_PAGE, values), span)

    def free_files(
        self, marked_before_ms: int, limit: int, coordinator_id: int, *, waiting: bool = False
    ) -> list[FileState]:
        first = str(coordinator_id)
        values = (marked_before_ms, first, f"{first},%", not waiting, limit or -1)
        return [_file(row) for row in self._db.execute(schema.FREE_FILES, values)]

    def oldest_file_ms(self) -> int | None:
        oldest: int | None = self._db.execute(schema.OLDEST_FILE).fetchone()[0]
        return oldest

    def list_files(self, after: str, limit: int) -> list[tuple[FileState, int]]:
        page = (after, limit)
        live_bytes = dict(self._db.execute(schema.ALL_LIVE_BYTES, page).fetchall())
        files = [_file(row) for row in self._db.execute(schema.LIST_FILES, page)]
        return [(file, live_bytes.get(file.log_offset, 0)) for file in files]

    def counts(self) -> Counts:
        return Counts(*self._db.execute(schema.ALL_COUNTS).fetchone())

    def all_partitions(self) -> Iterator[tuple[TopicPartition, str, LogState]]:
        for topic_id, index, name, *log in self._db.execute(schema.ALL_PARTITIONS):
            yield (Uuid(topic_id), index), name, LogState._make(log)

    def all_files(self) -> Iterator[tuple[FileState, list[tuple[TopicPartition, BatchCoordinate]]]]:
        batches = self._db.execute(schema.ALL_BATCHES)
        pending = batches.fetchone()
        for row in self._db.execute(schema.ALL_FILES):
            file = _file(row)
            held: list[tuple[TopicPartition, BatchCoordinate]] = []
            while pending is not None and pending[0] == file.log_offset:
                _, topic_id, index, number, *placed = pending
                batch = BatchCoordinate.of_row((number, file.object_key, *placed))
                held.append(((Uuid(topic_id), index), batch))
                pending = batches.fetchone()
            yield file, held

    def all_producers(self) -> Iterator[tuple[TopicPartition, int, Entries]]:
        for topic_id, index, producer_id, entries in self._db.execute(schema.ALL_PRODUCERS):
            yield (Uuid(topic_id), index), producer_id, _entries(entries)

    # Changing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._write_changes()
            self._db.execute(schema.SET_APPLIED, self._applied)
            self._db.execute("COMMIT")
        except BaseException:
            # The values in memory are now ahead of the tables.
            self._forget_known()
            if self._db.in_transaction:  # a full disk has already ended it
                self._db.execute("ROLLBACK")
            self._applied = schema.applied(self._db)
            raise

    def _write_changes(self) -> None:
        self._db.executemany(schema.ADD_BATCH, self._new_batches)
        self._db.executemany(
            schema.SET_LOG,
            [(*row.log, row.max_seen_ms, row.id) for row in self._changed_rows.values()],
        )
        self._db.executemany(
            schema.SET_PRODUCER,
            [_producer_row(owner, self._producers[owner]) for owner in self._changed_producers],
        )
        self._forget_changes()

    def _forget_changes(self) -> None:
        self._new_batches.clear()
        self._changed_rows.clear()
        self._changed_producers.clear()

    def _forget_known(self) -> None:
        self._forget_changes()
        self._rows.clear()
        self._producers.clear()

    def set_applied(self, applied: Applied) -> None:
        self._applied = applied

    def create_partition(self, partition: TopicPartition, name: str) -> None:
        self._db.execute(schema.CREATE_PARTITION, (*partition, name))

    def set_log(self, partition: TopicPartition, log: LogState) -> None:
        row = self._row(partition)
        if row is not None:
            row.log = log
            self._changed_rows[row.id] = row

    def drop_partition(self, partition: TopicPartition) -> None:
        row = self._row(partition)
        if row is not None:
            self._write_changes()
            self._db.execute(schema.DROP_PRODUCERS, (row.id,))
            self._db.execute(schema.DROP_PARTITION, (row.id,))
            self._forget_known()

    def add_batches(
        self, partition: TopicPartition, log_offset: int, batches: Sequence[Committed]
    ) -> None:
        row = self._row(partition)
        if row is None:
            return
        for (_, *place), stamp in batches:
            row.max_seen_ms = max(row.max_seen_ms, stamp.timestamp)
            self._new_batches.append((row.id, row.max_seen_ms, log_offset, *place, *stamp))
        self._changed_rows[row.id] = row

    def remove_batches(
        self, partition: TopicPartition, below_offset: int | None
    ) -> tuple[dict[int, int], int]:
        row = self._row(partition)
        if row is None:
            return {}, 0
        self._write_changes()
        span = (row.id, schema.OFFSET_MAX if below_offset is None else below_offset)
        counts: dict[int, int] = {}
        byte_size = 0
        for log_offset, count, size in self._db.execute(schema.COUNT_BATCHES, span):
            counts[log_offset] = count
            byte_size += size
        if counts:
            self._db.execute(schema.REMOVE_BATCHES, span)
        return counts, byte_size

    def set_producer(self, partition: TopicPartition, producer_id: int, entries: Entries) -> None:
        row = self._row(partition)
        if row is not None:
            owner = (row.id, producer_id)
            self._keep_small(self._producers)
            self._producers[owner] = entries
            self._changed_producers.add(owner)

    def add_file(self, file: FileState, answers: Iterable[StoredAnswer]) -> None:
        owners = ",".join(map(str, file.coordinator_ids))
        self._db.execute(
            schema.ADD_FILE,
            (
                file.object_key,
                file.format,
                file.size,
                file.uploader_broker_id,
                owners,
                file.log_offset,
                file.committed_ms,
                file.live_batches,
                file.deletable_since_ms,
                file.received,
            ),
        )
        packed = b"".join([_ANSWER.pack(*answer) for answer in answers])
        self._db.execute(schema.ADD_ANSWERS, (file.log_offset, file.committed_ms, packed))

    def set_received(self, object_key: str) -> None:
        self._db.execute(schema.SET_RECEIVED, (object_key,))

    def release_batches(self, log_offset: int, count: int, now_ms: int) -> None:
        self._db.execute(schema.RELEASE, (count, count, now_ms, log_offset))

    def forget_file(self, object_key: str) -> None:
        self._db.execute(schema.FORGET_ANSWERS, (object_key,))
        self._db.execute(schema.FORGET_FILE, (object_key,))

    def expire(self, producers_before_ms: int, answers_before_ms: int) -> None:
        self._write_changes()
        self._producers.clear()
        self._db.execute(schema.EXPIRE_PRODUCERS, (producers_before_ms,))
        self._db.execute(schema.EXPIRE_ANSWERS, (answers_before_ms,))

    @contextmanager
    def snapshot_view(self) -> Iterator[StateView]:
        view = SqliteState(self._path, self._identity, read_only=True)
        try:
            yield view
        finally:
            view.close()

    def checkpoint(self) -> int:
        """Not as part of a commit: every caller that waits for the commit would wait for this
        too."""
        with closing(sqlite3.connect(self._path)) as db:
            _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages)

    def close(self) -> None:
        self._db.close()


def remove_database(path: Path) -> None:
    """Discard the cache; it is rebuilt from the log."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _file(row: tuple[Any, ...]) -> FileState:
    coordinator_ids = tuple(int(one) for one in row[4].split(",") if one)
    key, format_, size, uploader, _, log_offset, committed_ms, live, since_ms, received = row
    first = (key, format_, size, uploader, coordinator_ids)
    return FileState(*first, log_offset, committed_ms, live, since_ms, bool(received))


def _producer_row(owner: tuple[int, int], entries: Entries) -> tuple[int, int, int, bytes]:
    packed = b"".join([_ENTRY.pack(*entry) for entry in entries])
    return (*owner, entries[-1].log_append_timestamp, packed)


def _entries(packed: bytes) -> Entries:
    return tuple(ProducerEntry(*entry) for entry in _ENTRY.iter_unpack(packed))
