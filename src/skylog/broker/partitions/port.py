"""The port to one partition as clients use it, wherever its records are stored.

Handlers know this port and nothing behind it: no handler checks the kind of a partition. To add a
kind (tiered, migrated, something new), implement ``ServedPartition`` and register it in the
factory.

*Finding.* ``factory.Partitions`` finds a partition by name, or raises Kafka's error if this broker
does not have it. Next, check whether this broker may answer: ``require_reader`` for a fetch,
``require_leader`` for everything else. A partition may be deleted, or change its leader, while a
request waits: call ``require_leader`` again after every wait.

*Answers.* A method returns the answer, raises a ``KafkaError`` (for this partition alone), or
returns a ``Question``: then the answer needs a disk, an object store or another broker. A handler
collects the questions of a request and calls each *resolver* once with all of its questions, so
that a thousand partitions cost one submission to the writer, one request to a coordinator or one
call to a thread. The results are in the order of the questions, each an answer or a ``KafkaError``.
An answer in memory is returned directly: a request that waits for nothing needs no coroutine,
future or task.

*Writing.* ``append`` takes one validated batch. Batches are written in the order of the calls,
within a request and across requests, even if the answer is a question. If a batch is refused,
nothing of it is kept. A failure after ``append`` has returned says whether the outcome is known
(``KafkaError.ambiguous``). Traffic is counted here, once for each accepted batch.

*Reading.* ``read`` returns whole batches, starting with the one that contains the offset. It may
end early, at the edge of a region (tiered, local disk, objects): the reader comes back for the
rest, so no answer combines two regions. It reads no more than the budget has left. A resolver
shares out what is left by those before it: the resolver of the first partition in a request's order
is called before all others are read, and so is one whose question ``holds``. One whose question
``reserves`` bytes has them already: it holds nothing, and runs beside the others.

*Waiting.* A watcher is notified of everything that changes an answer: records that became readable
(how many bytes, or 0 if that is unknown), another leader, another log start offset, the end of the
partition. It is notified on the event loop, and rather too often than too seldom.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import asyncio

    from skylog.broker.partitions.questions import Question
    from skylog.controller.image.topics import Topic
    from skylog.diskless.bulk import PlannedRange, RangeRequest
    from skylog.log.producers import ProducerEntry, TransactionEnd
    from skylog.log.verification import Guard, Origin
    from skylog.wire.messages.fetch_request import FetchPartition
    from skylog.wire.messages.fetch_response import PartitionData
    from skylog.wire.validation import Validated

NO_EPOCH: Final = -1
NO_REPLICA: Final = -1


class RefusedError(KafkaError):
    """A partition that cannot be served in its current state, whatever its log holds."""


# --- Writing --------------------------------------------------------------------------------------


class Appended(NamedTuple):
    """Where a batch was written; for a duplicate, where the original was."""

    error: ErrorCode
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None


class AppendOutcome(Protocol):
    """An ``Appended``, or a writer's result of the same shape."""

    @property
    def error(self) -> ErrorCode: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def log_append_time(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def message(self) -> str | None: ...


class Writing(Protocol):
    """Batches being written; the resolver of an ``append`` is called with the questions and the
    request's number.

    ``waits``: the write has not begun, for lack of space, so the client's next request must not
    begin either. ``results`` are those known by now; for the rest, a timeout.
    """

    @property
    def done(self) -> asyncio.Future[None]: ...
    @property
    def waits(self) -> bool: ...

    def results(self) -> Sequence[AppendOutcome]: ...


# --- Reading --------------------------------------------------------------------------------------


class Isolation(Enum):
    """The upper bound of a read."""

    LOG_END = "log end"  # followers
    UNCOMMITTED = "high watermark"
    COMMITTED = "last stable offset"


class Reader:
    """The client of a fetch: a consumer, or a follower's broker.

    ``anywhere``: it may read from any replica, not only from the leader.
    """

    __slots__ = (
        "anywhere",
        "broker_epoch",
        "client_id",
        "is_follower",
        "listener",
        "rack",
        "read_committed",
        "replica_id",
    )

    def __init__(
        self,
        replica_id: int = NO_REPLICA,
        *,
        broker_epoch: int = -1,
        read_committed: bool = False,
        anywhere: bool = False,
        rack: str = "",
        client_id: str | None = None,
        listener: str = "",
    ) -> None:
        self.replica_id = replica_id
        self.is_follower = replica_id >= 0
        self.broker_epoch = broker_epoch
        self.read_committed = read_committed
        self.anywhere = anywhere
        self.rack = rack
        self.client_id = client_id
        self.listener = listener


class Budget:
    """The bytes that a fetch may still return; the fetch itself deducts from it.

    ``untouched``: one batch may be returned, however large. ``held``: an earlier partition must be
    resolved first, so nothing may be read yet, not even from memory.
    """

    __slots__ = ("held", "left", "untouched")

    def __init__(self, left: int, *, untouched: bool = True) -> None:
        self.left = left
        self.untouched = untouched
        self.held = False

    def take(self, size: int) -> None:
        self.left = max(self.left - size, 0)
        self.untouched = False

    @property
    def reservable(self) -> int:
        """How much a read may reserve before it begins. Something is left for an earlier partition
        that must be resolved first."""
        return self.left // 2 if self.held else self.left

    def reserve(self, size: int) -> None:
        """As in Kafka, that counts like bytes that were read."""
        self.left = max(self.left - size, 0)
        self.untouched = self.untouched and self.held


class Found(NamedTuple):
    """The answer to ListOffsets."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class Deleted(NamedTuple):
    """The start offset of the log on every replica, unless there was an error."""

    low_watermark: int
    error: ErrorCode = ErrorCode.NONE


class Watcher(Protocol):
    def partition_moved(self, appended_bytes: int) -> None: ...


# --- The port -------------------------------------------------------------------------------------


class ServedPartition(Protocol):
    """See above. All methods run on the event loop and must not block."""

    @property
    def topic(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int:
        """-1 if this broker does not know it."""
        ...

    @property
    def takes_transactions(self) -> bool:
        """Whether transactional batches, and the markers that end them, can be written here."""
        ...

    def require_leader(self, client_epoch: int = NO_EPOCH) -> None:
        """Raises unless this broker leads the partition, in the epoch that the client knows."""

    def require_reader(self, reader: Reader, client_epoch: int) -> None:
        """Raises unless ``reader`` may fetch here; ``RefusedError`` if waiting would not help."""

    # Writing

    def require_in_sync(self) -> None:
        """NOT_ENOUGH_REPLICAS if a write with acks=all cannot be accepted."""

    def append(
        self, batch: Validated, origin: Origin, now_ms: int, *, acks_all: bool
    ) -> AppendOutcome | Question[AppendOutcome]: ...

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        """As in ``log.verification``: None if the transaction is already open."""
        ...

    def end_transaction(self, end: TransactionEnd, now_ms: int) -> asyncio.Future[None] | None:
        """Write a marker; returns what to wait for until it can no longer be lost."""
        ...

    def delete_before(self, offset: int) -> Deleted | Question[Deleted]:
        """-1: everything committed. The resolver also takes the seconds to wait."""
        ...

    # Reading

    def read(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool
    ) -> PartitionData | Question[PartitionData]:
        """``is_new``: the reader's request is new, so a follower's offset counts as progress. The
        resolver also takes the budget."""
        ...

    def expects_follower(self, replica_id: int, offset: int) -> bool:
        """Whether a follower's next fetch is examined although it does not mention this
        partition."""
        ...

    def offset_for(
        self, timestamp: int, isolation: Isolation, timeout_ms: int = 0
    ) -> Found | Question[Found]:
        """By time, or by one of ListOffsets' negative timestamps. ``timeout_ms`` bounds a search
        of remote segments; 0 is the broker's limit."""
        ...

    def epoch_end(self, epoch: int) -> EpochEnd | Question[EpochEnd]: ...

    def active_producers(self) -> Sequence[ProducerEntry]: ...

    def byte_size(self) -> int | Question[int]: ...

    def plan(self, asked: RangeRequest, split_bytes: int) -> Question[PlannedRange]:
        """Splits for bulk readers, all or a page of them."""
        ...

    # Waiting

    def watch(self, watcher: Watcher, *, appends: bool = False) -> None:
        """``appends``: of what followers may read; ``watcher`` is then a ``FollowerWatcher``."""

    def unwatch(self, watcher: Watcher) -> None: ...


class ServedPartitions(Protocol):
    """The partitions of one kind."""

    def find(self, topic: Topic, index: int) -> ServedPartition:
        """Raises NOT_LEADER_OR_FOLLOWER, or a more specific error, if it is not here.

        A partition is the same object for as long as it is here: sessions watch it.
        """
        ...
