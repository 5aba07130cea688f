"""Pure: the commit of a file, for every plane and the coordinator's machine.

``check_file`` and ``check_age`` check the file as a whole, ``plan_commit`` its batches one by one,
by Kafka's rules for idempotent producers (``check_sequence``). State is read through two functions;
what must be stored is returned in the ``CommitPlan``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from skylog.diskless.batch import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Accepted,
    ProducerStamp,
    Stamp,
)
from skylog.diskless.layout import FILE_BYTES_MAX, check_places
from skylog.diskless.plane import WAL_FORMAT, CommitResult, FileToCommit, TopicPartition
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.pins import is_open, is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import BadKey, ObjectKey

REMEMBERED_BATCHES: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
MAGIC: Final = 2
# A local alias: every batch needs it, and access to an enum member is slow.
_NONE: Final = ErrorCode.NONE


class ProducerEntry(NamedTuple):
    """One of the last batches of a producer. Kept oldest first, of the latest epoch only."""

    producer_epoch: int
    base_sequence: int
    last_sequence: int
    assigned_offset: int
    log_append_timestamp: int


def entry_of(sent: ProducerStamp, assigned_offset: int, now_ms: int) -> ProducerEntry:
    """What is remembered of a batch: its stamp without the producer's id, and its commit."""
    return tuple.__new__(ProducerEntry, (*sent[1:], assigned_offset, now_ms))


Entries: TypeAlias = tuple[ProducerEntry, ...]
ProducerOfPartition: TypeAlias = tuple[TopicPartition, int]


def check_file(file: FileToCommit) -> None:
    """Refuse what no writer creates: invalid keys and formats, extents that overlap or exceed
    it."""
    _created_ms(file.object_key)
    if file.format != WAL_FORMAT:
        raise _bad(f"object format {file.format} is not {WAL_FORMAT}")
    if not 0 < file.size <= FILE_BYTES_MAX:
        raise _bad(f"a file of {file.size} bytes")
    check_places([batch.extent for batch in file.batches], file.size)
    for batch in file.batches:
        _check_stamps(batch.stamp, batch.producer)


def _check_stamps(stamp: Stamp, producer: ProducerStamp) -> None:
    last = stamp.last_offset - stamp.base_offset
    if last < 0 or last >= SEQUENCE_MAX:
        raise _bad(f"a batch from offset {stamp.base_offset} to {stamp.last_offset}")
    if stamp.magic != MAGIC or stamp.timestamp_type not in (CREATE_TIME, LOG_APPEND_TIME):
        raise _bad(f"magic {stamp.magic}, timestamp type {stamp.timestamp_type}")
    if producer.idempotent and not (
        0 <= producer.base_sequence <= SEQUENCE_MAX
        and producer.last_sequence == (producer.base_sequence + last) & SEQUENCE_MAX
    ):
        raise _bad(
            f"sequences {producer.base_sequence}–{producer.last_sequence} of {stamp.record_count}"
        )


def check_age(object_key: str, now_ms: int, rules: PlaneRules) -> None:
    """Refuse a new key that is too old, because a scan may delete its object at any moment."""
    age_ms = now_ms - _created_ms(object_key)
    if age_ms > rules.commit_age_ms_max or -age_ms > rules.commit_ahead_ms_max:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"object key {object_key} is {age_ms} ms old; it can no longer be committed",
        )


def _created_ms(object_key: str) -> int:
    try:
        created_ms = ObjectKey.parse(object_key).created_ms
    except BadKey as error:
        raise _bad(str(error)) from error
    if created_ms is None:
        raise _bad(f"object key without a time: {object_key!r}")
    return created_ms


def check_new(
    file: FileToCommit, now_ms: int, rules: PlaneRules, pinned_until_ms: int | None = None
) -> None:
    """Whether an unknown key may be committed."""
    if file.known_only:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"{file.object_key} is not known")
    if is_open(pinned_until_ms, now_ms):
        return
    try:
        check_age(file.object_key, now_ms, rules)
    except KafkaError as error:
        if not is_staged(file.object_key):
            raise
        # Uploading it again would not help: only its writer knows what to do.
        raise _bad(f"{error.message}: it is not pinned, or no longer") from error


def check_repeat(file: FileToCommit, size: int, format_: int, batches: int | None) -> None:
    """A known key must name the same file (``batches`` None: the plane has forgotten)."""
    if (file.size, file.format) != (size, format_) or len(file.batches) != (
        len(file.batches) if batches is None else batches
    ):
        raise _bad(f"{file.object_key} was committed as another file")


def _bad(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


class SequenceCheck(NamedTuple):
    """Accepted (NONE, None), a duplicate of a stored batch, or an error."""

    error: ErrorCode
    duplicate_of: ProducerEntry | None = None


ACCEPTED: Final = SequenceCheck(ErrorCode.NONE)


def check_sequence(entries: Sequence[ProducerEntry], sent: ProducerStamp) -> SequenceCheck:
    """Kafka's rules for a batch of an idempotent producer, given its earlier batches."""
    if not entries:
        return ACCEPTED
    last = entries[-1]
    if sent.producer_epoch < last.producer_epoch:
        return SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH)
    if sent.producer_epoch > last.producer_epoch:
        follows = sent.base_sequence == 0
    else:
        first, end = sent.base_sequence, sent.last_sequence
        for entry in entries:  # all of this epoch
            if entry[1] == first and entry[2] == end:
                return SequenceCheck(ErrorCode.NONE, entry)
        follows = first == (last.last_sequence + 1) & SEQUENCE_MAX
    return ACCEPTED if follows else SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def unexpired(entries: Entries, now_ms: int, expiration_ms: int) -> Entries:
    """What is still known of a producer.

    It expires by the commit times in the log, so that all replicas and a replay agree. The records'
    own times may be years old and do not show how long it has been silent.
    """
    if entries and now_ms - entries[-1].log_append_timestamp >= expiration_ms:
        return ()
    return entries


def remember(entries: Sequence[ProducerEntry], entry: ProducerEntry) -> Entries:
    """The entries plus a new one: the last 5 of its epoch."""
    if entries and entries[-1][0] != entry[0]:  # entries are all of one epoch
        return (entry,)
    return (*entries[1 - REMEMBERED_BATCHES :], entry)


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The results of a commit, and all its changes."""

    results: list[CommitResult]
    # In the order of the file.
    accepted: dict[TopicPartition, list[Accepted]]
    logs: dict[TopicPartition, LogState]
    producers: dict[ProducerOfPartition, Entries]

    @property
    def accepted_count(self) -> int:
        return sum(map(len, self.accepted.values()))

    def moved(self) -> list[tuple[TopicPartition, int]]:
        """The partitions whose high watermark the commit moves, with the new one."""
        return [(partition, log.high_watermark) for partition, log in self.logs.items()]


def plan_commit(
    file: FileToCommit,
    log_of: Callable[[TopicPartition], LogState | None],
    producer_of: Callable[[TopicPartition, int], Entries],
    now_ms: int,
    rules: PlaneRules,
) -> CommitPlan:
    """Check the batches of a new, valid file in order; each sees the effects of those before it."""
    plan = CommitPlan([], {}, {}, {})
    logs, producers, results, accepted = plan.logs, plan.producers, plan.results, plan.accepted
    for batch in file.batches:
        partition = (batch.topic_id, batch.partition)
        log = logs.get(partition) or log_of(partition)
        if log is None:
            results.append(CommitResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        base, sent = log.high_watermark, batch.producer
        if sent.idempotent:
            owner = (partition, sent.producer_id)
            known = producers.get(owner) or producer_of(*owner)
            entries = unexpired(known, now_ms, rules.producer_expiration_ms)
            check = check_sequence(entries, sent)
            if check is not ACCEPTED:
                results.append(_refused(check, batch.stamp, log))
                continue
            producers[owner] = remember(entries, entry_of(sent, base, now_ms))
        stamp = batch.stamp.committed(base, now_ms)
        accepted.setdefault(partition, []).append((batch.extent, stamp, sent))
        results.append(_accepted(stamp, base, now_ms, log))
        logs[partition] = log.grown(
            high_watermark=stamp.last_offset + 1,
            byte_size=log.byte_size + batch.extent.byte_size,
        )
    if is_staged(file.object_key):
        _require_all(file, results)
    return plan


def _require_all(file: FileToCommit, results: Sequence[CommitResult]) -> None:
    """All or nothing, so that a repeated commit of a refused file starts over."""
    for batch, result in zip(file.batches, results, strict=True):
        if result.error:
            raise KafkaError(result.error, f"the batch at byte {batch.extent.byte_offset}")


def _accepted(stamp: Stamp, base: int, time_ms: int, log: LogState) -> CommitResult:
    append_time = time_ms if stamp.timestamp_type == LOG_APPEND_TIME else -1
    return CommitResult(_NONE, base, append_time, log.log_start_offset)


def _refused(check: SequenceCheck, stamp: Stamp, log: LogState) -> CommitResult:
    first = check.duplicate_of
    if first is None:
        return CommitResult(check.error)
    answer = _accepted(stamp, first.assigned_offset, first.log_append_timestamp, log)
    return answer._replace(duplicate=True)


def repeated(results: Iterable[CommitResult]) -> list[CommitResult]:
    """The first result of a key, returned again."""
    return [r if r.error else r._replace(duplicate=True) for r in results]
