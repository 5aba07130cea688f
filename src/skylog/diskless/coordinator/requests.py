"""Requests to a diskless coordinator.

Pure data. *Writes* are handled in order and pipelined; *reads* are strict: they wait for every
earlier write; *finds* read committed state at once, *looks* do so concurrently with the
coordinator's own work. A *local* request changes only the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skylog.diskless.bulk import PinRequest, RangeRequest
from skylog.diskless.coordinator.state import FileState
from skylog.diskless.plane import MAX_TIMESTAMP, FileToCommit, FindRequest, TopicPartition
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_PRUNED_BATCHES_MAX


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """(topic id, name, partitions that this coordinator should have); existing ones are kept."""

    topics: Sequence[tuple[Uuid, str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    topic_ids: Sequence[Uuid]


@dataclass(frozen=True, slots=True)
class CommitFile:
    file: FileToCommit


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    requests: Sequence[tuple[Uuid, int, int]]


@dataclass(frozen=True, slots=True)
class EnforceRetention:
    requests: Sequence[tuple[Uuid, int, int, int]]
    max_batches: int


@dataclass(frozen=True, slots=True)
class PruneTo:
    """Drops at most ``max_batches``, in the order of the requests: the reply says how far."""

    requests: Sequence[tuple[Uuid, int, int]]
    max_batches: int = DISKLESS_PRUNED_BATCHES_MAX


@dataclass(frozen=True, slots=True)
class ReceiveFile:
    """The previous owner has released the file.

    ``unclaimed``: the owners before it do not know the file, so it must be too old for a commit.
    """

    file: FileState
    unclaimed: bool = False


@dataclass(frozen=True, slots=True)
class PinFiles:
    pins: Sequence[PinRequest]


@dataclass(frozen=True, slots=True)
class ReleasePins:
    keys: Sequence[str]


Write = (
    CreatePartitions
    | DeleteTopics
    | CommitFile
    | DeleteRecords
    | EnforceRetention
    | PruneTo
    | ReceiveFile
    | PinFiles
    | ReleasePins
)


@dataclass(frozen=True, slots=True)
class ListOffsets:
    requests: Sequence[tuple[Uuid, int, int]]
    from_offset: int = 0

    @property
    def by_name(self) -> bool:
        """Whether the log alone answers all of them, without reading batches."""
        return all(time < 0 and time != MAX_TIMESTAMP for _, _, time in self.requests)


@dataclass(frozen=True, slots=True)
class DescribeFiles:
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class OldestFile:
    pass


StrictRead = ListOffsets | DescribeFiles | OldestFile


@dataclass(frozen=True, slots=True)
class FindBatches:
    requests: Sequence[FindRequest]
    fetch_max_bytes: int
    max_batches_per_partition: int = 0


@dataclass(frozen=True, slots=True)
class DescribeLogs:
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class FreeFiles:
    """Files without live batches that this coordinator owns now, or will own next."""

    marked_before_ms: int
    limit: int
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class FindFiles:
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class KnownTopics:
    pass


@dataclass(frozen=True, slots=True)
class HighWatermarks:
    """Of every partition."""


Find = FindBatches | DescribeLogs | FreeFiles | FindFiles | KnownTopics | HighWatermarks


@dataclass(frozen=True, slots=True)
class PlanRanges:
    requests: Sequence[RangeRequest]
    split_bytes: int
    max_batches: int


@dataclass(frozen=True, slots=True)
class LocateBatches:
    requests: Sequence[RangeRequest]
    max_batches: int


Look = PlanRanges | LocateBatches


@dataclass(frozen=True, slots=True)
class ForgetFiles:
    """Their objects are deleted, or the next owner has them. Not logged: a repetition is
    harmless."""

    keys: Sequence[str]


Local = ForgetFiles
Request = Write | StrictRead | Find | Look | Local
