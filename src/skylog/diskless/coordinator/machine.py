"""The diskless coordinator as a machine: pure decisions over its state.

``handle`` decides on a write, given the committed state plus what is pending, and returns records;
``note`` adds them to the overlay, under their future offsets. ``apply`` applies committed records
to the state. ``read`` and ``find`` use committed state only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skylog.diskless.coordinator import apply as records
from skylog.diskless.coordinator import queries
from skylog.diskless.coordinator.commit import (
    PlannedCommit,
    join_pending,
    plan_commit,
    repeat_committed,
)
from skylog.diskless.coordinator.overlay import Overlay
from skylog.diskless.coordinator.requests import (
    CommitFile,
    CreatePartitions,
    DeleteRecords,
    DeleteTopics,
    EnforceRetention,
    Find,
    ForgetFiles,
    PinFiles,
    PruneTo,
    ReceiveFile,
    ReleasePins,
    StrictRead,
    Write,
)
from skylog.diskless.coordinator.state import Applied, Pin, StateStore
from skylog.diskless.plane import (
    DeleteRecordsResult,
    FileToCommit,
    PruneResult,
    RetentionResult,
    TopicPartition,
)
from skylog.diskless.rules import offsets, pins
from skylog.diskless.rules.commits import check_file
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.wire.messages.file_committed_record import FileCommittedRecord
from skylog.wire.messages.file_pinned_record import FilePinnedRecord
from skylog.wire.messages.file_received_record import FileReceivedRecord
from skylog.wire.messages.partition_created_record import PartitionCreatedRecord
from skylog.wire.messages.records_deleted_record import RecordsDeletedRecord
from skylog.wire.messages.records_pruned_record import RecordsPrunedRecord
from skylog.wire.messages.topic_deleted_record import TopicDeletedRecord
from skylog.wire.schema import Message

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(frozen=True, slots=True)
class Decision:
    """The records of one write, one atomic batch, and its reply.

    ``joined``: the reply is that of an earlier write which may still be lost.
    """

    reply: Any
    records: Sequence[Message] = ()
    joined: bool = False
    commit: PlannedCommit | None = None


class CoordinatorMachine:
    """One coordinator. Used by one thread at a time."""

    def __init__(self, coordinator_id: int, state: StateStore, plane_rules: PlaneRules) -> None:
        self.coordinator_id = coordinator_id
        self.state = state
        self._rules = plane_rules
        self._overlay = Overlay(state)

    @property
    def pending_changes(self) -> int:
        return len(self._overlay)

    # Writes

    def handle(self, request: Write, now_ms: int) -> Decision:
        """A KafkaError refuses the whole request.

        Later writes must not see records that are refused afterwards because the log takes no batch
        of that size: so ``note`` is a separate step.
        """
        match request:
            case CommitFile(file):
                return self._commit(file, now_ms)
            case CreatePartitions():
                return self._create(request)
            case DeleteTopics():
                return self._delete_topics(request)
            case DeleteRecords():
                return self._delete_records(request)
            case EnforceRetention():
                return self._enforce_retention(request, now_ms)
            case PruneTo():
                return self._prune(request)
            case ReceiveFile():
                return self._receive(request, now_ms)
            case PinFiles():
                return self._pin(request, now_ms)
            case ReleasePins():
                return self._release_pins(request)

    def _commit(self, file: FileToCommit, now_ms: int) -> Decision:
        check_file(file)
        pending = self._overlay.pending_file(file.object_key)
        if pending is not None:
            return Decision(join_pending(file, pending), joined=True)
        known = self._overlay.file(file.object_key) or self._committed_pin(file.object_key)
        if known is not None:
            return Decision(repeat_committed(file, known, self._overlay))
        planned = plan_commit(file, self.coordinator_id, self._overlay, now_ms, self._rules)
        return Decision(planned.plan.results, [planned.record], commit=planned)

    def _committed_pin(self, object_key: str) -> Pin | None:
        """The pin remembers a file that has been deleted and forgotten."""
        pin = self._overlay.pin(object_key)
        return pin if pin is not None and pin.is_committed else None

    def _create(self, request: CreatePartitions) -> Decision:
        created: list[Message] = []
        for topic_id, name, indexes in request.topics:
            created += [
                PartitionCreatedRecord(topic_id, name, index)
                for index in indexes
                if self._overlay.log((topic_id, index)) is None
            ]
        return Decision(None, created)

    def _delete_topics(self, request: DeleteTopics) -> Decision:
        known = [
            one for one in dict.fromkeys(request.topic_ids) if self._overlay.partitions_of(one)
        ]
        return Decision(None, [TopicDeletedRecord(topic_id) for topic_id in known])

    def _delete_records(self, request: DeleteRecords) -> Decision:
        results: list[DeleteRecordsResult] = []
        starts: dict[TopicPartition, int] = {}
        for topic_id, index, offset in request.requests:
            log = self._overlay.log((topic_id, index))
            target = None if log is None else offsets.delete_target(offset, log)
            if log is None:
                results.append(DeleteRecordsResult(UNKNOWN))
            elif target is None:
                results.append(DeleteRecordsResult(ErrorCode.OFFSET_OUT_OF_RANGE))
            else:
                start = max(target, starts.get((topic_id, index), log.log_start_offset))
                if start > log.log_start_offset:
                    starts[topic_id, index] = start
                results.append(DeleteRecordsResult(ErrorCode.NONE, start))
        return Decision(results, _deleted(starts))

    def _enforce_retention(self, request: EnforceRetention, now_ms: int) -> Decision:
        results: list[RetentionResult] = []
        starts: dict[TopicPartition, int] = {}
        for topic_id, index, retention_bytes, retention_ms in request.requests:
            partition = (topic_id, index)
            pending = self._overlay.log(partition)
            log = self.state.log(partition)
            if pending is None:
                results.append(RetentionResult(UNKNOWN))
                continue
            # Only committed batches count; while a deletion is pending, the counts are too high.
            if log is None or partition in starts or self._overlay.starts_pending(partition):
                start = starts.get(partition, pending.log_start_offset)
                results.append(RetentionResult(ErrorCode.NONE, log_start_offset=start))
                continue
            limits = offsets.RetentionLimits(retention_bytes, retention_ms)
            result = queries.retention(
                self.state, partition, log, limits, now_ms, request.max_batches
            )
            results.append(result)
            if result.log_start_offset > log.log_start_offset:
                starts[partition] = result.log_start_offset
        return Decision(results, _deleted(starts))

    def _prune(self, request: PruneTo) -> Decision:
        results: list[PruneResult] = []
        starts: dict[TopicPartition, int] = {}
        left = request.max_batches
        for topic_id, index, offset in request.requests:
            partition = (topic_id, index)
            log = self._overlay.log(partition)
            if log is None:
                results.append(PruneResult(UNKNOWN))
            elif offset > log.high_watermark:
                results.append(PruneResult(ErrorCode.OFFSET_OUT_OF_RANGE))
            else:
                reached, count = queries.prunable(self.state, partition, offset, left)
                left -= count
                start = max(reached, starts.get(partition, log.wal_start_offset))
                if start > log.wal_start_offset:
                    starts[partition] = start
                results.append(PruneResult(ErrorCode.NONE, start))
        return Decision(results, [RecordsPrunedRecord(*at, start) for at, start in starts.items()])

    def _receive(self, request: ReceiveFile, now_ms: int) -> Decision:
        """Take over a file. One that is unknown here may still be committed for a while."""
        file = request.file
        if self.coordinator_id not in file.coordinator_ids:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"no owner of {file.object_key}")
        known = self._overlay.file(file.object_key)
        if self._overlay.is_received(file.object_key) or (known is not None and known.received):
            return Decision(None)
        unclaimed = known is None or request.unclaimed
        if unclaimed and self._may_be_committed(file.object_key, now_ms):
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{file.object_key} may still be committed"
            )
        record = FileReceivedRecord(
            file.object_key,
            file.format,
            file.size,
            file.uploader_broker_id,
            list(file.coordinator_ids),
        )
        return Decision(None, [record])

    def _may_be_committed(self, object_key: str, now_ms: int) -> bool:
        if self._overlay.pending_file(object_key) is not None:
            return True
        pin = self._overlay.pin(object_key)
        if pin is not None and pins.keeps(pin.expires_ms, now_ms, self._rules):
            return True
        created_ms = ObjectKey.parse(object_key).created_ms or 0
        limit_ms = self._rules.commit_age_ms_max + self._rules.commit_ahead_ms_max
        return now_ms - created_ms <= limit_ms

    def _pin(self, request: PinFiles, now_ms: int) -> Decision:
        results: list[KafkaError | None] = []
        pinned: list[Message] = []
        for one in request.pins:
            known = self._overlay.pin(one.object_key)
            try:
                pins.check_pin(one, now_ms, self._rules, known.expires_ms if known else None)
                if any(self._overlay.log(partition) is None for partition in one.partitions):
                    raise KafkaError(UNKNOWN)
            except KafkaError as error:
                results.append(error)
                continue
            results.append(None)
            pinned.append(
                FilePinnedRecord(one.object_key, one.writer_id, one.epoch, one.expires_ms)
            )
        return Decision(results, pinned)

    def _release_pins(self, request: ReleasePins) -> Decision:
        """Pending pins included: the record of a release comes after theirs."""
        known = [key for key in request.keys if self._overlay.may_be_pinned(key)]
        return Decision(None, [FilePinnedRecord(key, expires_ms=-1) for key in known])

    # Pending and committed records

    def note(self, decision: Decision, offset: int) -> None:
        """The records are about to be appended at ``offset``: the next write sees them."""
        for index, record in enumerate(decision.records):
            self._note(record, offset + index, decision)

    def _note(self, record: Message, offset: int, decision: Decision) -> None:
        overlay = self._overlay
        match record:
            case FileCommittedRecord() if decision.commit is not None:
                decision.commit.note(overlay, offset)
            case PartitionCreatedRecord():
                partition = (record.topic_id, record.partition_index)
                overlay.set_log(offset, partition, offsets.LogState())
            case TopicDeletedRecord():
                for index in overlay.partitions_of(record.topic_id):
                    overlay.set_log(offset, (record.topic_id, index), None)
            case RecordsDeletedRecord():
                self._note_start(
                    offset, (record.topic_id, record.partition_index), record.new_log_start_offset
                )
            case RecordsPrunedRecord():
                partition = (record.topic_id, record.partition_index)
                log = overlay.log(partition)
                if log is not None:
                    start = max(log.wal_start_offset, record.new_wal_start_offset)
                    overlay.set_log(offset, partition, log._replace(wal_start_offset=start))
            case FileReceivedRecord():
                overlay.receive(offset, record.object_key)
            case FilePinnedRecord():
                overlay.note_pin(offset, record.object_key)

    def _note_start(self, offset: int, partition: TopicPartition, start: int) -> None:
        log = self._overlay.log(partition)
        if log is not None:
            wal_start = max(log.wal_start_offset, start)
            log = log._replace(log_start_offset=start, wal_start_offset=wal_start)
            self._overlay.set_log(offset, partition, log)

    def apply(self, batch: Sequence[Message], applied: Applied) -> None:
        """One committed batch, whose records end before ``applied.end_offset``."""
        offset = applied.end_offset - len(batch)
        for index, record in enumerate(batch):
            records.apply(self.state, record, offset + index, applied.timestamp_ms, self._rules)
        before_ms = self.state.applied.timestamp_ms
        timestamp_ms = max(before_ms, applied.timestamp_ms)
        records.expire(self.state, before_ms, timestamp_ms, self._rules)
        self.state.set_applied(applied._replace(timestamp_ms=timestamp_ms))

    def expires_by(self, timestamp_ms: int) -> bool:
        """Whether a batch of that time triggers an expiry, which may delete much."""
        return records.is_expiry_due(self.state.applied.timestamp_ms, timestamp_ms)

    def restore(self, batch: Sequence[Message], end_offset: int, timestamp_ms: int) -> None:
        """A part of a snapshot that replaces the log up to ``end_offset``."""
        for record in batch:
            records.apply(self.state, record, end_offset - 1, timestamp_ms, self._rules)
        self.state.set_applied(Applied(end_offset, timestamp_ms))

    def committed(self) -> None:
        """The state's transaction is done: its contents are no longer pending."""
        self._overlay.forget_before(self.state.applied.end_offset)

    # Reads

    def read(self, request: StrictRead, now_ms: int) -> Any:
        return queries.read(self.state, request, now_ms, self._rules)

    def find(self, request: Find) -> Any:
        return queries.find(self.state, request, self.coordinator_id)

    def forget(self, request: ForgetFiles) -> None:
        with self.state.transaction():
            for key in request.keys:
                file = self.state.file(key)
                if file is not None and not file.live_batches:
                    self.state.forget_file(key)


def _deleted(starts: dict[TopicPartition, int]) -> list[Message]:
    return [RecordsDeletedRecord(*partition, start) for partition, start in starts.items()]
