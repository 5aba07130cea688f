"""The two stores of a coordinator's state give the same answers; SQLite finds them by index."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.batch import Extent, Stamp
from skylog.diskless.coordinator import schema
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.sqlite import SqliteState
from skylog.diskless.coordinator.state import Applied, FileState, StateStore, digest
from skylog.diskless.rules.commits import ProducerEntry
from skylog.diskless.rules.offsets import LogState
from tests.unit.diskless.coordinator.support import T0, T1


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStore]:
    opened = MemoryState() if request.param == "memory" else sqlite_at(tmp_path)
    yield opened
    opened.close()


def sqlite_at(directory: Path) -> SqliteState:
    return SqliteState(directory / "state.sqlite", "log")


def fill(store: StateStore, timestamps: list[int], dropped: int = 0) -> None:
    """One batch of one record per timestamp; the first ones are deleted again."""
    with store.transaction():
        store.create_partition(T0, "a")
        for offset, timestamp in enumerate(timestamps):
            store.add_file(FileState(f"key-{offset}", 1, 100, -1, (0,), offset, timestamp, 1), ())
            extent = Extent(object_key=f"key-{offset}", byte_offset=1, byte_size=99)
            stamp = Stamp(offset, offset, log_append_timestamp=5, batch_max_timestamp=timestamp)
            store.add_batches(T0, offset, [(extent, stamp)])
        store.set_log(T0, LogState(high_watermark=len(timestamps), byte_size=99 * len(timestamps)))
    with store.transaction():
        counts, _ = store.remove_batches(T0, dropped)
        for log_offset, count in counts.items():
            store.release_batches(log_offset, count, 77)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=12),
    st.integers(0, 12),
    st.integers(0, 10),
    st.integers(0, 12),
)
def test_both_find_the_same_batch_by_time(
    timestamps: list[int], dropped: int, wanted: int, from_offset: int
) -> None:
    memory = MemoryState()
    with tempfile.TemporaryDirectory() as directory:
        on_disk = sqlite_at(Path(directory))
        fill(memory, timestamps, dropped)
        fill(on_disk, timestamps, dropped)
        for store in (memory, on_disk):
            assert store.partitions_of(T0[0]) == [0]
        at_time = [s.batch_at_time(T0, wanted, from_offset) for s in (memory, on_disk)]
        assert at_time[0] == at_time[1]
        latest = [s.latest_batch(T0, from_offset) for s in (memory, on_disk)]
        assert latest[0] == latest[1]
        assert memory.free_files(78, 3, 0) == on_disk.free_files(78, 3, 0)
        assert memory.oldest_file_ms() == on_disk.oldest_file_ms()
        assert list(memory.batches(T0, from_offset)) == list(on_disk.batches(T0, from_offset))
        assert digest(memory) == digest(on_disk)
        on_disk.close()


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path)
    fill(store, [1, 2, 3])
    before = digest(store)
    with pytest.raises(RuntimeError), store.transaction():
        store.set_log(
            T0, LogState(log_start_offset=2, high_watermark=3, byte_size=99, wal_start_offset=2)
        )
        store.remove_batches(T0, 2)
        store.set_producer(T0, 1, (ProducerEntry(0, 0, 0, 0, 0),))
        store.set_applied(Applied(99))
        raise RuntimeError
    assert digest(store) == before
    assert store.producer(T0, 1) == ()
    store.close()


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path)
    fill(store, [1, 2, 3])
    before = digest(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"), store.transaction():
        for number in range(1000):
            store.add_file(FileState(f"more-{number}", 1, 1, -1, (0,), 10 + number, 1, 1), ())
    assert digest(store) == before
    store.close()


def test_a_snapshot_view_stands_still(tmp_path: Path) -> None:
    # DC-40
    store = sqlite_at(tmp_path)
    fill(store, [1, 2, 3])
    with store.snapshot_view() as view:
        before = digest(view)
        with store.transaction():
            store.create_partition(T1, "a")
            store.set_applied(Applied(99))
        assert digest(view) == before
        assert view.applied == Applied()
    assert digest(store) != before
    store.close()


def test_a_dropped_partition_takes_its_producers_with_it(store: StateStore) -> None:
    with store.transaction():
        store.create_partition(T0, "a")
        store.create_partition(T1, "a")
        for partition in (T0, T1):
            store.set_producer(partition, 1, (ProducerEntry(0, 0, 0, 0, 0),))
        store.drop_partition(T0)
        store.create_partition(T0, "a")
    assert store.producer(T0, 1) == ()
    assert [partition for partition, *_ in store.all_producers()] == [T1]


QUERIES = {
    name: statement
    for name, statement in vars(schema).items()
    if isinstance(statement, str)
    and statement.startswith(("SELECT", "UPDATE", "DELETE"))
    and not name.startswith("ALL_")
    and "applied" not in statement
    and name != "EXPIRE_ANSWERS"  # once an hour
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_query_uses_an_index(name: str, tmp_path: Path) -> None:
    # DC-27
    sqlite_at(tmp_path).close()
    db = sqlite3.connect(tmp_path / "state.sqlite")
    statement = QUERIES[name]
    plan = db.execute(f"EXPLAIN QUERY PLAN {statement}", (0,) * statement.count("?")).fetchall()
    db.close()
    scans = [step[3] for step in plan if step[3].startswith("SCAN") and "INDEX" not in step[3]]
    assert scans == []
