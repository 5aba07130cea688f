"""What a commit must do, on every plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skylog.diskless.batch import LOG_APPEND_TIME, BatchToCommit
from skylog.diskless.plane import FileToCommit
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from tests.contract.support import (
    B0,
    NONE,
    NOT_FOUND,
    OLD_EPOCH,
    OUT_OF_ORDER,
    RULES,
    STRANGER,
    T0,
    T1,
    TOPIC,
    UNKNOWN,
    Scene,
    batch,
    check,
    sent,
)

LAST_SEQUENCE = 2**31 - 1


async def refused(scene: Scene, file: FileToCommit) -> KafkaError:
    """The error of the whole commit, which must be definite and leave nothing behind."""
    before = await scene.info()
    with pytest.raises(KafkaError) as caught:
        await scene.plane.commit_file(file)
    assert not caught.value.ambiguous
    assert await scene.info() == before
    return caught.value


@check
async def offsets_are_dense(scene: Scene) -> None:
    """DC-08: each batch starts at the high watermark and advances it by its number of records."""
    assert await scene.offsets(batch(count=3), batch(T1, 5), batch(count=2)) == [0, 0, 3]
    assert await scene.offsets(batch(count=1), batch(B0)) == [5, 0]
    assert await scene.info() == (0, 6, 300)
    assert await scene.info(T1) == (0, 5, 100)
    assert await scene.bases() == [0, 3, 5]


@check
async def parts_of_lanes_are_committed_one_by_one(scene: Scene) -> None:
    """ENG-17: every coordinator knows the same file, and answers for its own part."""
    file = scene.file(batch(count=3), batch(T1, 5), batch(B0), batch(count=2))
    by_coordinator: dict[int, list[BatchToCommit]] = {}
    for one in file.batches:
        coordinator_id = scene.plane.coordinator_of(one.topic_partition)
        assert coordinator_id is not None
        assert coordinator_id == scene.plane.coordinator_of(one.topic_partition)
        by_coordinator.setdefault(coordinator_id, []).append(one)
    for coordinator_id, batches in reversed(by_coordinator.items()):
        part = replace(file, batches=batches, coordinator_ids=list(by_coordinator))
        for duplicate in (False, True):
            results = await scene.plane.commit_part(part, coordinator_id)
            assert [(r.error, r.duplicate) for r in results] == [(NONE, duplicate)] * len(batches)
    assert await scene.live(file.object_key) == (NONE, True)
    assert (await scene.bases(), await scene.bases(T1), await scene.bases(B0)) == ([0, 3], [0], [0])
    assert await scene.offsets(batch(), batch(T1), batch(B0)) == [5, 5, 1]


@check
async def a_part_may_be_empty(scene: Scene) -> None:
    coordinator_id = scene.plane.coordinator_of(T0)
    file = replace(scene.file(), coordinator_ids=[coordinator_id])
    assert await scene.plane.commit_part(file, coordinator_id) == []
    assert await scene.live(file.object_key) == (NONE, False)


@check
async def only_the_count_of_relative_offsets_matters(scene: Scene) -> None:
    """Q27."""
    assert await scene.offsets(batch(base_offset=40, last_offset=49), batch()) == [0, 10]


@check
async def a_file_may_be_empty(scene: Scene) -> None:
    file = FileToCommit(object_key=scene.key(), size=1, batches=(), coordinator_ids=(0,))
    assert await scene.plane.commit_file(file) == []
    assert await scene.live(file.object_key) == (NONE, False)
    assert await scene.deletable() == [file.object_key]


@check
async def a_commit_fails_in_part(scene: Scene) -> None:
    """DC-09, DC-33: one result per batch in request order; on error all numbers are -1 (DC-10)."""
    results = await scene.commit(
        batch(), batch((STRANGER, 0)), batch((TOPIC, 2)), batch((ZERO_UUID, 0)), batch()
    )
    assert [r.error for r in results] == [NONE, UNKNOWN, UNKNOWN, UNKNOWN, NONE]
    assert [r.assigned_base_offset for r in results] == [0, -1, -1, -1, 1]
    assert [r.log_start_offset for r in results] == [0, -1, -1, -1, 0]
    assert {r.log_append_time for r in results} == {-1}


@check
async def a_file_without_accepted_batches_waits_for_deletion(scene: Scene) -> None:
    """Q17."""
    key = scene.key()
    assert [r.error for r in await scene.commit(batch((STRANGER, 0)), key=key)] == [UNKNOWN]
    assert await scene.live(key) == (NONE, False)
    assert await scene.deletable() == [key]


@check
async def append_time_is_the_commits(scene: Scene) -> None:
    """DC-10: returned only for LogAppendTime; duplicates return the first one."""
    scene.clock.advance(5)
    first = scene.now
    stamped = sent(0, timestamp_type=LOG_APPEND_TIME, batch_max_timestamp=17)
    results = await scene.commit(batch(), stamped)
    assert [r.log_append_time for r in results] == [-1, first]
    scene.clock.advance(1000)
    (again,) = await scene.commit(stamped)
    assert (again.duplicate, again.log_append_time) == (True, first)
    (found,) = await scene.find((T0, 1))
    assert found.batches[0].stamp.log_append_timestamp == first
    assert found.batches[0].stamp.batch_max_timestamp == 17


@check
async def the_same_key_gets_the_first_answer(scene: Scene) -> None:
    """Design rule 1, Q13."""
    file = scene.file(batch(count=2), batch((STRANGER, 0)), sent(0, to=T1))
    first = await scene.plane.commit_file(file)
    await scene.commit(batch(count=4))
    before = [await scene.info(), await scene.info(T1)]
    again = await scene.plane.commit_file(file)
    assert [r.error for r in again] == [r.error for r in first] == [NONE, UNKNOWN, NONE]
    assert [r.assigned_base_offset for r in again] == [0, -1, 0]
    assert [r.duplicate for r in first] == [False, False, False]
    assert [r.duplicate for r in again] == [True, False, True]
    assert [await scene.info(), await scene.info(T1)] == before
    assert await scene.bases() == [0, 2]


@check
async def a_key_is_known_after_its_batches_are_gone(scene: Scene) -> None:
    file = scene.file(batch(count=2))
    await scene.plane.commit_file(file)
    await scene.plane.delete_records([(*T0, 2)])
    (again,) = await scene.plane.commit_file(file)
    assert again.assigned_base_offset in (0, -1)  # the same answer, or refused: never committed
    # again
    assert await scene.info() == (2, 2, 0)


@check
async def a_known_key_of_a_partition_created_later(scene: Scene) -> None:
    """A refused batch stays refused: the writer has already answered its producer."""
    file = scene.file(batch((TOPIC, 2)), batch())
    assert [r.error for r in await scene.plane.commit_file(file)] == [UNKNOWN, NONE]
    await scene.plane.create_partitions([(TOPIC, "a", 3)])
    assert [r.error for r in await scene.plane.commit_file(file)] == [UNKNOWN, NONE]
    assert await scene.info((TOPIC, 2)) == (0, 0, 0)


@check
async def a_known_key_is_one_file(scene: Scene) -> None:
    """Q13: another size or list of batches is refused."""
    file = scene.file(batch(), batch())
    await scene.plane.commit_file(file)
    for other in (replace(file, size=file.size + 1), replace(file, batches=file.batches[:1])):
        assert (await refused(scene, other)).code == ErrorCode.INVALID_REQUEST


@check
async def old_keys_are_refused(scene: Scene) -> None:
    """Design rule 5, Q20: accepted at the limit, refused beyond it; known keys are answered at any
    age."""
    limit = RULES.commit_age_ms_max
    at_limit = scene.file(batch(), key=scene.key(scene.now - limit))
    await scene.plane.commit_file(at_limit)
    late = scene.file(batch(), key=scene.key(scene.now - limit - 1))
    assert (await refused(scene, late)).code == ErrorCode.KAFKA_STORAGE_ERROR
    assert await scene.live(late.object_key) == (NOT_FOUND, False)
    scene.clock.advance(limit * 3)
    (again,) = await scene.plane.commit_file(at_limit)
    assert (again.error, again.assigned_base_offset) == (NONE, 0)


@check
async def keys_from_the_future_are_refused(scene: Scene) -> None:
    ahead = RULES.commit_ahead_ms_max
    await scene.plane.commit_file(scene.file(batch(), key=scene.key(scene.now + ahead)))
    early = scene.file(batch(), key=scene.key(scene.now + ahead + 1))
    assert (await refused(scene, early)).code == ErrorCode.KAFKA_STORAGE_ERROR


@check
async def hostile_keys_are_refused(scene: Scene) -> None:
    for key in ("", "../x", "wal/00/0", "backup/name", "wal/" + "0" * 2000, "a'; drop table"):
        file = replace(scene.file(batch()), object_key=key)
        assert (await refused(scene, file)).code == ErrorCode.INVALID_REQUEST


def _bad_batches() -> list[tuple[str, dict[str, int]]]:
    return [
        ("empty", {"byte_size": 0}),
        ("negative size", {"byte_size": -1}),
        ("shorter than its header", {"byte_size": 60}),
        ("before the file", {"byte_offset": -1}),
        ("on the version byte", {"byte_offset": 0}),
        ("behind the file", {"byte_offset": 2}),
        ("no records", {"last_offset": -1}),
        ("old magic", {"magic": 1}),
        ("timestamp type", {"timestamp_type": 2}),
        ("no sequence", {"producer_id": 1, "producer_epoch": 0}),
        ("sequences", {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}),
    ]


@check
async def malformed_files_are_refused(scene: Scene) -> None:
    """Extents lie inside the file and do not overlap (Q27); batches are not empty."""
    good = scene.file(batch())
    for why, change in _bad_batches():
        file = scene.file(replace(batch(), more=change))
        assert (await refused(scene, file)).code == ErrorCode.INVALID_REQUEST, why
    two: list[BatchToCommit] = list(scene.file(batch(), batch()).batches)
    two[1] = replace(two[1], extent=two[1].extent._replace(byte_offset=100))
    for file in (
        replace(good, batches=two, size=500),
        replace(good, size=0, batches=()),
        replace(good, size=2**31),
        replace(good, format=2),
    ):
        assert (await refused(scene, file)).code == ErrorCode.INVALID_REQUEST


@check
async def dead_bytes_are_allowed(scene: Scene) -> None:
    """Batches need not fill the file, nor be listed in its order."""
    file = scene.file(batch(), batch(), tail=50)
    await scene.plane.commit_file(replace(file, batches=file.batches[::-1]))
    (found,) = await scene.find((T0, 0))
    assert [b.extent.byte_offset for b in found.batches] == [101, 1]


# --- Idempotent producers -------------------------------------------------------------------------


@check
async def a_repeated_batch_is_a_duplicate(scene: Scene) -> None:
    """DC-11: the original offset, no second batch."""
    assert await scene.offsets(sent(0, 3), sent(3, 2)) == [0, 3]
    results = await scene.commit(sent(0, 3), sent(3, 2))
    assert [(r.error, r.assigned_base_offset, r.duplicate) for r in results] == [
        (NONE, 0, True),
        (NONE, 3, True),
    ]
    assert await scene.bases() == [0, 3]


@check
async def a_batch_twice_in_one_file_is_a_duplicate(scene: Scene) -> None:
    results = await scene.commit(sent(0, 3), sent(0, 3), batch())
    assert [(r.assigned_base_offset, r.duplicate) for r in results] == [
        (0, False),
        (0, True),
        (3, False),
    ]


@check
async def duplicates_leave_a_file_without_batches(scene: Scene) -> None:
    await scene.commit(sent(0))
    key = scene.key()
    await scene.commit(sent(0), key=key)
    assert await scene.live(key) == (NONE, False)
    assert await scene.deletable() == [key]


@check
async def without_a_producer_id_nothing_is_checked(scene: Scene) -> None:
    """DC-12."""
    assert await scene.offsets(batch(count=2), batch(count=2)) == [0, 2]


@check
async def sequences_must_follow(scene: Scene) -> None:
    """In the same file and in another; a refused batch changes nothing."""
    assert await scene.errors(sent(0, 3), sent(4), sent(3)) == [NONE, OUT_OF_ORDER, NONE]
    assert await scene.errors(sent(5), sent(2), sent(4)) == [OUT_OF_ORDER, OUT_OF_ORDER, NONE]
    assert await scene.bases() == [0, 3, 4]


@check
async def a_part_of_a_batch_is_no_duplicate(scene: Scene) -> None:
    await scene.commit(sent(0, 3))
    assert await scene.errors(sent(0, 2), sent(1, 2), sent(0, 4)) == [OUT_OF_ORDER] * 3


@check
async def five_batches_are_remembered(scene: Scene) -> None:
    for number in range(6):
        await scene.offsets(sent(number))
    results = [(await scene.commit(sent(number)))[0] for number in range(6)]
    assert results[0].error == OUT_OF_ORDER
    assert [r.assigned_base_offset for r in results[1:]] == [1, 2, 3, 4, 5]


@check
async def the_order_of_memory_is_that_of_commits(scene: Scene) -> None:
    """Five of one file, then one more: only the oldest is forgotten."""
    await scene.offsets(*[sent(number) for number in range(5)])
    assert await scene.offsets(sent(5)) == [5]
    assert await scene.errors(sent(0), sent(1), sent(5)) == [OUT_OF_ORDER, NONE, NONE]


@check
async def an_unknown_producer_starts_anywhere(scene: Scene) -> None:
    """Kafka's rule; the reference demands 0."""
    assert await scene.offsets(sent(41, 2), sent(43)) == [0, 2]
    assert await scene.errors(sent(0)) == [OUT_OF_ORDER]


@check
async def sequences_wrap(scene: Scene) -> None:
    """2³¹−1 is followed by 0, also inside a batch and for later batches."""
    assert await scene.offsets(sent(LAST_SEQUENCE - 1, 2), sent(0), sent(1)) == [0, 2, 3]
    assert await scene.errors(sent(LAST_SEQUENCE - 1, 2), sent(0)) == [NONE, NONE]
    assert await scene.offsets(sent(LAST_SEQUENCE - 1, 4, producer=8)) == [4]
    (following,) = await scene.commit(sent(2, producer=8))
    assert (following.error, following.assigned_base_offset) == (NONE, 8)
    assert await scene.errors(sent(LAST_SEQUENCE, producer=8)) == [OUT_OF_ORDER]


@check
async def a_new_epoch_starts_at_zero(scene: Scene) -> None:
    await scene.commit(sent(0, 2), sent(2, 2))
    assert await scene.errors(sent(4, epoch=1)) == [OUT_OF_ORDER]
    # The same numbers in a new epoch are new batches.
    (fresh,) = await scene.commit(sent(0, 2, epoch=1))
    assert (fresh.error, fresh.assigned_base_offset, fresh.duplicate) == (NONE, 4, False)
    assert await scene.errors(sent(4, 2, epoch=1), sent(2, 2, epoch=1)) == [OUT_OF_ORDER, NONE]


@check
async def an_old_epoch_is_fenced(scene: Scene) -> None:
    """Also a duplicate of a batch of the old epoch."""
    await scene.commit(sent(0, epoch=3))
    assert await scene.errors(sent(1, epoch=2), sent(0, epoch=2)) == [OLD_EPOCH, OLD_EPOCH]
    await scene.commit(sent(0, epoch=4))
    assert await scene.errors(sent(0, epoch=3), sent(1, epoch=4)) == [OLD_EPOCH, NONE]


@check
async def producers_and_partitions_are_apart(scene: Scene) -> None:
    assert await scene.offsets(
        sent(0), sent(0, to=T1), sent(0, producer=8), sent(5, producer=9, to=T1)
    ) == [0, 0, 1, 1]
    assert await scene.errors(sent(1), sent(6, producer=9, to=T1)) == [NONE, NONE]


@check
async def silent_producers_expire(scene: Scene) -> None:
    """Q15: by commit time, not by the time in the records; then they may start anywhere."""
    ancient = {"batch_max_timestamp": 1}
    await scene.commit(sent(0, **ancient), sent(0, producer=8, **ancient))
    scene.clock.advance(RULES.producer_expiration_ms - 1)
    (known,) = await scene.commit(sent(0, **ancient))
    assert known.duplicate
    assert await scene.errors(sent(1), sent(5)) == [NONE, OUT_OF_ORDER]
    scene.clock.advance(1)
    (anew,) = await scene.commit(sent(33, producer=8))
    assert (anew.error, anew.duplicate) == (NONE, False)
    # What the producer sent before is forgotten.
    assert await scene.errors(sent(34, producer=8), sent(0, producer=8)) == [NONE, OUT_OF_ORDER]
    assert await scene.errors(sent(2)) == [NONE]


@check
async def producers_outlive_their_records(scene: Scene) -> None:
    """As in Kafka: deleted records do not make their producer unknown."""
    await scene.commit(sent(0), sent(1))
    await scene.plane.delete_records([(*T0, -1)])
    (again, gap) = await scene.commit(sent(1), sent(9))
    assert (again.duplicate, again.assigned_base_offset) == (True, 1)
    assert gap.error == OUT_OF_ORDER
