"""A transactional id: who its producer is, and how far its latest transaction has come."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from skylog.transactions.ports import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
# From here on a transaction of version 2 raises the epoch with its end.
EPOCH_BUMP: Final = 2


class State(IntEnum):
    """The numbers are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    # Kafka knows these, and never writes them.
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name that clients see."""
        return _LABELS[self]


_LABELS: Final = {state: state.name.title().replace("_", "") for state in State}
_PREPARED: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
_COMPLETE: Final = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True)
class Transaction:
    """What the coordinator knows of one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: State = State.EMPTY
    # While markers are being written: those that still need one.
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    # The id before the latest step, which differs where that step has changed it.
    previous_producer_id: int = NO_PRODUCER_ID
    # Takes the place of the id, with epoch 0, once the transaction is complete.
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0
    # The epoch that a producer had before it asked for a new one. Kafka's log has no place for
    # it: after a change of coordinator a repeated question is answered with PRODUCER_FENCED.
    last_epoch: int = NO_EPOCH

    @property
    def is_prepared(self) -> bool:
        """Decided, and not yet told to all partitions."""
        return self.state in _PREPARED

    @property
    def is_complete(self) -> bool:
        return self.state in _COMPLETE

    @property
    def is_open(self) -> bool:
        return self.state is State.ONGOING

    @property
    def commits(self) -> bool:
        """The decision, once there is one."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def epoch_exhausted(self) -> bool:
        """The last epoch is kept for the coordinator, which fences the producer with it."""
        return self.producer_epoch >= EPOCH_MAX - 1
