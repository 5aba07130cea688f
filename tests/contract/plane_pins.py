"""Staged files and their pins, on every plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skylog.diskless.bulk import PinRequest
from skylog.diskless.plane import DescribeFileResult, TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import STAGED_PIN_LIFETIME_MS_MAX, STAGED_WRITER_CHARACTERS_MAX
from tests.contract.support import (
    B0,
    NONE,
    NOT_FOUND,
    RULES,
    STRANGER,
    T0,
    T1,
    UNKNOWN,
    Scene,
    batch,
    check,
)

HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
INVALID = ErrorCode.INVALID_REQUEST
ALL = (T0, T1, B0)


def _pin(
    scene: Scene, key: str, lifetime_ms: int = DAY, *partitions: TopicPartition, writer: str = "w"
) -> PinRequest:
    return PinRequest(key, writer, 3, scene.now + lifetime_ms, partitions or ALL)


async def _pinned(scene: Scene, *pins: PinRequest) -> list[ErrorCode]:
    errors = await scene.plane.pin_files(pins)
    return [NONE if error is None else error.code for error in errors]


async def _refused(scene: Scene, key: str) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        await scene.commit(batch(), batch(T1), batch(B0), key=key)
    assert not refused.value.ambiguous
    return refused.value.code


@check
async def a_young_staged_file_needs_no_pin(scene: Scene) -> None:
    results = await scene.commit(batch(count=2), batch(T1), batch(B0), key=scene.staged())
    assert [(r.error, r.assigned_base_offset, r.duplicate) for r in results] == [
        (NONE, 0, False)
    ] * 3
    assert await scene.bases() == [0]


@check
async def a_staged_file_is_committed_as_a_whole(scene: Scene) -> None:
    """A retry starts over; a coordinator that accepted its part keeps it."""
    key = scene.staged()
    file = scene.file(batch(), batch(T1), batch((STRANGER, 0)), key=key)
    with pytest.raises(KafkaError) as refused:
        await scene.plane.commit_file(replace(file, batches=[file.batches[0], file.batches[2]]))
    assert refused.value.code == UNKNOWN
    assert await scene.live(key) == (NOT_FOUND, False)
    assert await scene.info() == (0, 0, 0)
    await scene.plane.create_partitions([(STRANGER, "late", 1)])
    results = await scene.plane.commit_file(file)
    assert [(r.error, r.assigned_base_offset) for r in results] == [(NONE, 0)] * 3


@check
async def a_pinned_file_is_committed_at_any_age(scene: Scene) -> None:
    """Up to its end, and no longer."""
    keys = [scene.staged() for _ in range(3)]
    assert await _pinned(scene, *[_pin(scene, key) for key in keys[:2]]) == [NONE, NONE]
    scene.clock.advance(RULES.commit_age_ms_max + 1)
    assert await _refused(scene, keys[2]) == INVALID
    results = await scene.commit(batch(), batch(T1), batch(B0), key=keys[0])
    assert [r.error for r in results] == [NONE] * 3
    scene.clock.advance(DAY - RULES.commit_age_ms_max)
    assert await _refused(scene, keys[1]) == INVALID
    again = await scene.commit(batch(), batch(T1), batch(B0), key=keys[0])
    assert [(r.error, r.assigned_base_offset, r.duplicate) for r in again] == [(NONE, 0, True)] * 3


@check
async def a_pinned_object_is_known(scene: Scene) -> None:
    """As long as it can be committed, and for some time after that."""
    key = scene.staged()
    assert await scene.plane.describe_files([key]) == [DescribeFileResult(NOT_FOUND)]
    await _pinned(scene, _pin(scene, key))
    known = [DescribeFileResult(NONE, False, pinned=True)]
    assert await scene.plane.describe_files([key]) == known
    assert await scene.deletable() == []
    scene.clock.advance(DAY + RULES.pin_grace_ms - 1)
    assert await scene.plane.describe_files([key]) == known
    scene.clock.advance(1)
    assert await scene.plane.describe_files([key]) == [DescribeFileResult(NOT_FOUND)]


@check
async def a_file_is_both_committed_and_pinned(scene: Scene) -> None:
    key = scene.staged()
    await _pinned(scene, _pin(scene, key))
    await scene.commit(batch(), key=key)
    assert await scene.plane.describe_files([key]) == [DescribeFileResult(NONE, True, True)]
    await scene.plane.release_pins([key])
    assert await scene.plane.describe_files([key]) == [DescribeFileResult(NONE, True, False)]


@check
async def a_pin_remembers_the_answer(scene: Scene) -> None:
    """Nothing is written twice, even long after retention deleted the records and the object.

    Also when the file was committed before it was pinned.
    """
    before, after = scene.staged(), scene.staged()
    await _pinned(scene, _pin(scene, after, 5 * DAY))
    for key in (before, after):
        await scene.commit(batch(count=5), batch(T1), key=key)
    await _pinned(scene, _pin(scene, before, 5 * DAY))
    scene.clock.advance(3 * HOUR)
    await scene.plane.delete_records([(*T0, -1), (*T1, -1)])
    scene.clock.advance(3 * HOUR)
    await scene.commit(batch(B0))  # coordinators' time passes as well
    await scene.plane.confirm_deleted(await scene.deletable())
    await scene.plane.confirm_deleted(await scene.deletable())
    for key, first in ((before, 0), (after, 5)):
        assert await scene.plane.describe_files([key]) == [DescribeFileResult(NONE, False, True)]
        file = scene.file(batch(count=5), batch(T1), key=key)
        for known_only in (True, False):
            again = await scene.plane.commit_file(replace(file, known_only=known_only))
            assert [(r.error, r.assigned_base_offset, r.duplicate) for r in again] == [
                (NONE, first, True),
                (NONE, first // 5, True),
            ]
        with pytest.raises(KafkaError) as other:
            await scene.plane.commit_file(replace(file, size=file.size + 1))
        assert other.value.code == INVALID
    assert await scene.info() == (10, 10, 0)


@check
async def a_pin_can_be_prolonged(scene: Scene) -> None:
    """The later expiry counts, however old the object is; an expired pin counts as none."""
    key = scene.staged()
    await _pinned(scene, _pin(scene, key, 2 * DAY))
    await _pinned(scene, _pin(scene, key, DAY, writer="other"))
    scene.clock.advance(2 * DAY - 1)
    assert await _pinned(scene, _pin(scene, key, DAY)) == [NONE]
    scene.clock.advance(DAY - 1)
    late = scene.staged(scene.now - 3 * DAY)
    assert await _pinned(scene, _pin(scene, key), _pin(scene, late)) == [NONE, INVALID]
    scene.clock.advance(DAY + 1)
    assert await _pinned(scene, _pin(scene, key)) == [INVALID]
    assert await _refused(scene, key) == INVALID


@check
async def a_released_pin_has_no_effect(scene: Scene) -> None:
    """A release may be repeated, and affects only the pins that it names."""
    keys = [scene.staged() for _ in range(2)]
    await _pinned(scene, *[_pin(scene, key) for key in keys])
    await scene.plane.release_pins([keys[0], scene.staged(), "no key at all"])
    await scene.plane.release_pins([keys[0]])
    described = await scene.plane.describe_files(keys)
    assert [one.pinned for one in described] == [False, True]
    scene.clock.advance(RULES.commit_age_ms_max + 1)
    assert await _refused(scene, keys[0]) == INVALID


@check
async def only_staged_objects_are_pinned(scene: Scene) -> None:
    """Not for longer than allowed, and not if a scan may delete it; each pin is judged
    separately."""
    good = _pin(scene, scene.staged())
    wrong = [
        (_pin(scene, scene.key()), INVALID),
        (_pin(scene, "staging/a1a1a1a1a1a1a1a1/w/manifest"), INVALID),
        (_pin(scene, "staging/../x"), INVALID),
        (_pin(scene, scene.staged(), 0), INVALID),
        (_pin(scene, scene.staged(), STAGED_PIN_LIFETIME_MS_MAX + 1), INVALID),
        (_pin(scene, scene.staged(scene.now - RULES.pin_age_ms_max - 1)), INVALID),
        (_pin(scene, scene.staged(scene.now + RULES.commit_ahead_ms_max + 1)), INVALID),
        (_pin(scene, scene.staged(), writer="w" * (STAGED_WRITER_CHARACTERS_MAX + 1)), INVALID),
        (_pin(scene, scene.staged(), DAY, T0, (STRANGER, 0)), UNKNOWN),
    ]
    asked = [pin for pin, _ in wrong]
    assert await _pinned(scene, *asked, good) == [code for _, code in wrong] + [NONE]
    kept = await scene.plane.describe_files([pin.object_key for pin in (*asked, good)])
    assert [one.pinned for one in kept] == [False] * len(asked) + [True]
    longest = _pin(scene, scene.staged(scene.now - RULES.pin_age_ms_max))
    assert await _pinned(
        scene, longest, _pin(scene, scene.staged(), STAGED_PIN_LIFETIME_MS_MAX)
    ) == [NONE, NONE]
    assert await _pinned(scene) == []


@check
async def asking_for_a_commit_commits_nothing(scene: Scene) -> None:
    """To ask whether a file was committed never commits it."""
    key = scene.staged()
    file = scene.file(batch(count=3), batch(T1), key=key)
    with pytest.raises(KafkaError) as unknown:
        await scene.plane.commit_file(replace(file, known_only=True))
    assert unknown.value.code == NOT_FOUND
    assert await scene.info() == (0, 0, 0)
    await scene.plane.commit_file(file)
    again = await scene.plane.commit_file(replace(file, known_only=True))
    assert [(r.error, r.assigned_base_offset, r.duplicate) for r in again] == [(NONE, 0, True)] * 2
