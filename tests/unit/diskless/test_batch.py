"""The parts of a batch keep their fields through messages, records and rows."""

from __future__ import annotations

from skylog.diskless.batch import (
    LOG_APPEND_TIME,
    NO_PRODUCER,
    BatchCoordinate,
    BatchToCommit,
    Extent,
    ProducerStamp,
    Stamp,
)
from skylog.diskless.coordinator import wire
from skylog.diskless.coordinator.state import batch_id
from skylog.diskless.coordinator.tail import Added
from skylog.diskless.rules.commits import ProducerEntry, entry_of
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.ids import Uuid
from skylog.wire.messages.diskless_find_batches_response import DisklessBatchCoordinate

# All values differ, so that swapped fields are found.
EXTENT = Extent(object_key="k", byte_offset=32, byte_size=400)
STAMP = Stamp(
    base_offset=50,
    last_offset=61,
    log_append_timestamp=700,
    batch_max_timestamp=800,
    timestamp_type=LOG_APPEND_TIME,
    magic=2,
)
PRODUCER = ProducerStamp(producer_id=11, producer_epoch=12, base_sequence=13, last_sequence=24)


def test_a_commit_changes_offsets_and_time_only() -> None:
    assert STAMP.record_count == 12
    changed = STAMP._replace(base_offset=100, last_offset=111, log_append_timestamp=9)
    assert STAMP.committed(base_offset=100, now_ms=9) == changed


def test_a_batch_to_commit_as_a_message() -> None:
    batch = BatchToCommit(
        topic_id=Uuid(b"t" * 16),
        partition=3,
        extent=EXTENT,
        stamp=STAMP._replace(log_append_timestamp=-1),
        producer=PRODUCER,
        request_id=5,
    )
    message = wire.commit_batch(batch)
    assert (message.byte_offset, message.size) == (32, 400)
    assert (message.base_offset, message.last_offset) == (50, 61)
    assert (message.batch_max_timestamp, message.timestamp_type, message.magic) == (800, 1, 2)
    assert (message.producer_id, message.producer_epoch) == (11, 12)
    assert (message.base_sequence, message.last_sequence) == (13, 24)
    assert wire.batch_to_commit(message, "k") == batch


def test_a_batch_in_the_record_of_its_commit() -> None:
    record = wire.committed_batch(EXTENT, STAMP, PRODUCER)
    assert (record.assigned_base_offset, record.assigned_last_offset) == (50, 61)
    assert (record.log_append_timestamp, record.batch_max_timestamp) == (700, 800)
    assert (record.producer_id, record.producer_epoch) == (11, 12)
    assert (record.base_sequence, record.last_sequence) == (13, 24)
    assert wire.committed(record, "k") == (EXTENT, STAMP)
    without = wire.committed_batch(EXTENT, STAMP, PRODUCER._replace(producer_epoch=-1))
    assert without.producer_id == NO_PRODUCER.producer_id


def test_a_coordinate_as_a_message_a_row_and_packed() -> None:
    found = BatchCoordinate(batch_id=batch_id(7, 32), extent=EXTENT, stamp=STAMP)
    message = DisklessBatchCoordinate(*wire.coordinate_fields(found))
    assert (message.object_key, message.byte_offset, message.byte_size) == EXTENT
    assert (message.base_offset, message.log_append_timestamp, message.magic) == (50, 700, 2)
    assert wire.coordinate(message) == found
    assert BatchCoordinate.of_row((found.batch_id, *EXTENT, *STAMP)) == found
    assert Added("k", 7, [(EXTENT, STAMP)]).coordinates() == [found]


def test_rows_have_a_value_for_every_column() -> None:
    fields = ("batch_id", *Extent._fields, *Stamp._fields)
    found = BatchCoordinate.of_row(tuple(range(len(fields))))
    for value, name in enumerate(fields):
        part = next(p for p in (found, found.extent, found.stamp) if name in p._fields)
        assert getattr(part, name) == value


def test_what_is_remembered_of_a_producer() -> None:
    assert entry_of(PRODUCER, 50, 700) == ProducerEntry(
        producer_epoch=12,
        base_sequence=13,
        last_sequence=24,
        assigned_offset=50,
        log_append_timestamp=700,
    )


def test_a_log_grows_at_its_end() -> None:
    log = LogState(log_start_offset=1, high_watermark=2, byte_size=3, wal_start_offset=4)
    assert log.grown(high_watermark=8, byte_size=9) == log._replace(high_watermark=8, byte_size=9)
