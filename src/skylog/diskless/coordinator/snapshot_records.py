"""Pure: a state as the records that rebuild it. Old batches need no records of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from skylog.diskless.batch import NO_PRODUCER, BatchCoordinate
from skylog.diskless.coordinator.pin_store import pin_record
from skylog.diskless.coordinator.state import FileState, StateView, StoredAnswer
from skylog.diskless.coordinator.wire import committed_batch
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.commits import Entries
from skylog.wire.messages.file_committed_record import (
    CommittedAnswer,
    CommittedPartition,
    CommittedTopic,
    FileCommittedRecord,
)
from skylog.wire.messages.partition_created_record import PartitionCreatedRecord
from skylog.wire.messages.producer_state_record import ProducerBatch, ProducerStateRecord
from skylog.wire.messages.records_deleted_record import RecordsDeletedRecord
from skylog.wire.messages.records_pruned_record import RecordsPrunedRecord
from skylog.wire.schema import Message

_Held = list[tuple[TopicPartition, BatchCoordinate]]


def snapshot_records(view: StateView) -> Iterator[Message]:
    """Partitions, files with their live batches, where each log starts, producers, pins."""
    for partition, name, _log in view.all_partitions():
        yield PartitionCreatedRecord(partition[0], name, partition[1])
    for file, held in view.all_files():
        yield _file(file, held, view.answers(file.object_key) or ())
    for partition, _name, log in view.all_partitions():
        if log.log_start_offset:
            yield RecordsDeletedRecord(*partition, log.log_start_offset)
        if log.wal_start_offset > log.log_start_offset:
            yield RecordsPrunedRecord(*partition, log.wal_start_offset)
    for partition, producer_id, entries in view.all_producers():
        yield _producer(partition, producer_id, entries)
    for pin in view.pins.all():
        yield pin_record(pin)


def _file(file: FileState, held: _Held, answers: Iterable[StoredAnswer]) -> FileCommittedRecord:
    topics = []
    for topic_id, of_topic in groupby(held, key=lambda item: item[0][0]):
        partitions = []
        for index, of_partition in groupby(of_topic, key=lambda item: item[0][1]):
            # Without producers, whose state has its own records.
            batches = [
                committed_batch(batch.extent, batch.stamp, NO_PRODUCER) for _, batch in of_partition
            ]
            partitions.append(CommittedPartition(index, batches))
        topics.append(CommittedTopic(topic_id, partitions))
    stored = {batch.extent.byte_offset for _, batch in held}
    return FileCommittedRecord(
        file.object_key,
        file.format,
        file.size,
        file.uploader_broker_id,
        list(file.coordinator_ids),
        topics,
        log_offset=file.log_offset,
        committed_ms=file.committed_ms,
        deletable_since_ms=file.deletable_since_ms,
        received=file.received,
        answers=[
            CommittedAnswer(*answer) for answer in answers if answer.byte_offset not in stored
        ],
    )


def _producer(partition: TopicPartition, producer_id: int, entries: Entries) -> ProducerStateRecord:
    batches = [
        ProducerBatch(
            entry.base_sequence,
            entry.last_sequence,
            entry.assigned_offset,
            entry.log_append_timestamp,
        )
        for entry in entries
    ]
    return ProducerStateRecord(*partition, producer_id, entries[-1].producer_epoch, batches)
