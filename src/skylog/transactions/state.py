"""A transactional id: its producer, and the state of its latest transaction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from skylog.transactions.ports import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
# From this version on, the end of a transaction bumps the epoch.
EPOCH_BUMP: Final = 2


class State(IntEnum):
    """The numbers are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    # Kafka defines these, but never writes them.
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
    """The coordinator's state of one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: State = State.EMPTY
    # While markers are being written: partitions that still need one.
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    # The id before the latest step, if that step has changed it.
    previous_producer_id: int = NO_PRODUCER_ID
    # Replaces the id, with epoch 0, once the transaction is complete.
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0
    # The epoch that a producer had before it requested a new one. Kafka's log has no field for it:
    # after a change of coordinator a repeated request gets PRODUCER_FENCED.
    last_epoch: int = NO_EPOCH

    @property
    def is_prepared(self) -> bool:
        """Decided, but not all markers are written."""
        return self.state in _PREPARED

    @property
    def is_complete(self) -> bool:
        return self.state in _COMPLETE

    @property
    def is_open(self) -> bool:
        return self.state is State.ONGOING

    @property
    def commits(self) -> bool:
        """The decision, if there is one."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def epoch_exhausted(self) -> bool:
        """The last epoch is reserved for the coordinator, which fences the producer with it."""
        return self.producer_epoch >= EPOCH_MAX - 1
