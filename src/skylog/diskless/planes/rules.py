"""Pure: what every plane decides alike. See ``plane.py`` for the contract that this carries out.

A plane brings its stored state (``LogState``, ``ProducerEntry``, coordinates) and keeps what comes
back; where the state lies, and how changes become durable, is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from skylog.diskless.plane import (
    DELETE_TO_HIGH_WATERMARK,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    WAL_FORMAT,
    BatchCoordinate,
    BatchToCommit,
    CommitResult,
    FileToCommit,
    ListOffsetsResult,
    TopicPartition,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import BadKey, ObjectKey

REMEMBERED_BATCHES: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
# Byte offsets in a file are int32 (Q27).
FILE_BYTES_MAX: Final = 2**31 - 1
MAGIC: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneRules:
    """The times that a plane goes by.

    The orphan scan and the cleaner must wait longer than twice ``commit_age_ms_max``: then no
    object that they delete can still be committed.
    """

    commit_age_ms_max: int = 20 * 60 * 1000
    # How far ahead of ours an uploader's clock may be.
    commit_ahead_ms_max: int = 60 * 1000
    producer_expiration_ms: int = 24 * 60 * 60 * 1000


class LogState(NamedTuple):
    """A partition: what users see of it, and from where on WAL objects hold it."""

    log_start_offset: int = 0
    high_watermark: int = 0
    byte_size: int = 0
    wal_start_offset: int = 0


class ProducerEntry(NamedTuple):
    """One of the last batches of a producer. Kept oldest first, of the latest epoch only."""

    producer_epoch: int
    base_sequence: int
    last_sequence: int
    assigned_offset: int
    log_append_timestamp: int


Entries: TypeAlias = tuple[ProducerEntry, ...]
ProducerOfPartition: TypeAlias = tuple[TopicPartition, int]


# --- Commit ---------------------------------------------------------------------------------------


def check_file(file: FileToCommit) -> None:
    """Refuse what no writer makes: strange formats, extents that overlap or leave the file."""
    if file.format != WAL_FORMAT:
        raise _bad(f"object format {file.format} is not {WAL_FORMAT}")
    if not 0 < file.size <= FILE_BYTES_MAX:
        raise _bad(f"a file of {file.size} bytes")
    end = 0
    for batch in sorted(file.batches, key=lambda batch: batch.byte_offset):
        _check_batch(batch)
        if batch.byte_offset < end:
            raise _bad(f"the batch at byte {batch.byte_offset} overlaps the one before it")
        end = batch.byte_offset + batch.size
    if end > file.size:
        raise _bad(f"a batch ends at byte {end} of a file of {file.size}")


def _check_batch(batch: BatchToCommit) -> None:
    if batch.size <= 0:
        raise _bad(f"a batch of {batch.size} bytes")
    if batch.count <= 0 or batch.count > SEQUENCE_MAX:
        raise _bad(f"a batch from offset {batch.base_offset} to {batch.last_offset}")
    if batch.magic != MAGIC or batch.timestamp_type not in (0, 1):
        raise _bad(f"magic {batch.magic}, timestamp type {batch.timestamp_type}")
    if batch.idempotent and not (
        0 <= batch.base_sequence <= SEQUENCE_MAX
        and batch.last_sequence == (batch.base_sequence + batch.count - 1) & SEQUENCE_MAX
    ):
        raise _bad(f"sequences {batch.base_sequence}–{batch.last_sequence} of {batch.count}")


def check_age(object_key: str, now_ms: int, rules: PlaneRules) -> None:
    """Refuse a new key that is too old, because a scan may delete its object at any moment."""
    try:
        created_ms = ObjectKey.parse(object_key).created_ms
    except BadKey as error:
        raise _bad(str(error)) from error
    if created_ms is None:
        raise _bad(f"object key without a time: {object_key!r}")
    age_ms = now_ms - created_ms
    if age_ms > rules.commit_age_ms_max or -age_ms > rules.commit_ahead_ms_max:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"object key {object_key} is {age_ms} ms old; it can no longer be committed",
        )


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
        for entry in entries:
            if entry[:3] == (batch.producer_epoch, batch.base_sequence, batch.last_sequence):
                return SequenceCheck(ErrorCode.NONE, entry)
        follows = batch.base_sequence == (last.last_sequence + 1) & SEQUENCE_MAX
    return ACCEPTED if follows else SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def is_expired(entries: Sequence[ProducerEntry], now_ms: int, expiration_ms: int) -> bool:
    return now_ms - entries[-1].log_append_timestamp >= expiration_ms


def remember(entries: Sequence[ProducerEntry], entry: ProducerEntry) -> Entries:
    """The entries with a new one: the last 5 of its epoch."""
    same_epoch = [known for known in entries if known.producer_epoch == entry.producer_epoch]
    return (*same_epoch[1 - REMEMBERED_BATCHES :], entry)


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
    """The answer to a commit, and all that changes by it."""

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
    for position, batch in enumerate(file.batches):
        partition = batch.topic_partition
        log = plan.logs.get(partition) or log_of(partition)
        if log is None:
            plan.results.append(CommitResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        owner = (partition, batch.producer_id)
        entries: Entries = ()
        if batch.idempotent:
            entries = plan.producers.get(owner) or producer_of(*owner)
            check = check_sequence(entries, batch, now_ms, rules.producer_expiration_ms)
            if check is not ACCEPTED:
                plan.results.append(_refused(check, batch, log))
                continue
            if entries and is_expired(entries, now_ms, rules.producer_expiration_ms):
                entries = ()
        base = log.high_watermark
        plan.accepted.append(AcceptedBatch(position, batch, base))
        plan.results.append(_accepted(batch, base, now_ms, log))
        plan.logs[partition] = log._replace(
            high_watermark=base + batch.count, byte_size=log.byte_size + batch.size
        )
        if batch.idempotent:
            plan.producers[owner] = remember(
                entries,
                ProducerEntry(
                    batch.producer_epoch, batch.base_sequence, batch.last_sequence, base, now_ms
                ),
            )
    return plan


def _accepted(batch: BatchToCommit, base: int, time_ms: int, log: LogState) -> CommitResult:
    return CommitResult(
        ErrorCode.NONE,
        base,
        time_ms if batch.timestamp_type == LOG_APPEND_TIME else -1,
        log.log_start_offset,
    )


def _refused(check: SequenceCheck, batch: BatchToCommit, log: LogState) -> CommitResult:
    first = check.duplicate_of
    if first is None:
        return CommitResult(check.error)
    answer = _accepted(batch, first.assigned_offset, first.log_append_timestamp, log)
    return replace(answer, duplicate=True)


def repeated(results: Iterable[CommitResult]) -> list[CommitResult]:
    """The first answer to a key, for the second time."""
    return [r if r.error else replace(r, duplicate=True) for r in results]


# --- Find -----------------------------------------------------------------------------------------


def find_error(offset: int, log: LogState) -> ErrorCode:
    """Whether a find may start at ``offset``."""
    if offset < log.log_start_offset or offset > log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if offset < log.wal_start_offset:
        return ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    return ErrorCode.NONE


class FindBudget:
    """The bytes of one find, spent in request order; ``partition`` begins the next one."""

    __slots__ = ("_batches", "_batches_max", "_left", "_partition_left", "_used")

    def __init__(self, fetch_max_bytes: int, max_batches_per_partition: int) -> None:
        self._left = fetch_max_bytes
        self._batches_max = max_batches_per_partition
        self._used = False
        self._partition_left = 0
        self._batches = 0

    def partition(self, max_bytes: int) -> bool:
        """Whether the partition may get anything at all."""
        self._partition_left = max_bytes
        self._batches = 0
        return self._open()

    def take(self, size: int) -> bool:
        """Ask for a batch; the one that crosses a limit is granted, and is the last."""
        if not self._open():
            return False
        self._used = True
        self._left -= size
        self._partition_left -= size
        self._batches += 1
        return True

    def _open(self) -> bool:
        if not self._used:
            return True
        full = 0 < self._batches_max <= self._batches
        return not full and self._left > 0 and self._partition_left > 0


# --- ListOffsets ----------------------------------------------------------------------------------


def named_offset(timestamp: int, log: LogState) -> ListOffsetsResult | None:
    """The answer to a timestamp that names an offset; None when batches must be looked at."""
    if timestamp == LATEST:
        return ListOffsetsResult(ErrorCode.NONE, offset=log.high_watermark)
    if timestamp == EARLIEST:
        return ListOffsetsResult(ErrorCode.NONE, offset=log.log_start_offset)
    if timestamp == EARLIEST_LOCAL:
        return ListOffsetsResult(ErrorCode.NONE, offset=_wal_start(log))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsResult(ErrorCode.NONE)
    if timestamp < EARLIEST_PENDING_UPLOAD:
        return ListOffsetsResult(ErrorCode.UNSUPPORTED_VERSION)
    return None


def _wal_start(log: LogState) -> int:
    return max(log.log_start_offset, log.wal_start_offset)


def choose_batch(
    batches: Iterable[BatchCoordinate], timestamp: int, from_offset: int
) -> BatchCoordinate | None:
    """The batch that ListOffsets by time, or for MAX_TIMESTAMP, points at."""
    best: BatchCoordinate | None = None
    for batch in batches:
        if batch.last_offset < from_offset:
            continue
        if timestamp != MAX_TIMESTAMP:
            if batch.timestamp >= timestamp:
                return batch
        elif best is None or batch.timestamp > best.timestamp:
            best = batch
    return best


def chosen_offset(
    batch: BatchCoordinate | None, timestamp: int, log: LogState
) -> ListOffsetsResult:
    """The answer that goes with the chosen batch."""
    if batch is None:
        return ListOffsetsResult(ErrorCode.NONE)
    first = max(batch.base_offset, _wal_start(log))
    offset = batch.last_offset if timestamp == MAX_TIMESTAMP else first
    return ListOffsetsResult(ErrorCode.NONE, batch.timestamp, offset, batch)


# --- Deletion -------------------------------------------------------------------------------------


def delete_target(offset: int, log: LogState) -> int | None:
    """The log start that DeleteRecords asks for; None when it is out of range."""
    if offset == DELETE_TO_HIGH_WATERMARK:
        return log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        return None
    return max(offset, log.log_start_offset)


class RetentionLimits(NamedTuple):
    """``bytes`` and ``ms`` are off when negative."""

    bytes: int
    ms: int

    @property
    def off(self) -> bool:
        return self.bytes < 0 and self.ms < 0


def retention_start(
    oldest: Sequence[BatchCoordinate],
    log: LogState,
    limits: RetentionLimits,
    now_ms: int,
    max_batches: int,
) -> int:
    """Where the log shall start; ``oldest`` are its first ``max_batches`` + 1 batches, or all."""
    if limits.off:
        return log.log_start_offset
    kept_bytes = log.byte_size
    for index, batch in enumerate(oldest):
        fits = limits.bytes < 0 or kept_bytes <= limits.bytes
        young = limits.ms < 0 or batch.timestamp >= now_ms - limits.ms
        if (fits and young) or index == max_batches:
            return max(log.log_start_offset, batch.base_offset)
        kept_bytes -= batch.byte_size
    return log.high_watermark
