"""Whether a batch may open a transaction in this partition (KIP-890): pure.

The first batch of a transaction is written only once the transaction's coordinator has confirmed
that the partition is part of it. ``start`` returns a guard before the coordinator is asked, and the
append must pass it: a marker that is written meanwhile invalidates the guard, so a response about
an ended transaction opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import TRANSACTION_GUARDS_PER_PARTITION_MAX
from skylog.wire.batch import Batch


@dataclass(slots=True, eq=False)
class Guard:
    """One verification in progress: equal only to itself."""

    started_ms: int
    lowest_sequence: int
    epoch: int
    # The producer's epoch grows with each transaction (transaction version 2).
    epoch_grows: bool

    def note(self, sequence: int, epoch: int) -> None:
        """Nothing may overtake the lowest sequence that waits for its verification."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of an append to the leader, which decides what is checked."""

    # Coordinators' batches have no sequence numbers and are never repeated.
    is_client: bool = True
    guard: Guard | None = None
    # False if the broker's settings disable verification.
    is_verified: bool = True
    # That of the coordinator that writes a marker.
    transaction_version: int = 0


CLIENT = Origin()
COORDINATOR = Origin(is_client=False)


class Verifications:
    """The verifications of one partition that have not led to a batch yet, by producer."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def get(self, producer_id: int) -> Guard | None:
        return self._guards.get(producer_id)

    def copy(self) -> Verifications:
        copy = Verifications()
        copy._guards = dict(self._guards)
        return copy

    def start(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard:
        guard = self._guards.get(producer_id)
        if guard is None:
            if len(self._guards) >= TRANSACTION_GUARDS_PER_PARTITION_MAX:
                del self._guards[next(iter(self._guards))]
            guard = self._guards[producer_id] = Guard(now_ms, sequence, epoch, epoch_grows)
        guard.note(sequence, epoch)
        return guard

    def require(self, batch: Batch, origin: Origin) -> None:
        """Raise unless the batch, which opens a transaction, was verified."""
        if not origin.is_verified:
            return
        guard = self._guards.get(batch.producer_id)
        if guard is None or guard is not origin.guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def written(self, batch: Batch) -> None:
        """A transactional batch is in the log: its transaction is open, or has ended."""
        guard = self._guards.get(batch.producer_id)
        if guard is None:
            return
        # The marker has the epoch of the producer's next transaction, which may have begun.
        is_next = guard.epoch_grows and batch.is_control and batch.producer_epoch == guard.epoch
        if not is_next:
            del self._guards[batch.producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        late = [p for p, g in self._guards.items() if now_ms - g.started_ms >= expiration_ms]
        for producer_id in late:
            del self._guards[producer_id]
