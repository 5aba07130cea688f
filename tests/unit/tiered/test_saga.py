"""The life of a remote segment: every stage, every outcome."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.closed import ClosedSegment
from skylog.tiered.copying import (
    Effect,
    Outcome,
    Saga,
    Stage,
    applied,
    claiming,
    copying,
    deleting,
    empty_run,
    epoch_checkpoint,
    epochs_within,
    new_segment,
    next_effect,
    record_of,
)
from skylog.tiered.counts import TieredCounts
from skylog.tiered.ports import Published
from skylog.tiered.sagas import SagaRunner
from skylog.tiered.segments import RemoteSegment, SegmentState
from tests.tiered_world import NO_PAUSE, PARTITION, TOPIC, Broker, Reply, World, WorldLog

ID = Uuid(b"segment-segment-")
CLOSED = ClosedSegment(100, 200, 5000, 77, "l", "i", "t", None, "s")


def segment() -> RemoteSegment:
    return new_segment(PARTITION, TOPIC, ID, CLOSED, [(0, 0), (3, 150)], 1, 42)


def test_a_copy_goes_from_started_to_finished() -> None:
    saga = copying(segment())
    seen = []
    while not saga.has_ended:
        seen.append((next_effect(saga), saga.publishes))
        saga = applied(saga, Outcome.DONE, b"custom")
    assert seen == [
        (Effect.PUBLISH, SegmentState.COPY_STARTED),
        (Effect.PUT, None),
        (Effect.PUBLISH, SegmentState.COPY_FINISHED),
    ]
    assert saga.stage is Stage.COPIED
    assert saga.segment.custom_metadata == b"custom"
    assert saga.segment.state is SegmentState.COPY_FINISHED
    assert next_effect(saga) is Effect.END
    assert applied(saga, Outcome.DEPOSED) is saga


def test_a_definite_failure_of_a_put_deletes_what_there_is() -> None:
    saga = applied(applied(copying(segment()), Outcome.DONE), Outcome.FAILED)
    stages = []
    while not saga.has_ended:
        stages.append(saga.stage)
        saga = applied(saga, Outcome.DONE)
    assert stages == [Stage.DISCARD, Stage.DELETE, Stage.FORGET]
    assert saga.stage is Stage.GONE


def test_an_unclear_put_is_repeated() -> None:
    saga = applied(copying(segment()), Outcome.DONE)
    assert applied(saga, Outcome.UNKNOWN) == saga
    assert next_effect(saga) is Effect.PUT


@pytest.mark.parametrize("stage", [Stage.START, Stage.FINISH, Stage.DISCARD, Stage.FORGET])
def test_a_publish_whose_answer_was_lost_is_repeated(stage: Stage) -> None:
    saga = Saga(segment(), stage)
    assert applied(saga, Outcome.UNKNOWN) == saga
    assert applied(saga, Outcome.FAILED) == saga


def test_void_while_still_leading_discards_a_finished_copy_and_repeats_the_rest() -> None:
    assert applied(Saga(segment(), Stage.FINISH), Outcome.VOID).stage is Stage.DISCARD
    for stage in (Stage.START, Stage.DISCARD):
        assert applied(Saga(segment(), stage), Outcome.VOID).stage is stage


def test_a_deleted_segment_that_a_late_record_brought_back_is_deleted_again() -> None:
    assert applied(Saga(segment(), Stage.FORGET), Outcome.VOID).stage is Stage.DISCARD


@pytest.mark.parametrize(
    "stage",
    [s for s in Stage if s.value in ["start", "put", "finish", "discard", "delete", "forget"]],
)
def test_a_deposed_leader_stops_wherever_it_is(stage: Stage) -> None:
    assert applied(Saga(segment(), stage), Outcome.DEPOSED).stage is Stage.STOPPED


def test_a_segment_that_others_have_deleted_is_gone() -> None:
    assert applied(Saga(segment(), Stage.FORGET), Outcome.FORGOTTEN).stage is Stage.GONE


def test_custom_metadata_that_is_too_large_stops_the_partition_when_all_is_deleted() -> None:
    saga = applied(applied(copying(segment()), Outcome.DONE), Outcome.TOO_LARGE)
    stages = []
    while not saga.has_ended:
        stages.append(saga.stage)
        saga = applied(saga, Outcome.DONE)
    assert stages == [Stage.DISCARD, Stage.DELETE, Stage.FORGET]
    assert saga.stage is Stage.REFUSED


def test_an_empty_run_touches_no_object() -> None:
    saga = claiming(empty_run(PARTITION, TOPIC, ID, 7, 55, 1, 42))
    effects = []
    while not saga.has_ended:
        effects.append((next_effect(saga), saga.publishes))
        saga = applied(saga, Outcome.DONE)
    assert effects == [
        (Effect.PUBLISH, SegmentState.COPY_STARTED),
        (Effect.PUBLISH, SegmentState.DELETE_STARTED),
        (Effect.PUBLISH, SegmentState.DELETE_FINISHED),
    ]
    assert saga.segment.epochs == ((7, 55),)


def test_records_carry_the_epoch_of_the_moment_and_the_log_start() -> None:
    saga = copying(segment())
    begun = record_of(saga, 1, 99, 4, 30)
    assert (begun.copier_epoch, begun.log_start_offset, begun.start_offset) == (4, 30, 100)
    assert [(e.leader_epoch, e.offset) for e in begun.segment_leader_epochs] == [(0, 100), (3, 150)]
    update = record_of(deleting(segment()), 1, 99, 5, 200)
    assert (update.copier_epoch, update.log_start_offset) == (5, 200)
    assert update.remote_log_segment_state == SegmentState.DELETE_STARTED
    with pytest.raises(ValueError, match="put"):
        record_of(Saga(segment(), Stage.PUT), 1, 99, 4, 30)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, ((0, 0),)),
        (5, 150, ((0, 5),)),
        (5, 151, ((0, 5), (3, 150))),
        (150, 200, ((3, 150),)),
        (160, 200, ((3, 160),)),
        (160, 400, ((3, 160), (9, 300))),
    ],
)
def test_epochs_are_cut_to_a_segment(
    start: int, end: int, expected: tuple[tuple[int, int], ...]
) -> None:
    assert epochs_within([(0, 0), (3, 150), (9, 300)], start, end) == expected


def test_the_epoch_index_has_all_epochs_up_to_the_end() -> None:
    text = epoch_checkpoint([(0, 0), (3, 150), (9, 300)], 300).decode()
    assert text == "0\n2\n0 0\n3 150\n"


class NewEpoch:
    """A leader whose first record is lost, and whose epoch is another one afterwards."""

    leads = True
    leader_epoch = 3
    log_start_offset = 0

    def __init__(self) -> None:
        self.published = 0

    async def publish(self, partition: object, record: object) -> Published:
        self.published += 1
        self.leader_epoch += 1
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)


def test_a_copy_that_was_not_begun_for_certain_is_given_up_in_a_new_epoch() -> None:
    """A leader in between may have cleaned it: it would be begun again for ever, or after its
    deletion (found by the simulation of consolidation)."""
    author, clock = NewEpoch(), ManualClock()
    system = System(clock, random.Random(1), InlineExecutor())
    unused: Any = None
    runner = SagaRunner(1, author, unused, system, NO_PAUSE, TieredCounts(clock))  # type: ignore[arg-type]
    ended = asyncio.run(runner.run(copying(segment()), author))
    assert (ended.stage, author.published) == (Stage.GONE, 1)


def run_with(world: World, epoch: int = 0, records: int = 25) -> Broker:
    log = WorldLog(world)
    broker = Broker(world, log, epoch)
    log.append(records)
    asyncio.run(broker.settle())
    return broker


def test_closed_segments_are_copied_and_nothing_else() -> None:
    broker = run_with(World())
    broker.check_settled()
    assert [(s.start_offset, s.end_offset) for s in broker.remote.all()] == [(0, 9), (10, 19)]
    assert broker.log.highest_remote_offset == 19
    assert broker.log.remote_end == 20
    assert (
        broker.world.effects
        == [
            *("publish RemoteLogSegmentMetadataRecord 0", "put log", "put indexes", "put manifest"),
            "publish RemoteLogSegmentMetadataUpdateRecord 1",
        ]
        * 2
    )


def test_nothing_above_the_last_stable_offset_is_copied() -> None:
    world = World()
    log = WorldLog(world)
    broker = Broker(world, log, 0)
    log.append(35)
    log.stable_offset = 19
    asyncio.run(broker.settle())
    assert [s.end_offset for s in broker.remote.all()] == [9]
    log.stable_offset = 20
    asyncio.run(broker.settle())
    assert [s.end_offset for s in broker.remote.all()] == [9, 19]


def test_a_failed_put_is_tried_again_under_another_id() -> None:
    failed = []

    def fate(number: int, name: str) -> str:
        if name == "put indexes" and not failed:
            failed.append(number)
            return Reply.FAIL_BEFORE
        return Reply.NONE

    world = World(fate=fate)
    broker = run_with(world)
    broker.check_settled()
    assert failed
    begun = [e for e in world.effects if e.startswith("publish RemoteLogSegmentMetadataRecord")]
    assert len(begun) == 3
    assert broker.counts.of(TOPIC).copy_errors == 1


def test_custom_metadata_over_its_limit_stops_the_partition() -> None:
    world = World(custom_metadata=bytes(129))
    log = WorldLog(world)
    broker = Broker(world, log, 0)
    log.append(25)
    asyncio.run(broker.settle())
    assert broker.hosted.is_refused
    assert not world.objects
    assert len(broker.remote) == 0
    log.append(10)
    before = len(world.effects)
    asyncio.run(broker.settle())
    assert len(world.effects) == before
