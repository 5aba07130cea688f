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
class Result(Generic[Reply]):
    """What one request comes to: records (one atomic batch), volatile events, a reply, effects."""

    reply: Reply | Parked | KafkaError
    records: Sequence[Any] = ()
    volatile: Sequence[Any] = ()
    effects: Sequence[Effect] = ()


class Machine(Protocol[RequestT_contra]):
    """A replicated state machine; pure: no I/O, no clock, no randomness of its own."""

    def handle(self, request: RequestT_contra, now_ms: int) -> Result[Any]: ...

    def apply(self, record: Any, offset: int) -> None:
        """``offset`` is the record's place in the log, -1 for a volatile event."""
        ...

    def snapshot(self) -> Iterable[Any]:
        """The records that rebuild the state."""
        ...
