"""The control plane of diskless topics: orders batches, and knows where their bytes are.

Three planes keep this contract (``planes/topic.py``, ``planes/postgres``, ``planes/memory.py``) and
one suite, ``tests/contract/test_control_plane.py``, tests them; ``open_plane`` in
``broker/assembly/diskless_planes.py`` opens the configured one. ``duties.py`` has the properties of
a plane. These rules hold for every call:

- results are in the order of the request; an error concerns only its own item;
- a call that *raises* ``KafkaError`` changed nothing, unless the error is ``ambiguous``: then it
  may have, and the caller repeats the same call. Every call may be repeated;
- offsets are dense: a batch gets its partition's high watermark, and moves it by its record count;
- a high watermark and a log start never decrease;
- a partition unknown to the plane is UNKNOWN_TOPIC_OR_PARTITION, with every number -1.

Pure: types only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from skylog.diskless.batch import BatchCoordinate, BatchToCommit
from skylog.diskless.bulk import BulkPlane
from skylog.diskless.duties import PlaneDuties
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid

TopicPartition: TypeAlias = tuple[Uuid, int]
Unsubscribe: TypeAlias = Callable[[], None]
# A partition and its high watermark. Called on the event loop; must be short and must not raise.
HighWatermarkListener: TypeAlias = Callable[[TopicPartition, int], None]
# None: cluster metadata has no such diskless partition.
CoordinatorOf: TypeAlias = Callable[[TopicPartition], int | None]

# The only format of WAL objects (KIP-1164: WRITE_AHEAD_MULTI_SEGMENT).
WAL_FORMAT: Final = 1

# ListOffsets' negative timestamps.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

# The offset of DeleteRecords that means "everything".
DELETE_TO_HIGH_WATERMARK: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToCommit:
    """An uploaded WAL object and its batches, in the order in which they get offsets.

    ``coordinator_ids`` are its owners: the coordinators that it is committed to, randomly permuted;
    only the topic plane has several.
    """

    object_key: str
    size: int
    batches: Sequence[BatchToCommit]
    format: int = WAL_FORMAT
    uploader_broker_id: int = -1
    coordinator_ids: Sequence[int] = ()
    # Only repeat the first result; RESOURCE_NOT_FOUND for a new key.
    known_only: bool = False


class CommitResult(NamedTuple):
    """``duplicate``: the batch was committed before; its first offset is returned again.

    ``log_append_time`` is -1 for CreateTime; after an error all numbers are -1.
    """

    error: ErrorCode
    assigned_base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
    message: str | None = None


@dataclass(frozen=True, slots=True)
class FindRequest:
    """The batches of a partition, starting with the one that contains ``offset``."""

    topic_id: Uuid
    partition: int
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FindResult:
    error: ErrorCode
    batches: Sequence[BatchCoordinate] = field(default=())
    log_start_offset: int = -1
    high_watermark: int = -1


class ListOffsetsResult(NamedTuple):
    """``coordinate``: the batch in which the caller finds the record itself."""

    error: ErrorCode
    timestamp: int = -1
    offset: int = -1
    coordinate: BatchCoordinate | None = None


class DeleteRecordsResult(NamedTuple):
    error: ErrorCode
    low_watermark: int = -1


class DescribeFileResult(NamedTuple):
    """RESOURCE_NOT_FOUND: no such file. NONE and False: known, awaiting deletion.

    ``pinned``: it may still be committed, and is known only because of that.
    """

    error: ErrorCode
    has_live_batches: bool = False
    pinned: bool = False


class RetentionResult(NamedTuple):
    error: ErrorCode
    batches_deleted: int = 0
    bytes_deleted: int = 0
    log_start_offset: int = -1


class PruneResult(NamedTuple):
    """``wal_start_offset``: the first offset that may still be read from a WAL object."""

    error: ErrorCode
    wal_start_offset: int = -1


class LogInfo(NamedTuple):
    """``byte_size`` counts the partition's batches that are still in WAL objects.

    ``wal_start_offset`` is the first offset that may still be read from one of them, never below
    the log start; only tiered storage has what is in between.
    """

    error: ErrorCode
    log_start_offset: int = -1
    high_watermark: int = -1
    byte_size: int = -1
    wal_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file, for inspection. ``marked_ms`` is -1 while it has live batches."""

    object_key: str
    size: int
    committed_ms: int
    live_batches: int
    live_bytes: int
    marked_ms: int = -1
    coordinator_ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorInfo:
    """One coordinator, for inspection; missing or unknown values are -1.

    A plane without a metadata topic is one coordinator with the id -1.
    """

    coordinator_id: int = -1
    state: str = "active"
    leader_epoch: int = -1
    log_start_offset: int = -1
    log_end_offset: int = -1
    high_watermark: int = -1
    applied_offset: int = -1
    snapshot_offset: int = -1
    snapshot_ms: int = -1
    partitions: int = -1
    batches: int = -1
    live_files: int = -1
    free_files: int = -1
    producers: int = -1
    pins: int = -1


class ControlPlane(BulkPlane, PlaneDuties, Protocol):
    async def start(self) -> None:
        """Must be called before anything else."""

    async def loaded(self) -> None:
        """Wait until this broker's part of the plane can answer, or is known to be unavailable."""

    async def close(self) -> None: ...

    async def create_partitions(self, topics: Sequence[tuple[Uuid, str, int]]) -> None:
        """(topic id, name, total number of partitions). Creates missing ones, keeps the rest."""

    async def delete_topics(self, topic_ids: Sequence[Uuid]) -> None:
        """Delete topics, their batches and their producers; unknown ids count as deleted."""

    def coordinator_of(self, partition: TopicPartition) -> int | None:
        """The id of the coordinator that orders the partition's batches, always the same.

        Coordinators are independent: delayed commits of one do not delay those of others. None: the
        partition is unknown (a plane with one coordinator need not check).
        """

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        """Assign offsets to a file's batches, in order; some may fail while others do not.

        A file of several coordinators waits for all of them; see ``commit_part``.

        *The same key again* gets the first result, without new offsets: accepted batches their
        offset with ``duplicate`` set, refused ones their error. Another size, format or number of
        batches under a known key is INVALID_REQUEST.

        *Idempotent producers* (rules/commits.py): a lower epoch than the last is
        INVALID_PRODUCER_EPOCH; a repetition of one of the last 5 batches is a duplicate with its
        first offset; otherwise the sequence must follow (0 after 2³¹−1, 0 in a new epoch) or it is
        OUT_OF_ORDER_SEQUENCE_NUMBER; an unknown or expired producer may start anywhere.

        *Raised for the whole file*, which is then not committed: INVALID_REQUEST for extents that
        overlap, are empty or exceed the file, and for an invalid key; KAFKA_STORAGE_ERROR
        (definite, retriable with a new file) for a new key whose creation time is older than the
        commit age limit or too far in the future. A file without an accepted batch is known, and
        awaits deletion from the start.

        *A staged file* (its key says so) is committed as a whole: the error of any of its batches
        is raised, and nothing is remembered of the file. With a pin its age does not matter;
        without one, a key that is too old is INVALID_REQUEST.
        """

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        """Commit one coordinator's part of a file, without waiting for the others.

        ``file`` has only the batches of that coordinator (perhaps none) but all ``coordinator_ids``
        of the whole file. The rules of ``commit_file`` apply to the part.
        """

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        """Where the records from each offset on are; reads committed state only, never waits.

        All share one budget of ``fetch_max_bytes``, spent in request order: batches are granted
        while they fit into the partition's limit and into what is left of the budget, as in Kafka;
        the first batch of the whole request is always granted. If a partition's batches do not fit,
        its result is empty, with NONE and its real offsets.

        Below the log start or above the high watermark: OFFSET_OUT_OF_RANGE, with both. At the high
        watermark: empty. Pruned, but not deleted: OFFSET_MOVED_TO_TIERED_STORAGE.
        """

    async def list_offsets(
        self, requests: Sequence[tuple[Uuid, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        """(topic id, partition, timestamp or a special negative timestamp).

        Timestamps and MAX_TIMESTAMP select a batch and return its coordinate: the first by offset
        whose timestamp is at least the given one, or is the largest. ``timestamp`` is the batch's,
        ``offset`` its first that is not deleted (MAX_TIMESTAMP: its last). The caller decodes the
        batch to find the record; if none of its records above the log start qualify, it asks again
        with ``from_offset`` after the batch. Nothing found: NONE and -1. Only batches in WAL
        objects are known here: the caller looks in tiered storage below the WAL start.

        EARLIEST is the log start, EARLIEST_LOCAL the first offset in a WAL object, LATEST the high
        watermark, LATEST_TIERED and EARLIEST_PENDING_UPLOAD -1: the caller knows tiered data.
        """

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        """(topic id, partition, first offset to keep, or -1 for the high watermark).

        Below the log start: success, without effect. Above the high watermark or below -1:
        OFFSET_OUT_OF_RANGE. A batch is removed once its last offset is below the log start.
        """

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]: ...

    async def enforce_retention(
        self, requests: Sequence[tuple[Uuid, int, int, int]], max_batches: int
    ) -> list[RetentionResult]:
        """(topic id, partition, retention bytes, retention ms); a negative limit is off.

        The log start moves to the first batch from which everything fits into the bytes and which
        is not older than the time, or to the high watermark if there is none; but one call deletes
        at most ``max_batches`` (> 0) of a partition, the oldest first.

        A partition whose log start is below its WAL start is left as it is: its oldest records are
        only in tiered storage, whose own retention deletes them with ``delete_records``.
        """

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        """(topic id, partition, offset): tiered storage has everything below; drop WAL batches
        that end there.

        The log start, which users see, is unchanged. Below the WAL start: success, without effect.
        Above the high watermark: OFFSET_OUT_OF_RANGE. Commits do not wait for the end of it. The
        result says how far it came: not to the offset if another prune is under way.
        """

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        """Files without live batches since before that time, oldest first; limit 0 = all."""

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        """Their objects are deleted: forget these files. Other files are ignored."""

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        """Files by key, from the first that is greater than ``after``; at most ``limit`` (> 0).

        For inspection: files committed or deleted meanwhile may or may not be included.
        """

    async def describe_coordinators(self) -> list[CoordinatorInfo]:
        """Details of the coordinators. Counts everything, so it should not be called every
        second."""

    async def known_topics(self) -> list[Uuid]:
        """The topics that have partitions here, each once, in any order."""

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]: ...

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        """Notify of commits through any broker. A listener may be notified twice or late, but
        always gets the last high watermark eventually, also after a lost connection."""
