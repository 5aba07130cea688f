"""Exactly once: an epoch's rows are written once, whenever drivers crash, sleep or restart."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any

import pyarrow as pa
import pytest

from skylog.bulk import epoch as protocol
from skylog.bulk import staging
from skylog.bulk.encode import RowEncoder
from skylog.bulk.epoch import EPOCHS_KEPT, Attempt, Step, marks_of, next_step, writer_prefix
from tests.property.epoch_world import (
    COMMIT_AGE_MS,
    DAY_MS,
    ORPHAN_GRACE_MS,
    PREFIX,
    TARGETS,
    World,
    advance,
    run,
)

PAUSES_MS = (0, 1000, 2 * COMMIT_AGE_MS, DAY_MS // 2, 2 * ORPHAN_GRACE_MS, 6 * DAY_MS)


def turns_of_an_epoch() -> int:
    return run(World(random.Random(0)).epoch(0))


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_a_driver_crashes_at_any_moment_and_restarts(pause_ms: int) -> None:
    # Longer than the commit window and the orphan grace too.
    for turns in range(turns_of_an_epoch() + 1):
        world = World(random.Random(turns))
        run(world.epoch(0))
        run(world.epoch(1), turns)
        world.clock.advance(pause_ms)
        world.brokers.maintain(30 * DAY_MS)
        run(world.epoch(1))
        run(world.epoch(2))
        assert world.finished == {0, 1, 2}
        world.check()


def test_a_driver_crashes_twice() -> None:
    whole = turns_of_an_epoch()
    for first in range(whole + 1):
        for second in range(0, whole + 1, 2):
            world = World(random.Random(first))
            run(world.epoch(0), first)
            world.clock.advance(2 * ORPHAN_GRACE_MS)
            world.brokers.maintain(30 * DAY_MS)
            run(world.epoch(0), second)
            run(world.epoch(0))
            assert world.finished == {0}
            world.check()


def test_a_driver_whose_pins_have_expired_fails_and_names_the_epoch() -> None:
    failed = 0
    for turns in range(turns_of_an_epoch() + 1):
        world = World(random.Random(turns))
        run(world.epoch(7), turns)
        world.clock.advance(8 * DAY_MS)
        world.brokers.maintain(30 * DAY_MS)
        run(world.epoch(7))
        failed += 7 in world.failed
        world.check()
        assert world.failed or world.finished == {7}
    # Between the manifest and the mark that the epoch is done, it is unknown what is written.
    assert 0 < failed < turns_of_an_epoch()
    with pytest.raises(protocol.EpochFailed, match="epoch 7 of writer w was begun and not comp"):
        done = Attempt("w", 7, (), marks=protocol.Marks(frozenset({7})))
        done.manifest = protocol.Manifest("w", 7, 1000, ())
        next_step(done, 1000)


def test_an_epoch_that_is_done_is_not_written_again_however_old() -> None:
    world = World(random.Random(1))
    for epoch in range(40):
        run(world.epoch(epoch))
    written = len(world.brokers.log)
    for epoch in (39, 38, 20, 0):
        world.clock.advance(DAY_MS)
        world.brokers.maintain(1000)
        run(world.epoch(epoch))
    assert len(world.brokers.log) == written
    world.check()


def test_marks_do_not_pile_up_and_the_latest_stays() -> None:
    world = World(random.Random(1))
    most = 0
    for epoch in range(60):
        run(world.epoch(epoch))
        prefix = writer_prefix(PREFIX, "writer")
        keys = [key for key in world.bucket.objects if key.text.startswith(prefix)]
        assert marks_of(keys).latest_done == epoch
        most = max(most, len(keys))
    assert most <= 2 * (EPOCHS_KEPT + protocol.EPOCHS_SWEPT_AT_ONCE)
    assert not world.brokers.pins


def test_an_abandoned_batch_leaves_no_marks() -> None:
    world = World(random.Random(1))

    async def once() -> None:
        stager = staging.Stager(world.area(), 1000)
        rows = RowEncoder(topic="t").encode(pa.record_batch({"value": ["v"]}), TARGETS, 1)
        staged = await stager.stage(rows)
        await staging.EpochCommitter(world.area(), "w").complete(0, staged, single=True)

    run(once())
    assert [key.created_ms is None for key in world.bucket.objects] == [False]


def test_an_epoch_without_rows_completes_what_an_earlier_attempt_began() -> None:
    for turns in range(turns_of_an_epoch() + 1):
        world = World(random.Random(turns))
        run(world.epoch(0), turns)
        begun = {key for _, key in world.brokers.log}
        run(world.epoch(0, objects=0))
        written = {key for _, key in world.brokers.log}
        assert begun <= written
        assert len(written) in (0, 2)


def history(seed: int) -> World:
    """Drivers start and crash; abandoned ones wake up later and continue."""
    rng = random.Random(seed)
    world = World(rng)
    checkpoint = 0
    asleep: list[Coroutine[Any, Any, Any]] = []
    retention_ms = rng.choice((1000, DAY_MS, 30 * DAY_MS))
    for _ in range(rng.randrange(4, 14)):
        awake: list[Coroutine[Any, Any, Any]] = [world.epoch(checkpoint, rng.randrange(1, 4))]
        if asleep and rng.random() < 0.6:
            awake += [asleep.pop(rng.randrange(len(asleep))) for _ in range(min(len(asleep), 2))]
        epoch, budget = checkpoint, rng.randrange(1, 90)
        while awake and budget:
            chosen = awake[rng.randrange(len(awake))]
            if not advance(chosen):
                awake.remove(chosen)
            budget -= 1
            if rng.random() < 0.03:
                world.clock.advance(rng.choice(PAUSES_MS[:4]))
            if rng.random() < 0.1:
                world.brokers.maintain(retention_ms)
        asleep += awake
        world.clock.advance(rng.choice(PAUSES_MS[:5]))
        if epoch in world.finished:
            checkpoint = epoch + 1
        elif epoch in world.failed:
            break
    for one in asleep:
        one.close()
    world.check()
    return world


def test_many_histories() -> None:
    worlds = [history(seed) for seed in range(600)]
    assert sum(len(world.finished) for world in worlds) > 1000
    assert sum(world.tries > len(world.finished) + 2 for world in worlds) > 100


# The check finds planted bugs -----------------------------------------------------------------


def without_looking(attempt: Attempt, now_ms: int) -> Step:
    if attempt.marks is None and attempt.claim is protocol.Claim.OURS:
        attempt.marks = protocol.Marks()
    return next_step(attempt, now_ms)


def looking_first(attempt: Attempt, now_ms: int) -> Step:
    return Step.LOOK if attempt.marks is None else next_step(attempt, now_ms)


def without_claiming(attempt: Attempt, now_ms: int) -> Step:
    if attempt.claim is None and attempt.expires_ms is not None:
        attempt.claim, attempt.manifest = protocol.Claim.OURS, attempt.ours
    return next_step(attempt, now_ms)


def without_pins(attempt: Attempt, now_ms: int) -> Step:
    attempt.expires_ms = attempt.expires_ms or now_ms + 7 * DAY_MS
    return next_step(attempt, now_ms)


def discarding_always(attempt: Attempt, now_ms: int) -> Step:
    if attempt.is_superseded and Step.DISCARD not in attempt.performed:
        return Step.DISCARD
    return next_step(attempt, now_ms)


@pytest.mark.parametrize(
    "bug",
    [without_looking, looking_first, without_claiming, without_pins, discarding_always],
)
def test_planted_bugs_are_found(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "next_step", bug)
    monkeypatch.setattr(protocol, "EPOCHS_KEPT", 0)
    monkeypatch.setattr(protocol, "EPOCHS_SWEPT_AT_ONCE", 1)
    for seed in range(5000):
        try:
            history(seed)
        except AssertionError:
            return
    pytest.fail("no history shows the bug")
