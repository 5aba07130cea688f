"""Pure: applies a record of the metadata log to the state.

Total: no record is refused. The same code runs on the leader once a record is committed, on a
replay and on a snapshot; it depends only on the record, so the results are the same.
"""

from __future__ import annotations

from typing import Final

from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.diskless.coordinator.pin_store import apply_pin, note_committed
from skylog.diskless.coordinator.state import FileState, StateStore, StoredAnswer
from skylog.diskless.coordinator.wire import committed
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.commits import ProducerEntry, remember, unexpired
from skylog.diskless.rules.pins import is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.limits import DISKLESS_ANSWERS_KEPT_MS
from skylog.wire.messages.file_committed_record import CommittedBatch, FileCommittedRecord
from skylog.wire.messages.file_pinned_record import FilePinnedRecord
from skylog.wire.messages.file_received_record import FileReceivedRecord
from skylog.wire.messages.partition_created_record import PartitionCreatedRecord
from skylog.wire.messages.producer_state_record import ProducerStateRecord
from skylog.wire.messages.records_deleted_record import RecordsDeletedRecord
from skylog.wire.messages.records_pruned_record import RecordsPrunedRecord
from skylog.wire.messages.topic_deleted_record import TopicDeletedRecord
from skylog.wire.schema import Message

_EXPIRY_INTERVAL_MS: Final = 60 * 60 * 1000


def apply(
    store: StateStore, record: Message, offset: int, timestamp_ms: int, rules: PlaneRules
) -> None:
    """``offset`` and ``timestamp_ms`` are the record's in the log."""
    match record:
        case FileCommittedRecord():
            _commit(store, record, offset, timestamp_ms, rules)
        case PartitionCreatedRecord():
            _create(store, record)
        case TopicDeletedRecord():
            for index in store.partitions_of(record.topic_id):
                _drop(store, (record.topic_id, index), timestamp_ms)
        case RecordsDeletedRecord():
            partition = (record.topic_id, record.partition_index)
            _start_at(store, partition, record.new_log_start_offset, timestamp_ms)
        case RecordsPrunedRecord():
            partition = (record.topic_id, record.partition_index)
            _remove_below(store, partition, record.new_wal_start_offset, timestamp_ms)
        case FileReceivedRecord():
            _receive(store, record, offset, timestamp_ms)
        case ProducerStateRecord():
            _set_producer(store, record)
        case FilePinnedRecord():
            apply_pin(store, record)


def expire(store: StateStore, before_ms: int, now_ms: int, rules: PlaneRules) -> None:
    """Drop old producers, results and pins, once an hour by the log's time.

    ``before_ms`` is the time up to which the log was applied before, ``now_ms`` after.
    """
    if is_expiry_due(before_ms, now_ms):
        kept_ms = max(DISKLESS_ANSWERS_KEPT_MS, 2 * rules.commit_age_ms_max)
        store.expire(now_ms - rules.producer_expiration_ms, now_ms - kept_ms)
        store.pins.expire(now_ms - rules.pin_grace_ms)


def is_expiry_due(before_ms: int, now_ms: int) -> bool:
    return before_ms // _EXPIRY_INTERVAL_MS < now_ms // _EXPIRY_INTERVAL_MS


def _create(store: StateStore, record: PartitionCreatedRecord) -> None:
    partition = (record.topic_id, record.partition_index)
    if store.log(partition) is None:
        store.create_partition(partition, record.name)


def _commit(
    store: StateStore,
    record: FileCommittedRecord,
    offset: int,
    timestamp_ms: int,
    rules: PlaneRules,
) -> None:
    known = store.file(record.object_key)
    if known is not None:
        if known.live_batches:
            return
        # Its object was deleted; replicas that have applied the deletion no longer know the file.
        store.forget_file(record.object_key)
    log_offset = offset if record.log_offset < 0 else record.log_offset
    committed_ms = timestamp_ms if record.committed_ms < 0 else record.committed_ms
    answers = [
        StoredAnswer(
            answer.byte_offset, answer.error_code, answer.base_offset, answer.log_append_time
        )
        for answer in record.answers
    ]
    place = (record.object_key, log_offset)
    live = 0
    for topic in record.topics:
        for part in topic.partitions:
            partition = (topic.topic_id, part.partition_index)
            answers += [
                StoredAnswer(
                    batch.byte_offset,
                    0,
                    batch.assigned_base_offset,
                    batch.log_append_timestamp if batch.timestamp_type == LOG_APPEND_TIME else -1,
                )
                for batch in part.batches
            ]
            live += _add_batches(store, partition, part.batches, place, rules)
    free_since_ms = timestamp_ms if record.deletable_since_ms < 0 else record.deletable_since_ms
    file = FileState(
        record.object_key,
        record.object_format,
        record.file_size,
        record.uploader_broker_id,
        tuple(record.owner_ids),
        log_offset,
        committed_ms,
        live,
        -1 if live else free_since_ms,
        record.received,
    )
    store.add_file(file, answers)
    if is_staged(record.object_key):
        note_committed(store, file.object_key, file.size, file.format, answers)


def _add_batches(
    store: StateStore,
    partition: TopicPartition,
    batches: list[CommittedBatch],
    place: tuple[str, int],
    rules: PlaneRules,
) -> int:
    """``place``: the object of the batches, and the log offset of its commit."""
    log = store.log(partition)
    if log is None:
        return 0
    object_key, log_offset = place
    high_watermark, byte_size = log.high_watermark, log.byte_size
    added = []
    for batch in batches:
        if batch.assigned_base_offset < high_watermark:
            continue
        high_watermark = batch.assigned_last_offset + 1
        byte_size += batch.byte_size
        added.append(committed(batch, object_key))
        if batch.producer_id >= 0:
            _remember(store, partition, batch, rules)
    store.add_batches(partition, log_offset, added)
    store.set_log(partition, log.grown(high_watermark=high_watermark, byte_size=byte_size))
    return len(added)


def _remember(
    store: StateStore, partition: TopicPartition, batch: CommittedBatch, rules: PlaneRules
) -> None:
    now_ms = batch.log_append_timestamp
    entries = store.producer(partition, batch.producer_id)
    entry = ProducerEntry(
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.assigned_base_offset,
        now_ms,
    )
    known = unexpired(entries, now_ms, rules.producer_expiration_ms)
    store.set_producer(partition, batch.producer_id, remember(known, entry))


def _set_producer(store: StateStore, record: ProducerStateRecord) -> None:
    entries = tuple(
        ProducerEntry(
            record.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.log_append_time,
        )
        for batch in record.batches
    )
    if entries:
        store.set_producer((record.topic_id, record.partition_index), record.producer_id, entries)


def _start_at(store: StateStore, partition: TopicPartition, offset: int, timestamp_ms: int) -> None:
    log = store.log(partition)
    if log is not None and offset > log.log_start_offset:
        store.set_log(partition, log._replace(log_start_offset=offset))
        _remove_below(store, partition, offset, timestamp_ms)


def _remove_below(
    store: StateStore, partition: TopicPartition, offset: int, timestamp_ms: int
) -> None:
    log = store.log(partition)
    if log is None:
        return
    freed = _release(store, partition, offset, timestamp_ms)
    store.set_log(
        partition,
        log._replace(
            byte_size=log.byte_size - freed,
            wal_start_offset=max(log.wal_start_offset, offset),
            # Only a snapshot starts a partition beyond batches that it no longer has.
            high_watermark=max(log.high_watermark, offset),
        ),
    )


def _drop(store: StateStore, partition: TopicPartition, timestamp_ms: int) -> None:
    _release(store, partition, None, timestamp_ms)
    store.drop_partition(partition)


def _release(
    store: StateStore, partition: TopicPartition, below_offset: int | None, timestamp_ms: int
) -> int:
    counts, byte_size = store.remove_batches(partition, below_offset)
    for log_offset, count in counts.items():
        store.release_batches(log_offset, count, timestamp_ms)
    return byte_size


def _receive(store: StateStore, record: FileReceivedRecord, offset: int, timestamp_ms: int) -> None:
    if store.file(record.object_key) is not None:
        store.set_received(record.object_key)
        return
    file = FileState(
        record.object_key,
        record.object_format,
        record.file_size,
        record.uploader_broker_id,
        tuple(record.owner_ids),
        offset,
        timestamp_ms,
        0,
        timestamp_ms,
        True,
    )
    store.add_file(file, ())
