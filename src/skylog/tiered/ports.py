"""What tiered storage needs of others; ``broker/`` fills these.

The rule that carries the safety of all of it: nothing is done to an object before the record that
says so was read back from the metadata topic and seen to take effect. The topic's order is the
lock between an old leader and a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from skylog.kernel.ids import Uuid
    from skylog.log.checkpoints import EpochStart
    from skylog.log.closed import ClosedSegment
    from skylog.log.config import LogConfig
    from skylog.log.epochs import LeaderEpochs
    from skylog.log.producers import ProducerEntry
    from skylog.objects.store import PieceCheck
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.retention import Limits
    from skylog.tiered.segments import IndexType, RemoteSegment, TopicIdPartition
    from skylog.wire.buffers import Buffer
    from skylog.wire.schema import Message


# --- The metadata topic ---------------------------------------------------------------------------


class MetadataValue(NamedTuple):
    offset: int
    value: bytes | None


class MetadataPage(NamedTuple):
    """Committed records of a partition of the metadata topic, from the offset asked for on."""

    values: Sequence[MetadataValue]
    # Where to read on; offsets without a value (control records) may lie between.
    next_offset: int
    log_start_offset: int
    high_watermark: int


class MetadataTopic(Protocol):
    """``__remote_log_metadata``, wherever its partitions are led."""

    @property
    def topic_id(self) -> Uuid:
        """A topic made anew has other records at the same offsets."""
        ...

    @property
    def partition_count(self) -> int:
        """0 while the topic does not exist; ConfigError if it is not the configured one."""
        ...

    async def create(self) -> None:
        """Create the topic with Kafka's settings, unless it exists."""

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        """Append with acks=all; returns the last offset. Errors are ``KafkaError``; after one that
        is ambiguous the caller appends the same again."""
        ...

    async def end_offset(self, partition: int) -> int:
        """Where the leader's committed records end."""
        ...

    async def read(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        """Waits a while for records if there are none yet. From an offset that was deleted it
        goes on at the first; OFFSET_OUT_OF_RANGE behind the end."""
        ...


class Published(Enum):
    """What a record did once it was read back."""

    EFFECTIVE = "effective"
    # A newer leader had written before: for every reader, the record never was.
    VOID = "void"


class KnownLogs(Protocol):
    """The remote logs that this broker can read from."""

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        """None while it is not known."""
        ...

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        """Wait until ``get`` returns one; callers bound the wait."""
        ...


class RemoteLogs(KnownLogs, Protocol):
    """The remote logs of the partitions that this broker hosts, and how to change them."""

    def follow(self, partition: TopicIdPartition, topic: str) -> None:
        """Keep its remote log from now on. Harmless if it is kept already."""

    def unfollow(self, partition: TopicIdPartition) -> None: ...

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        """Call ``listener`` after each record that changed a followed remote log, and once when
        it becomes ready."""

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        """None while it is not followed, or not read up to what was its end when that began."""
        ...

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        """Append, read back, apply. The same record again is harmless; an error is ambiguous."""
        ...


# --- The object store -----------------------------------------------------------------------------


class SegmentFiles(NamedTuple):
    """What is copied of a segment: paths of files, and what is made in memory."""

    log: str
    offset_index: str
    time_index: str
    # None: no transaction was aborted.
    transaction_index: str | None
    producer_snapshot: str
    # The text of a leader epoch checkpoint: all epochs up to the segment's end.
    leader_epochs: bytes
    # Looks at the log while it is put. None: there is another copy of it.
    check: Callable[[], PieceCheck] | None = None


class RemoteStorage(Protocol):
    """Objects of remote segments. Errors are ``objects.store``'s, apart from those named."""

    async def copy(self, segment: RemoteSegment, files: SegmentFiles) -> bytes | None:
        """Put log, then indexes, then manifest; returns the custom metadata."""
        ...

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> Buffer:
        """Bytes of the log, ``end`` exclusive."""
        ...

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> Buffer:
        """``NotFound`` for TRANSACTION if there is none."""
        ...

    async def delete(self, segment: RemoteSegment) -> None:
        """Manifest first; what is absent counts as deleted."""


class SegmentsAtHand(Protocol):
    """A remote storage that may have bytes in memory: an object store's ``at_hand``."""

    def fetch_now(self, segment: RemoteSegment, start: int, end: int) -> Buffer | None:
        """As ``fetch``, without waiting. None only means that ``fetch`` must be called."""
        ...


# --- The local log --------------------------------------------------------------------------------


class CopySource(Protocol):
    """A log whose closed segments are copied: a classic one, or the assembly of a diskless
    partition."""

    @property
    def config(self) -> LogConfig: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def local_log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def has_records(self) -> bool:
        """Whether there is a local record."""
        ...

    @property
    def epochs(self) -> LeaderEpochs: ...

    @property
    def closed_end(self) -> int:
        """The end of the closed segments that may be copied: all but the active one, below the
        last stable offset."""
        ...

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        """Those of them that end above ``from_offset``, oldest first."""
        ...

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        """What is copied of a closed segment. Raises OSError if it is gone."""
        ...

    def wake_when_stable(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once if a closed segment waits for the last stable offset, when that has
        passed it."""

    def bytes_from(self, offset: int) -> int:
        """Bytes of the local segments that begin at or above an offset."""
        ...

    def only_local_bytes(self, remote: RemoteLog) -> int:
        """What this log has besides its finished remote segments: the rest of its size."""
        ...

    @property
    def limits(self) -> Limits:
        """What expiry goes by; none while others see to retention."""
        ...

    async def refresh(self) -> None:
        """Learn what others have moved since. Called before a leader is prepared, and before
        expiry decides."""

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        """The highest remote offset (−1: none), and the end of the gapless run from the local
        start on; local retention goes by the latter."""

    async def start_at(self, offset: int) -> int:
        """Move the log start; durable when it returns."""
        ...

    def prepared(self) -> None:
        """This leader knows what is remote: it need not be held back any longer."""

    @property
    def knows_start(self) -> bool:
        """False if what was written down of the log start is lost, or was not learnt yet."""
        ...

    async def learn_start(self, offset: int) -> None:
        """The log start of a log that does not know it; durable when it returns."""

    async def restore_epochs(self, epochs: Sequence[EpochStart]) -> None:
        """Replace the leader epochs by those that were lost and the present ones."""

    async def rebuild(
        self,
        next_offset: int,
        log_start_offset: int,
        epochs: Sequence[EpochStart],
        producers: Sequence[ProducerEntry],
    ) -> None:
        """Let a log without records continue at ``next_offset``; what is before it is remote.
        Durable when it returns."""
