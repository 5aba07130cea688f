"""The shape of every replicated state machine: controller, groups, transactions, coordinators.

``handle`` looks at the state and changes nothing; ``apply`` is the only mutation, is total, and is
the same code on a leader, on a follower, while a snapshot loads and in the simulator. What must
outlive the leader is a record; what may die with it (a member that has joined but whose generation
is not written yet) is a *volatile* event: applied like a record, never logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from skylog.kernel.errors import KafkaError
from skylog.log.producers import TransactionEnd
from skylog.log.verification import Guard

Reply = TypeVar("Reply")
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Give ``request`` to the machine after a delay; a timer of the same key is replaced."""

    key: Any
    delay_ms: int
    request: Any


@dataclass(frozen=True, slots=True)
class CancelTimer:
    key: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a parked request (see ``Parked``)."""

    key: Any
    reply: Any


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the log of the process, written once what it tells is decided."""

    message: str
    warning: bool = False


Effect = StartTimer | CancelTimer | Answer | Note


@dataclass(frozen=True, slots=True)
class Parked:
    """A reply that is not known yet: an ``Answer`` of the same key brings it."""

    key: Any


@dataclass(frozen=True, slots=True)
class InTransaction:
    """The producer to whose transaction records belong: they count once it has committed."""

    producer_id: int
    producer_epoch: int
    # What the transaction's coordinator was asked with, see ``log/verification.py``.
    guard: Guard | None = None
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class TransactionalRecord:
    """A record of a transaction, as ``apply`` gets it; a ``TransactionEnd`` decides about it."""

    producer_id: int
    record: Any


@dataclass(frozen=True, slots=True)
class Result(Generic[Reply]):
    """What one request comes to: records (one atomic batch), volatile events, a reply, effects.

    Records may be part of a transaction, or the result, without records, the end of one.
    """

    reply: Reply | Parked | KafkaError
    records: Sequence[Any] = ()
    volatile: Sequence[Any] = ()
    effects: Sequence[Effect] = ()
    transaction: InTransaction | TransactionEnd | None = None


class Machine(Protocol[RequestT_contra]):
    """A replicated state machine; pure: no I/O, no clock, no randomness of its own."""

    def handle(self, request: RequestT_contra, now_ms: int) -> Result[Any]: ...

    def apply(self, record: Any, offset: int) -> None:
        """``offset`` is the record's place in the log, -1 for a volatile event."""
        ...

    def snapshot(self) -> Iterable[Any]:
        """The records that rebuild the state."""
        ...
