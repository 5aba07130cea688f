"""Pure: the commit of a file, for every plane and the coordinator's machine.

``check_file`` and ``check_age`` check the file as a whole, ``plan_commit`` its batches one by one,
by Kafka's rules for idempotent producers (``check_sequence``). State is read through two functions;
what must be stored comes back in the ``CommitPlan``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from skylog.diskless.layout import HEADER as WAL_HEADER
from skylog.diskless.plane import (
    LOG_APPEND_TIME,
    WAL_FORMAT,
    BatchToCommit,
    CommitResult,
    FileToCommit,
    TopicPartition,
)
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.pins import is_open, is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import BadKey, ObjectKey
from skylog.wire.batch import HEADER_BYTES

REMEMBERED_BATCHES: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
# Byte offsets in a file are int32 (Q27).
FILE_BYTES_MAX: Final = 2**31 - 1
MAGIC: Final = 2
_place = attrgetter("byte_offset")


class ProducerEntry(NamedTuple):
    """One of the last batches of a producer. Kept oldest first, of the latest epoch only."""

    producer_epoch: int
    base_sequence: int
    last_sequence: int
    assigned_offset: int
    log_append_timestamp: int


Entries: TypeAlias = tuple[ProducerEntry, ...]
ProducerOfPartition: TypeAlias = tuple[TopicPartition, int]


def check_file(file: FileToCommit) -> None:
    """Refuse what no writer makes: strange keys and formats, extents that overlap or leave it."""
    _created_ms(file.object_key)
    if file.format != WAL_FORMAT:
        raise _bad(f"object format {file.format} is not {WAL_FORMAT}")
    if not 0 < file.size <= FILE_BYTES_MAX:
        raise _bad(f"a file of {file.size} bytes")
    end = len(WAL_HEADER)
    for batch in sorted(file.batches, key=_place):
        _check_batch(batch)
        if batch.byte_offset < end:
            raise _bad(f"the batch at byte {batch.byte_offset} overlaps the previous one")
        end = batch.byte_offset + batch.size
    if end > file.size:
        raise _bad(f"a batch ends at byte {end} of a file of {file.size}")


def _check_batch(batch: BatchToCommit) -> None:
    if batch.size < HEADER_BYTES:
        raise _bad(f"a batch of {batch.size} bytes")
    last = batch.last_offset - batch.base_offset
    if last < 0 or last >= SEQUENCE_MAX:
        raise _bad(f"a batch from offset {batch.base_offset} to {batch.last_offset}")
    if batch.magic != MAGIC or batch.timestamp_type not in (0, 1):
        raise _bad(f"magic {batch.magic}, timestamp type {batch.timestamp_type}")
    if batch.idempotent and not (
        0 <= batch.base_sequence <= SEQUENCE_MAX
        and batch.last_sequence == (batch.base_sequence + last) & SEQUENCE_MAX
    ):
        raise _bad(f"sequences {batch.base_sequence}–{batch.last_sequence} of {batch.count}")


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
        # Uploading it again does not help: only its writer knows what to do.
        raise _bad(f"{error.message}: it is not pinned, or no longer") from error


def check_repeat(file: FileToCommit, size: int, format_: int, batches: int | None) -> None:
    """A known key must name the same file as before (``batches`` None: the plane forgot)."""
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


def check_sequence(
    entries: Sequence[ProducerEntry], batch: BatchToCommit, now_ms: int, expiration_ms: int
) -> SequenceCheck:
    """Kafka's rules for a batch of an idempotent producer, given what is stored of it.

    A producer expires by the commit times that stand in the log, so that all replicas and a
    replay agree; the records' own times may be years old and say nothing about its silence.
    """
    if not entries or is_expired(entries, now_ms, expiration_ms):
        return ACCEPTED
    last = entries[-1]
    if batch.producer_epoch < last.producer_epoch:
        return SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH)
    if batch.producer_epoch > last.producer_epoch:
        follows = batch.base_sequence == 0
    else:
        first, end = batch.base_sequence, batch.last_sequence
        for entry in entries:  # all of this epoch
            if entry[1] == first and entry[2] == end:
                return SequenceCheck(ErrorCode.NONE, entry)
        follows = batch.base_sequence == (last.last_sequence + 1) & SEQUENCE_MAX
    return ACCEPTED if follows else SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def is_expired(entries: Sequence[ProducerEntry], now_ms: int, expiration_ms: int) -> bool:
    return now_ms - entries[-1].log_append_timestamp >= expiration_ms


def remember(entries: Sequence[ProducerEntry], entry: ProducerEntry) -> Entries:
    """The entries with a new one: the last 5 of its epoch."""
    if entries and entries[-1][0] != entry[0]:  # entries are all of one epoch
        return (entry,)
    return (*entries[1 - REMEMBERED_BATCHES :], entry)


class AcceptedBatch(NamedTuple):
    """``position``: the batch's place in its file's list."""

    position: int
    batch: BatchToCommit
    assigned_base_offset: int

    @property
    def assigned_last_offset(self) -> int:
        return self.assigned_base_offset + self.batch.count - 1


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The result of a commit, and all its changes."""

    results: list[CommitResult]
    accepted: list[AcceptedBatch]
    logs: dict[TopicPartition, LogState]
    producers: dict[ProducerOfPartition, Entries]

    def moved(self) -> list[tuple[TopicPartition, int]]:
        """The partitions whose high watermark the commit moves, and to where."""
        return [(partition, log.high_watermark) for partition, log in self.logs.items()]


def plan_commit(
    file: FileToCommit,
    log_of: Callable[[TopicPartition], LogState | None],
    producer_of: Callable[[TopicPartition, int], Entries],
    now_ms: int,
    rules: PlaneRules,
) -> CommitPlan:
    """Judge the batches of a new, checked file in order; each sees what the ones before it left."""
    plan = CommitPlan([], [], {}, {})
    logs, producers, results = plan.logs, plan.producers, plan.results
    for position, batch in enumerate(file.batches):
        partition = (batch.topic_id, batch.partition)
        log = logs.get(partition) or log_of(partition)
        if log is None:
            results.append(CommitResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        base = log.high_watermark
        if batch.idempotent:
            owner = (partition, batch.producer_id)
            entries = producers.get(owner) or producer_of(*owner)
            check = check_sequence(entries, batch, now_ms, rules.producer_expiration_ms)
            if check is not ACCEPTED:
                results.append(_refused(check, batch, log))
                continue
            if entries and is_expired(entries, now_ms, rules.producer_expiration_ms):
                entries = ()
            entry = ProducerEntry(
                batch.producer_epoch, batch.base_sequence, batch.last_sequence, base, now_ms
            )
            producers[owner] = remember(entries, entry)
        plan.accepted.append(AcceptedBatch(position, batch, base))
        results.append(_accepted(batch, base, now_ms, log))
        logs[partition] = LogState(
            log_start_offset=log.log_start_offset,
            high_watermark=base + batch.count,
            byte_size=log.byte_size + batch.size,
            wal_start_offset=log.wal_start_offset,
        )
    if is_staged(file.object_key):
        _require_all(file, results)
    return plan


def _require_all(file: FileToCommit, results: Sequence[CommitResult]) -> None:
    """So that a repeated commit of a refused file starts over."""
    for batch, result in zip(file.batches, results, strict=True):
        if result.error:
            raise KafkaError(result.error, f"the batch at byte {batch.byte_offset}")


def _accepted(batch: BatchToCommit, base: int, time_ms: int, log: LogState) -> CommitResult:
    append_time = time_ms if batch.timestamp_type == LOG_APPEND_TIME else -1
    return CommitResult(ErrorCode.NONE, base, append_time, log.log_start_offset)


def _refused(check: SequenceCheck, batch: BatchToCommit, log: LogState) -> CommitResult:
    first = check.duplicate_of
    if first is None:
        return CommitResult(check.error)
    answer = _accepted(batch, first.assigned_offset, first.log_append_timestamp, log)
    return answer._replace(duplicate=True)


def repeated(results: Iterable[CommitResult]) -> list[CommitResult]:
    """The first answer to a key, for the second time."""
    return [r if r.error else r._replace(duplicate=True) for r in results]
