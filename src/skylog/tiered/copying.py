"""The life of one remote segment, as seen by the broker that copies or deletes it. Pure.

``next_effect`` says what to do next, ``applied`` takes what came of it; ``sagas.py`` does it.

==============  =============================  ==================================================
stage           effect                         and then
==============  =============================  ==================================================
START           publish COPY_STARTED           PUT; of an empty run, DISCARD
PUT             put log, indexes, manifest     FINISH; definite failure, or too large custom
                                               metadata: DISCARD; unclear: the same bytes again
FINISH          publish COPY_FINISHED          COPIED; void though still leading: DISCARD
DISCARD         publish DELETE_STARTED         DELETE; of an empty run, FORGET
DELETE          delete manifest, log, indexes  FORGET; failure: again
FORGET          publish DELETE_FINISHED        GONE
==============  =============================  ==================================================

A publish whose answer was lost is repeated: the same state again is valid. One that is void was
overtaken by a newer leader epoch. If that is this broker's own, it goes on in that epoch. If
another broker leads, the saga stops where it is, and that broker cleans up: nothing is done to an
object without a record that was read back and took effect.

An *empty run* has no objects. It claims a partition for a leader that has something to clean and
nothing to copy: once it is read back, what older leaders had begun can never finish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from skylog.log.checkpoints import EpochStart, encode_epochs
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition

if TYPE_CHECKING:
    from skylog.kernel.ids import Uuid
    from skylog.log.closed import ClosedSegment
    from skylog.wire.schema import Message

# Records of a topic that is gone have no leader epoch, and are never void.
NO_LEADER_EPOCH: Final = -1
NO_LOG_START: Final = -1


class Stage(Enum):
    """Where a saga stands; the last four are ends."""

    START = "start"
    PUT = "put"
    FINISH = "finish"
    DISCARD = "discard"
    DELETE = "delete"
    FORGET = "forget"
    COPIED = "copied"
    GONE = "gone"
    # Gone, and the partition is not copied any more: its custom metadata is too large.
    REFUSED = "refused"
    # Another broker leads.
    STOPPED = "stopped"


class Effect(Enum):
    """What the shell is to do."""

    PUBLISH = "publish"
    PUT = "put"
    DELETE = "delete"
    END = "end"


class Outcome(Enum):
    """What came of an effect."""

    # A publish was read back and took effect, or a put or deletion succeeded.
    DONE = "done"
    # A publish was read back and took no effect.
    VOID = "void"
    # It has certainly not taken effect.
    FAILED = "failed"
    # It may have taken effect.
    UNKNOWN = "unknown"
    # A put was refused: the segment's custom metadata is over its limit.
    TOO_LARGE = "too large"
    # A publish took no effect, for the segment is not listed any more.
    FORGOTTEN = "forgotten"
    # This broker does not lead any more; whatever was under way may have taken effect.
    DEPOSED = "deposed"


@dataclass(frozen=True, slots=True)
class Saga:
    """One segment and how far it is."""

    segment: RemoteSegment
    stage: Stage
    refused: bool = False

    @property
    def is_empty_run(self) -> bool:
        return self.segment.size == 0

    @property
    def has_ended(self) -> bool:
        return self.stage in _ENDS

    @property
    def publishes(self) -> SegmentState | None:
        """The state that a publish is to bring the segment into."""
        return _PUBLISHED.get(self.stage)


_ENDS: Final = (Stage.COPIED, Stage.GONE, Stage.REFUSED, Stage.STOPPED)
_PUBLISHED: Final = {
    Stage.START: SegmentState.COPY_STARTED,
    Stage.FINISH: SegmentState.COPY_FINISHED,
    Stage.DISCARD: SegmentState.DELETE_STARTED,
    Stage.FORGET: SegmentState.DELETE_FINISHED,
}


def copying(segment: RemoteSegment) -> Saga:
    """Copy a segment under an id that was never used."""
    return Saga(segment, Stage.START)


def claiming(segment: RemoteSegment) -> Saga:
    """Claim a partition by an ``empty_run``."""
    return Saga(segment, Stage.START)


def deleting(segment: RemoteSegment) -> Saga:
    """Delete a segment, whatever state it is in."""
    return Saga(segment, Stage.DISCARD)


def next_effect(saga: Saga) -> Effect:
    if saga.publishes is not None:
        return Effect.PUBLISH
    if saga.stage is Stage.PUT:
        return Effect.PUT
    return Effect.DELETE if saga.stage is Stage.DELETE else Effect.END


def applied(saga: Saga, outcome: Outcome, custom_metadata: bytes | None = None) -> Saga:
    """The saga after its effect; ``custom_metadata`` is what a put returned."""
    if saga.has_ended:
        return saga
    if outcome is Outcome.DEPOSED:
        return replace(saga, stage=Stage.STOPPED)
    if outcome is Outcome.FORGOTTEN:
        return replace(saga, stage=Stage.REFUSED if saga.refused else Stage.GONE)
    if outcome is Outcome.DONE:
        return replace(saga, stage=_after(saga), segment=_changed(saga, custom_metadata))
    if outcome is Outcome.TOO_LARGE:
        return replace(saga, stage=Stage.DISCARD, refused=True)
    if (saga.stage, outcome) in _DISCARDED:
        return replace(saga, stage=Stage.DISCARD)
    return saga  # once more


# A put that failed for certain; a COPY_FINISHED that an epoch of our own overtook; a second
# DELETE_FINISHED, if the answer to the first was lost and a record that was held up has brought the
# segment back meanwhile.
_DISCARDED: Final = (
    (Stage.PUT, Outcome.FAILED),
    (Stage.FINISH, Outcome.VOID),
    (Stage.FORGET, Outcome.VOID),
)


def _after(saga: Saga) -> Stage:
    if saga.stage is Stage.START:
        return Stage.DISCARD if saga.is_empty_run else Stage.PUT
    if saga.stage is Stage.PUT:
        return Stage.FINISH
    if saga.stage is Stage.DISCARD:
        return Stage.FORGET if saga.is_empty_run else Stage.DELETE
    if saga.stage is Stage.FORGET:
        return Stage.REFUSED if saga.refused else Stage.GONE
    return Stage.COPIED if saga.stage is Stage.FINISH else Stage.FORGET


def _changed(saga: Saga, custom_metadata: bytes | None) -> RemoteSegment:
    if saga.stage is Stage.PUT:
        return replace(saga.segment, custom_metadata=custom_metadata)
    state = saga.publishes
    return saga.segment if state is None else replace(saga.segment, state=state)


# -- segments --------------------------------------------------------------------------------------


def epochs_within(
    epochs: Iterable[EpochStart], start_offset: int, end_offset: int
) -> tuple[EpochStart, ...]:
    """The epochs of the offsets from ``start_offset`` to ``end_offset`` (exclusive), the first cut
    to the range."""
    found: list[EpochStart] = []
    for epoch, start in epochs:
        if start >= end_offset:
            break
        if start <= start_offset:
            found = [(epoch, start_offset)]
        else:
            found.append((epoch, start))
    return tuple(found)


def epoch_checkpoint(epochs: Iterable[EpochStart], end_offset: int) -> bytes:
    """The LEADER_EPOCH index of a segment: all epochs up to its end."""
    return encode_epochs([entry for entry in epochs if entry[1] < end_offset]).encode()


def new_segment(
    partition: TopicIdPartition,
    topic: str,
    segment_id: Uuid,
    closed: ClosedSegment,
    epochs: Iterable[EpochStart],
    broker_id: int,
    now_ms: int,
) -> RemoteSegment:
    """The remote segment that a closed one becomes."""
    return RemoteSegment(
        topic=topic,
        partition=partition,
        id=segment_id,
        start_offset=closed.base_offset,
        end_offset=closed.next_offset - 1,
        broker_id=broker_id,
        max_timestamp_ms=closed.max_timestamp,
        event_timestamp_ms=now_ms,
        epochs=epochs_within(epochs, closed.base_offset, closed.next_offset),
        size=closed.size,
        txn_index_empty=closed.transaction_index is None,
    )


def empty_run(
    partition: TopicIdPartition,
    topic: str,
    segment_id: Uuid,
    leader_epoch: int,
    log_start_offset: int,
    broker_id: int,
    now_ms: int,
) -> RemoteSegment:
    """What a leader claims a partition with. Kafka accepts it, and forgets it with its deletion."""
    return RemoteSegment(
        topic=topic,
        partition=partition,
        id=segment_id,
        start_offset=log_start_offset,
        end_offset=log_start_offset,
        broker_id=broker_id,
        max_timestamp_ms=-1,
        event_timestamp_ms=now_ms,
        epochs=((leader_epoch, log_start_offset),),
        size=0,
        txn_index_empty=True,
    )


def record_of(
    saga: Saga, broker_id: int, now_ms: int, copier_epoch: int, log_start_offset: int
) -> Message:
    """The record of a saga's publish. ``copier_epoch`` is the leader's at this moment: a new epoch
    of the same leader lets its saga go on."""
    state = saga.publishes
    if state is None:
        raise ValueError(f"nothing is published in stage {saga.stage.value}")
    if state is SegmentState.COPY_STARTED:
        begun = replace(saga.segment, copier_epoch=copier_epoch)
        return segment_started(begun, log_start_offset)
    return segment_updated(
        saga.segment,
        state,
        broker_id=broker_id,
        now_ms=now_ms,
        copier_epoch=copier_epoch,
        log_start_offset=log_start_offset,
    )
