"""Pure: one CommitFile, from the judged plan to its record and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skylog.diskless.coordinator.overlay import Overlay, PendingFile
from skylog.diskless.coordinator.state import FileState, Pin
from skylog.diskless.coordinator.tail import Added, Changed
from skylog.diskless.plane import CommitResult, FileToCommit, TopicPartition
from skylog.diskless.rules import commits
from skylog.diskless.rules.pins import is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.file_committed_record import (
    CommittedAnswer,
    CommittedBatch,
    CommittedPartition,
    CommittedTopic,
    FileCommittedRecord,
)

_NO_PRODUCER: Final = (-1, -1, -1, -1)


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """A new commit: its record, and what later writes must see of it."""

    file: FileToCommit
    plan: commits.CommitPlan
    record: FileCommittedRecord

    def note(self, overlay: Overlay, offset: int) -> None:
        overlay.add_commit(offset, self.plan.logs, self.plan.producers)
        pending = PendingFile(self.file.size, self.file.format, self.plan.results)
        overlay.add_file(offset, self.file.object_key, pending)

    def changed(self, offset: int) -> dict[TopicPartition, Changed] | None:
        """What it does to partitions, known before it is applied; None: to pins, too."""
        if is_staged(self.file.object_key):
            return None
        return {
            (topic.topic_id, part.partition_index): Changed(
                self.plan.logs[topic.topic_id, part.partition_index],
                [Added(self.file.object_key, offset, part.batches)],
            )
            for topic in self.record.topics
            for part in topic.partitions
        }


def plan_commit(
    file: FileToCommit, coordinator_id: int, overlay: Overlay, now_ms: int, rules: PlaneRules
) -> PlannedCommit:
    """A key that is new here; KafkaError refuses the whole file."""
    if coordinator_id not in file.coordinator_ids or len(set(file.coordinator_ids)) != len(
        file.coordinator_ids
    ):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"owners {list(file.coordinator_ids)} without {coordinator_id}",
        )
    pin = overlay.pin(file.object_key)
    commits.check_new(file, now_ms, rules, pin.expires_ms if pin else None)
    plan = commits.plan_commit(file, overlay.log, overlay.producer, now_ms, rules)
    return PlannedCommit(file, plan, _record(file, plan, now_ms))


def join_pending(file: FileToCommit, pending: PendingFile) -> list[CommitResult]:
    """The result of the commit in progress with the same key."""
    commits.check_repeat(file, pending.size, pending.format, len(pending.results))
    return commits.repeated(pending.results)


def repeat_committed(
    file: FileToCommit, known: FileState | Pin, overlay: Overlay
) -> list[CommitResult]:
    """The first result again. A file that arrived only by hand-over has none: it is refused."""
    pin = overlay.pin(file.object_key)
    answers = overlay.answers(file.object_key) or (pin.answers if pin else None) or None
    commits.check_repeat(file, known.size, known.format, len(answers) if answers else None)
    by_place = {answer.byte_offset: answer for answer in answers or ()}
    results = []
    for batch in file.batches:
        answer = by_place.get(batch.byte_offset)
        log = overlay.log(batch.topic_partition)
        if answer is None:
            results.append(
                CommitResult(ErrorCode.KAFKA_STORAGE_ERROR, message="can no longer be committed")
            )
        elif answer.error:
            results.append(CommitResult(ErrorCode(answer.error)))
        else:
            start = -1 if log is None else log.log_start_offset
            results.append(
                CommitResult(
                    ErrorCode.NONE, answer.base_offset, answer.log_append_time, start, True
                )
            )
    return results


def _record(file: FileToCommit, plan: commits.CommitPlan, now_ms: int) -> FileCommittedRecord:
    batches: dict[TopicPartition, list[CommittedBatch]] = {}
    for _, batch, base in plan.accepted:
        producer = _NO_PRODUCER
        if batch.idempotent:
            producer = (
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.last_sequence,
            )
        committed = CommittedBatch(
            batch.magic,
            batch.byte_offset,
            batch.size,
            base,
            base + batch.last_offset - batch.base_offset,
            now_ms,
            batch.batch_max_timestamp,
            batch.timestamp_type,
            *producer,
        )
        partition = (batch.topic_id, batch.partition)
        if partition in batches:
            batches[partition].append(committed)
        else:
            batches[partition] = [committed]
    topics: dict[Uuid, CommittedTopic] = {}
    for (topic_id, index), held in batches.items():
        topic = topics.setdefault(topic_id, CommittedTopic(topic_id, []))
        topic.partitions.append(CommittedPartition(index, held))
    return FileCommittedRecord(
        file.object_key,
        file.format,
        file.size,
        file.uploader_broker_id,
        list(file.coordinator_ids),
        list(topics.values()),
        answers=_answers(file, plan) if len(plan.accepted) < len(plan.results) else [],
    )


def _answers(file: FileToCommit, plan: commits.CommitPlan) -> list[CommittedAnswer]:
    """The results of batches that did not get new offsets; the others are in the records."""
    accepted_at = {accepted.position for accepted in plan.accepted}
    return [
        CommittedAnswer(
            file.batches[position].byte_offset,
            result.error,
            result.assigned_base_offset,
            result.log_append_time,
        )
        for position, result in enumerate(plan.results)
        if position not in accepted_at
    ]
