"""Input and output of the transaction machine: requests, replies, volatile events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skylog.kernel.errors import ErrorCode
from skylog.transactions.ports import TopicPartition
from skylog.transactions.state import NO_EPOCH, NO_PRODUCER_ID, Transaction


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply to InitProducerId and EndTxn.

    ``decided`` is a transaction that this request has decided: its markers must be written.
    """

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    decided: Transaction | None = None


# Retry with ``new_producer_id``: ids come from the controller, which a machine cannot ask.
NEEDS_PRODUCER_ID: Final = Outcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """``expected`` is the id and epoch of a producer that wants to continue after an error."""

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class AddPartitions:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = 0


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class EndTxn:
    """``client_version`` 2: the reply has the epoch of the next transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_version: int = 0
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class AbortTimedOut:
    """Abort a timed-out transaction, and fence its producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """Partitions have their markers; the epoch is that of the markers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ExpireIds:
    """Forget those of these ids that have expired."""

    transactional_ids: tuple[str, ...]


# Queries; they change nothing.


@dataclass(frozen=True, slots=True)
class FindPrepared:
    """Decided transactions, whose markers the broker that loaded the partition must write."""


@dataclass(frozen=True, slots=True)
class FindTimedOut:
    pass


@dataclass(frozen=True, slots=True)
class FindIds:
    """All ids, for a pass over them."""


@dataclass(frozen=True, slots=True)
class Describe:
    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Empty sets and a negative duration match everything."""

    producer_ids: frozenset[int] = frozenset()
    states: frozenset[str] = frozenset()
    duration_ms: int = -1
    matches: Callable[[str], bool] | None = None


TransactionRequest = (
    InitProducerId
    | AddPartitions
    | VerifyPartitions
    | EndTxn
    | AbortTimedOut
    | MarkersWritten
    | ExpireIds
    | FindPrepared
    | FindTimedOut
    | FindIds
    | Describe
    | ListFilter
)


# A volatile event.


@dataclass(frozen=True, slots=True)
class PartitionsMarked:
    """Some partitions have their markers; if this is lost, they are written again."""

    transactional_id: str
    partitions: frozenset[TopicPartition]
