"""What a broker does for clients with one partition, whatever keeps its records.

Handlers know this port and nothing behind it: no handler asks what kind a partition is. Who adds a
kind (tiered, migrated, something new) writes a ``ServedPartition`` and names it to the factory.

*Finding.* ``factory.Partitions`` gives a partition by its name, or raises Kafka's error for why
this broker has none. Whether it may answer is asked next: ``require_leader`` for everything but a
fetch, ``require_reader`` for that. A partition that was found may be deleted, or led elsewhere,
while its request waits for something: who goes on after a wait asks ``require_leader`` again.

*Answers.* A method gives the answer, raises a ``KafkaError`` (of this partition alone), or gives a
``Question``: then the answer needs a disk, an object store or another broker. A handler collects
the questions of a request and puts all of one *joint* with one call, so that a thousand partitions
cost one submission to the writer, one question to a coordinator or one visit to a thread. What
comes back stands in the order of the questions, each an answer or a ``KafkaError``. What is at hand
makes no question: the way of a request that waits for nothing has no coroutine, no future, no task.

*Writing.* ``append`` takes one validated batch; its order among the batches of a request, and of
requests, is the order of the calls, also where the answer is a question. Of a batch that is refused
nothing is kept, and a failure after ``append`` returned says whether the outcome is known
(``KafkaError.ambiguous``). Traffic is counted here, once for each batch that was taken.

*Reading.* ``read`` gives whole batches from the one that holds the offset on. It may end early, at
the edge of a region (what is tiered, what is on disk, what is in objects): the reader comes back
for the rest, so no answer is ever put together from two regions. It reads no more than the budget
has left. A joint shares out what those before it leave: the joint of the first partition in a
request's order is asked before all others are read, and so is one whose question ``holds``.

*Waiting.* A watcher is told of everything that changes an answer: records that became readable (how
many bytes, or 0 if that is not known), another leader, another log start, the end of the partition.
It is told on the event loop, and it is told too often rather than once too seldom.
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
    """A partition that cannot be served as things stand, whatever its log holds."""


# --- Writing --------------------------------------------------------------------------------------


class Appended(NamedTuple):
    """Where a batch went; for a duplicate, where it went the first time."""

    error: ErrorCode
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None


class AppendOutcome(Protocol):
    """An ``Appended``, or what a writer has of the same shape."""

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
    """Batches under way; the joint of an ``append`` is called with them and the request's number.

    ``waits``: not even begun, for want of room, so that the client's next request must not begin
    either. ``results`` are what is known by now; of the rest, that their time is up.
    """

    @property
    def done(self) -> asyncio.Future[None]: ...
    @property
    def waits(self) -> bool: ...

    def results(self) -> Sequence[AppendOutcome]: ...


# --- Reading --------------------------------------------------------------------------------------


class Isolation(Enum):
    """Up to where somebody reads."""

    LOG_END = "log end"  # followers
    UNCOMMITTED = "high watermark"
    COMMITTED = "last stable offset"


class Reader:
    """Who fetches: a consumer, or the broker of a follower.

    ``anywhere``: not from the leader only.
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
    """The bytes that a fetch may still answer with; it is the fetch that takes from it.

    ``untouched``: one batch may come, however large. ``held``: somebody before has to be asked
    first, so that nothing may be read yet, not even what is at hand.
    """

    __slots__ = ("held", "left", "untouched")

    def __init__(self, left: int, *, untouched: bool = True) -> None:
        self.left = left
        self.untouched = untouched
        self.held = False

    def take(self, size: int) -> None:
        self.left = max(self.left - size, 0)
        self.untouched = False


class Found(NamedTuple):
    """The answer to ListOffsets."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class Deleted(NamedTuple):
    """A log that begins at ``low_watermark`` on every replica, unless there was an error."""

    low_watermark: int
    error: ErrorCode = ErrorCode.NONE


class Watcher(Protocol):
    def partition_moved(self, appended_bytes: int) -> None: ...


# --- The port -------------------------------------------------------------------------------------


class ServedPartition(Protocol):
    """See above. All methods run on the event loop and block nobody."""

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
        """−1 where only somebody else knows."""
        ...

    @property
    def takes_transactions(self) -> bool:
        """Whether transactional batches, and the markers that end them, have a place here."""
        ...

    def require_leader(self, client_epoch: int = NO_EPOCH) -> None:
        """Raises unless this broker writes it and speaks for it, in the epoch that clients know."""

    def require_reader(self, reader: Reader, client_epoch: int) -> None:
        """Raises unless ``reader`` may fetch it here; ``RefusedError`` if no wait would help."""

    # Writing

    def require_in_sync(self) -> None:
        """NOT_ENOUGH_REPLICAS where a write with acks=all cannot be taken."""

    def append(
        self, batch: Validated, origin: Origin, now_ms: int, *, acks_all: bool
    ) -> AppendOutcome | Question[AppendOutcome]: ...

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        """As ``log.verification``: None where the transaction is open already."""
        ...

    def end_transaction(self, end: TransactionEnd, now_ms: int) -> asyncio.Future[None] | None:
        """Write a marker; what to wait for until it cannot be lost any more."""
        ...

    def delete_before(self, offset: int) -> Deleted | Question[Deleted]:
        """−1: everything that is committed. The joint is called with the seconds to wait, too."""
        ...

    # Reading

    def read(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool
    ) -> PartitionData | Question[PartitionData]:
        """``is_new``: the reader says this for the first time, so that a follower's progress
        counts. The joint is called with the budget, too."""
        ...

    def expects_follower(self, replica_id: int, offset: int) -> bool:
        """Whether a follower's next fetch is looked at though it says nothing of this partition."""
        ...

    def offset_for(self, timestamp: int, isolation: Isolation) -> Found | Question[Found]:
        """By time, or by one of ListOffsets' negative numbers."""
        ...

    def epoch_end(self, epoch: int) -> EpochEnd | Question[EpochEnd]: ...

    def active_producers(self) -> Sequence[ProducerEntry]: ...

    def byte_size(self) -> int | Question[int]: ...

    def plan(self, asked: RangeRequest, split_bytes: int) -> Question[PlannedRange]:
        """Splits for bulk readers, all or a page of them."""
        ...

    # Waiting

    def watch(self, watcher: Watcher, *, appends: bool = False) -> None:
        """``appends``: of what followers may read; ``watcher`` is a ``FollowerWatcher`` then."""

    def unwatch(self, watcher: Watcher) -> None: ...


class ServedPartitions(Protocol):
    """The partitions of one kind."""

    def find(self, topic: Topic, index: int) -> ServedPartition:
        """Raises NOT_LEADER_OR_FOLLOWER, or what else is true, for one that is not here.

        A partition is the same object for as long as it is here: sessions watch it.
        """
        ...
