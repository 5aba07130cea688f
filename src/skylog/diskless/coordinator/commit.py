"""Pure: one CommitFile, from the validated plan to its record and its reply."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.diskless.coordinator.overlay import Overlay, PendingFile
from skylog.diskless.coordinator.state import FileState, Pin
from skylog.diskless.coordinator.tail import Added, Changed
from skylog.diskless.coordinator.wire import committed_batch
from skylog.diskless.plane import CommitResult, FileToCommit, TopicPartition
from skylog.diskless.rules import commits
from skylog.diskless.rules.pins import is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.file_committed_record import (
    CommittedAnswer,
    CommittedPartition,
    CommittedTopic,
    FileCommittedRecord,
)


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
        """Its effect on partitions, known before it is applied; None if it also affects pins."""
        if is_staged(self.file.object_key):
            return None
        return {
            partition: Changed(
                self.plan.logs[partition], [Added(self.file.object_key, offset, batches)]
            )
            for partition, batches in self.plan.accepted.items()
        }


def plan_commit(
    file: FileToCommit, coordinator_id: int, overlay: Overlay, now_ms: int, rules: PlaneRules
) -> PlannedCommit:
    """Plan the commit of a key that is new here; a KafkaError refuses the whole file."""
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
    return PlannedCommit(file, plan, _record(file, plan))


def join_pending(file: FileToCommit, pending: PendingFile) -> list[CommitResult]:
    """The result of the commit in progress with the same key."""
    commits.check_repeat(file, pending.size, pending.format, len(pending.results))
    return commits.repeated(pending.results)


def repeat_committed(
    file: FileToCommit, known: FileState | Pin, overlay: Overlay
) -> list[CommitResult]:
    """Repeat the first result. A file that is only known from a hand-over has none: it is
    refused."""
    pin = overlay.pin(file.object_key)
    answers = overlay.answers(file.object_key) or (pin.answers if pin else None) or None
    commits.check_repeat(file, known.size, known.format, len(answers) if answers else None)
    by_place = {answer.byte_offset: answer for answer in answers or ()}
    results = []
    for batch in file.batches:
        answer = by_place.get(batch.extent.byte_offset)
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


def _record(file: FileToCommit, plan: commits.CommitPlan) -> FileCommittedRecord:
    topics: dict[Uuid, CommittedTopic] = {}
    for (topic_id, index), held in plan.accepted.items():
        topic = topics.setdefault(topic_id, CommittedTopic(topic_id, []))
        batches = [committed_batch(*batch) for batch in held]
        topic.partitions.append(CommittedPartition(index, batches))
    return FileCommittedRecord(
        file.object_key,
        file.format,
        file.size,
        file.uploader_broker_id,
        list(file.coordinator_ids),
        list(topics.values()),
        answers=_answers(file, plan),
    )


def _answers(file: FileToCommit, plan: commits.CommitPlan) -> list[CommittedAnswer]:
    """The results of batches that did not get new offsets; the others are in the records."""
    return [
        CommittedAnswer(
            byte_offset=batch.extent.byte_offset,
            error_code=result.error,
            base_offset=result.assigned_base_offset,
            log_append_time=result.log_append_time,
        )
        for batch, result in zip(file.batches, plan.results, strict=True)
        if result.error or result.duplicate
    ]
