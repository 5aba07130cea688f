"""How a follower continues if the leader's records at its end are in the object store only. Pure.

=============================  ==================================================================
what is known                  next
=============================  ==================================================================
the leader said 109, or the    ask for the leader's log start (−2) and for the *boundary*: the
log has no history             start of the leader's local log (−4), or what waits for its upload
                               (−6), see ``boundary_question``
−6 has no answer               ask −4: nothing may wait for its upload, for as long as nobody
                               writes
boundary ≤ log start           nothing is remote: start over at the leader's log start
boundary, its epoch            the epoch of the record before it: ``earlier_epoch`` says which
                               epoch's end to ask for, ``target_epoch`` decides
target epoch                   download the state at the end of the segment with that record, and
                               check it (``check_state``)
no such segment, bad bytes     pause, then begin again
checked state                  truncate fully to the offset behind the segment, with the leader's
                               log start · write the producers' snapshot · write the epochs · fetch
=============================  ==================================================================

Nothing of the old log is dropped before the new state is downloaded and checked. The epochs come
last: a log that has no history (``lacks_history``) is never fetched into, so that a crash between
these steps only repeats them. Kafka would go on without its producers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.log.checkpoints import EpochStart, Malformed, decode_epochs, decode_snapshot
from skylog.log.epochs import LeaderEpochs
from skylog.log.producers import ProducerEntry
from skylog.replication.follower import EpochEnd

EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
EARLIEST_PENDING_UPLOAD: Final = -6
NO_EPOCH: Final = -1


class LeaderOffset(NamedTuple):
    """The leader's answer to ListOffsets."""

    offset: int
    epoch: int


class RemoteState(NamedTuple):
    """What a remote segment says of the log up to its end, as downloaded: nothing is checked."""

    start_offset: int
    # Inclusive.
    end_offset: int
    # A leader epoch checkpoint, and a producer snapshot.
    epochs: bytes
    snapshot: bytes


@dataclass(frozen=True, slots=True)
class CheckedState:
    """With what a log continues at ``next_offset``."""

    next_offset: int
    epochs: Sequence[EpochStart]
    producers: Sequence[ProducerEntry]


class ReplicaLog(Protocol):
    """What is needed of a follower's log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def latest_epoch(self) -> int: ...

    @property
    def size(self) -> int: ...


def lacks_history(log: ReplicaLog) -> bool:
    """Whether a log has neither records nor epochs, but ends above its start.

    One that ends at its start is complete: all of its records were deleted.
    """
    return (
        log.latest_epoch == NO_EPOCH and log.log_end_offset > log.log_start_offset and not log.size
    )


def boundary_question(log: ReplicaLog, *, from_last_tiered_offset: bool) -> int:
    """Which offset of the leader's to ask for: only an empty replica may skip what the leader has
    locally, too."""
    is_empty = log.latest_epoch == NO_EPOCH and not log.size
    return EARLIEST_PENDING_UPLOAD if from_last_tiered_offset and is_empty else EARLIEST_LOCAL


def is_ahead(log: ReplicaLog, boundary: LeaderOffset) -> bool:
    """Whether the log has records up to the boundary by now: it is fetched as usual."""
    return bool(log.size) and log.log_end_offset >= boundary.offset


def earlier_epoch(boundary: LeaderOffset) -> int | None:
    """The epoch whose end tells that of the record before the boundary; None if it is clear."""
    if boundary.offset < 0 or boundary.epoch < 0:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE, "the leader does not know where its local log begins"
        )
    return boundary.epoch - 1 if boundary.epoch else None


def target_epoch(boundary: LeaderOffset, earlier: EpochEnd | None) -> int:
    """The epoch of the record before the boundary; ``earlier`` is the end of ``earlier_epoch``.

    Its own epoch counts, as there may be gaps: with epochs 1 and 3, the end of 2 is that of 1.
    """
    if earlier is not None and earlier.epoch >= 0 and earlier.end_offset > boundary.offset - 1:
        return earlier.epoch
    return boundary.epoch


def check_state(state: RemoteState, boundary: LeaderOffset, epoch: int) -> CheckedState:
    """Check what was downloaded for the record of ``epoch`` before the boundary; CORRUPT_MESSAGE if
    it cannot be that segment's."""
    record = boundary.offset - 1
    if not 0 <= state.start_offset <= record <= state.end_offset:
        raise _corrupt(f"{state.start_offset}..{state.end_offset} does not have {record}")
    if max(len(state.epochs), len(state.snapshot)) > LOG_CHECKPOINT_BYTES_MAX:
        raise _corrupt("the state is too large")
    try:
        epochs = decode_epochs(state.epochs.decode())
        producers = decode_snapshot(state.snapshot)
    except (Malformed, UnicodeDecodeError) as fault:
        raise _corrupt(str(fault)) from fault
    _check_epochs(epochs, state.end_offset)
    if LeaderEpochs(epochs).of(record) != epoch:
        raise _corrupt(f"record {record} is not of epoch {epoch}")
    _check_producers(producers, state.end_offset)
    return CheckedState(state.end_offset + 1, tuple(epochs), tuple(producers))


def _check_epochs(epochs: Sequence[EpochStart], end_offset: int) -> None:
    """Ascending in both, and all of them within the segment or before it."""
    before = (-1, -1)
    for epoch, start in epochs:
        if epoch <= before[0] or start <= before[1]:
            raise _corrupt(f"epoch {epoch} at {start} follows {before[0]} at {before[1]}")
        before = epoch, start
    if before[1] > end_offset:
        raise _corrupt(f"epoch {before[0]} begins at {before[1]}, behind the segment")


def _check_producers(producers: Sequence[ProducerEntry], end_offset: int) -> None:
    seen: set[int] = set()
    for entry in producers:
        if entry.producer_id < 0 or entry.producer_id in seen:
            raise _corrupt(f"producer {entry.producer_id} is there twice, or is none")
        seen.add(entry.producer_id)
        if max(entry.last_offset, entry.txn_first_offset) > end_offset:
            raise _corrupt(f"producer {entry.producer_id} has written behind the segment")


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"state of a remote segment: {why}")
