"""What the readers of a bucket and of a broker share: windows, and lost records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from skylog.bulk.decode import EncodedBatch
from skylog.bulk.errors import DataLossError
from skylog.client.bulk import Split
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, list_offsets
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger

_log = get_logger("bulk.reader")

# The topic is not the planned one, or no longer exists.
TOPIC_GONE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Batches of a split as read, perhaps with neighbours of the requested offsets."""

    split: Split
    batches: list[EncodedBatch]
    bytes: int


class WindowSource(Protocol):
    """Reads windows one after another. All calls come from the event loop."""

    async def next(self) -> list[Piece] | None:
        """The next window, or None at the end."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LossPolicy:
    """Whether deleted records fail the read or are skipped."""

    fails: bool = True

    def lost(self, split: Split, start: int, end: int, why: str) -> None:
        """Raises DataLossError, or logs what was skipped."""
        error = DataLossError(split.topic, split.partition, start, end, why)
        if self.fails:
            raise error
        _log.warning("records left out", why=str(error))

    async def position_after_loss(
        self, cluster: Cluster, split: Split, position: int, failure: KafkaError
    ) -> int:
        """Where to go on after ``failure``; the split's end if nothing is left. Raises what is no
        loss."""
        if failure.code in TOPIC_GONE:
            self.lost(split, position, split.end_offset, f"the topic is gone ({failure})")
            return split.end_offset
        if failure.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise failure
        key = TopicPartition(split.topic, split.partition)
        found = (await list_offsets(cluster, {key: EARLIEST}))[key]
        if isinstance(found, KafkaError):
            raise found
        if found.offset <= position:
            # The log ends before what was planned: it was written anew.
            self.lost(split, position, split.end_offset, "the log is shorter than it was")
            return split.end_offset
        return self.position_at_log_start(split, position, found.offset)

    def position_at_log_start(self, split: Split, position: int, log_start: int) -> int:
        """Where to go on in a log that begins at ``log_start``."""
        if log_start <= position:
            return position
        end = min(log_start, split.end_offset)
        self.lost(split, position, end, f"the log begins at {log_start}")
        return end
