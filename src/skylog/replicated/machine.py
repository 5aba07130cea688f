"""The shape of every replicated state machine: controller, groups, transactions, coordinators.

``handle`` reads the state and changes nothing; ``apply`` is the only mutation, never fails, and is
the same code on a leader, on a follower, while a snapshot loads and in the simulator. What must
survive the leader is a record; what may be lost with it (a member that has joined but whose
generation is not written yet) is a *volatile* event: applied like a record, never logged.
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
    """Pass ``request`` to the machine after a delay; a timer of the same key is replaced."""

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
    """A line for the process's log, written once its content is decided."""

    message: str
    warning: bool = False


Effect = StartTimer | CancelTimer | Answer | Note


@dataclass(frozen=True, slots=True)
class Parked:
    """A reply that is not known yet: an ``Answer`` with the same key provides it."""

    key: Any


@dataclass(frozen=True, slots=True)
class InTransaction:
    """The producer of the records' transaction: they count once it has committed."""

    producer_id: int
    producer_epoch: int
    # The result of the transaction's verification, see ``log/verification.py``.
    guard: Guard | None = None
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class TransactionalRecord:
    """A record of a transaction, as passed to ``apply``; a ``TransactionEnd`` decides its
    outcome."""

    producer_id: int
    record: Any


@dataclass(frozen=True, slots=True)
class Result(Generic[Reply]):
    """The result of one request: records (one atomic batch), volatile events, a reply, effects.

    Records may be part of a transaction; a result without records may be the end of one.
    """

    reply: Reply | Parked | KafkaError
    records: Sequence[Any] = ()
    volatile: Sequence[Any] = ()
    effects: Sequence[Effect] = ()
    transaction: InTransaction | TransactionEnd | None = None


class Machine(Protocol[RequestT_contra]):
    """A replicated state machine; pure: no I/O, clock or randomness."""

    def handle(self, request: RequestT_contra, now_ms: int) -> Result[Any]: ...

    def apply(self, record: Any, offset: int) -> None:
        """``offset`` is the record's log offset, -1 for a volatile event."""
        ...

    def snapshot(self) -> Iterable[Any]:
        """The records that rebuild the state."""
        ...
