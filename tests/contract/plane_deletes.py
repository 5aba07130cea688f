"""Creation, deletion, retention, files and listeners, on every plane."""

from __future__ import annotations

import asyncio
from typing import Any

from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.diskless.plane import TopicPartition
from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import DISKLESS_PRUNED_BATCHES_MAX
from tests.contract.support import (
    B0,
    NONE,
    NOT_FOUND,
    OTHER,
    OUT_OF_RANGE,
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

WAIT_SECONDS = 20


@check
async def creating_again_changes_nothing(scene: Scene) -> None:
    """DC-06, Q6: the number is the total; missing partitions are added."""
    await scene.commit(batch(count=3))
    await scene.plane.create_partitions([(TOPIC, "a", 2)])
    await scene.plane.create_partitions([(TOPIC, "a", 4), (TOPIC, "a", 1)])
    assert await scene.info() == (0, 3, 100)
    infos = await scene.plane.log_info([(TOPIC, n) for n in range(5)])
    assert [i.error for i in infos] == [NONE] * 4 + [UNKNOWN]
    assert tuple(infos[3]) == (NONE, 0, 0, 0, 0)
    assert tuple(infos[4]) == (UNKNOWN, -1, -1, -1, -1)


@check
async def a_deleted_topic_is_unknown(scene: Scene) -> None:
    """DC-07: its partitions, batches and files are deleted; repeats and unknown topics are fine."""
    both, single = scene.key(), scene.key()
    await scene.commit(batch(), batch(B0), key=both)
    await scene.commit(batch(T1), key=single)
    await scene.plane.delete_topics([TOPIC, STRANGER])
    await scene.plane.delete_topics([TOPIC])
    found = await scene.find((T0, 0), (B0, 0))
    assert [f.error for f in found] == [UNKNOWN, NONE]
    assert await scene.errors(batch()) == [UNKNOWN]
    assert await scene.live(both) == (NONE, True)
    assert await scene.live(single) == (NONE, False)
    await scene.plane.delete_topics([OTHER])
    assert await scene.live(both) == (NONE, False)


@check
async def a_topic_created_anew_is_empty(scene: Scene) -> None:
    """The old topic's producers are forgotten."""
    await scene.commit(sent(0), sent(1))
    await scene.plane.delete_topics([TOPIC])
    await scene.create()
    assert await scene.info() == (0, 0, 0)
    assert await scene.offsets(sent(7)) == [0]


# --- DeleteRecords --------------------------------------------------------------------------------


async def _delete(scene: Scene, offset: int) -> tuple[ErrorCode, int]:
    (result,) = await scene.plane.delete_records([(*T0, offset)])
    return tuple(result)


@check
async def deleting_to_the_middle_of_a_batch(scene: Scene) -> None:
    """DC-14: the straddling batch stays."""
    await scene.commit(batch(count=5), batch(count=5), batch(count=5))
    assert await _delete(scene, 7) == (NONE, 7)
    assert await scene.info() == (7, 15, 200)
    assert await scene.bases(T0, 7) == [5, 10]
    assert await _delete(scene, 10) == (NONE, 10)
    assert await scene.info() == (10, 15, 100)


@check
async def deleting_everything(scene: Scene) -> None:
    """Q28: -1 means the high watermark; offsets continue from there."""
    await scene.commit(batch(count=5), batch(count=5))
    assert await _delete(scene, -1) == (NONE, 10)
    assert await scene.info() == (10, 10, 0)
    (commit,) = await scene.commit(batch())
    assert (commit.assigned_base_offset, commit.log_start_offset) == (10, 10)
    assert await _delete(scene, 11) == (NONE, 11)


@check
async def deleting_out_of_range(scene: Scene) -> None:
    await scene.commit(batch(count=5))
    for offset in (6, -2, 2**62):
        assert await _delete(scene, offset) == (OUT_OF_RANGE, -1)
    assert await scene.info() == (0, 5, 100)


@check
async def the_log_start_never_moves_back(scene: Scene) -> None:
    await scene.commit(batch(count=5), batch(count=5))
    await _delete(scene, 6)
    assert await _delete(scene, 3) == (NONE, 6)
    assert await scene.start_of() == 6
    assert (await scene.retain(limit_ms=1 << 40))[2] == 6


@check
async def deleting_is_by_partition(scene: Scene) -> None:
    await scene.commit(batch(count=5), batch(T1, 5), batch(B0, 5))
    results = await scene.plane.delete_records(
        [(*B0, 2), (STRANGER, 0, 1), (*T0, 9), (*T1, 5), (TOPIC, 2, 0)]
    )
    assert [tuple(r) for r in results] == [
        (NONE, 2),
        (UNKNOWN, -1),
        (OUT_OF_RANGE, -1),
        (NONE, 5),
        (UNKNOWN, -1),
    ]
    assert await scene.start_of() == 0


# --- Retention ------------------------------------------------------------------------------------


async def _aged(scene: Scene, *ages_ms: int, kind: int = 0, count: int = 10) -> None:
    for age_ms in ages_ms:
        stamp = {"batch_max_timestamp": scene.now - age_ms, "timestamp_type": kind}
        await scene.commit(batch(count=count, **stamp))


@check
async def retention_that_is_off_deletes_nothing(scene: Scene) -> None:
    await _aged(scene, 1 << 40, 1 << 40)
    assert await scene.retain() == (0, 0, 0)
    assert await scene.retain(limit_bytes=-1, limit_ms=-5) == (0, 0, 0)


@check
async def retention_by_bytes(scene: Scene) -> None:
    """The rest fits into the limit; 0 keeps nothing."""
    await _aged(scene, 0, 0, 0, 0)
    assert await scene.retain(limit_bytes=400) == (0, 0, 0)
    assert await scene.retain(limit_bytes=399) == (1, 100, 10)
    assert await scene.retain(limit_bytes=150) == (2, 200, 30)
    assert await scene.info() == (30, 40, 100)
    assert await scene.retain(limit_bytes=0) == (1, 100, 40)
    assert await scene.info() == (40, 40, 0)
    assert await scene.retain(limit_bytes=0) == (0, 0, 40)


@check
async def retention_by_time(scene: Scene) -> None:
    """Batches older than the limit are deleted, as old as the limit stay; all may be deleted."""
    await _aged(scene, 300, 200, 100)
    assert await scene.retain(limit_ms=300) == (0, 0, 0)
    assert await scene.retain(limit_ms=299) == (1, 100, 10)
    assert await scene.retain(limit_ms=150) == (1, 100, 20)
    assert await scene.retain(limit_ms=0) == (1, 100, 30)
    assert await scene.info() == (30, 30, 0)


@check
async def retention_stops_at_the_first_batch_to_keep(scene: Scene) -> None:
    """Older batches after it stay, too; a timestamp in the future keeps everything after it."""
    await _aged(scene, 500, 100, 500, -1000, 500)
    assert await scene.retain(limit_ms=200) == (1, 100, 10)
    assert await scene.retain(limit_ms=50) == (2, 200, 30)
    assert await scene.retain(limit_ms=0) == (0, 0, 30)


@check
async def retention_by_append_time(scene: Scene) -> None:
    """With LogAppendTime the commit's time counts, not the producer's."""
    await _aged(scene, 1 << 40, kind=LOG_APPEND_TIME)
    scene.clock.advance(100)
    await _aged(scene, -(1 << 40), kind=LOG_APPEND_TIME)
    assert await scene.retain(limit_ms=100) == (0, 0, 0)
    assert await scene.retain(limit_ms=99) == (1, 100, 10)
    scene.clock.advance(100)
    assert await scene.retain(limit_ms=99) == (1, 100, 20)


@check
async def retention_by_both(scene: Scene) -> None:
    """The first batch that both limits allow is the new start."""
    await _aged(scene, 300, 200, 100, 0)
    assert await scene.retain(limit_bytes=300, limit_ms=1000) == (1, 100, 10)
    assert await scene.retain(limit_bytes=300, limit_ms=150) == (1, 100, 20)
    assert await scene.retain(limit_bytes=100, limit_ms=150) == (1, 100, 30)


@check
async def retention_is_bounded(scene: Scene) -> None:
    """Design rule 7: exactly the oldest N in one call."""
    await _aged(scene, *[500] * 5)
    assert await scene.retain(limit_ms=100, batches=2) == (2, 200, 20)
    assert await scene.retain(limit_bytes=0, batches=1) == (1, 100, 30)
    assert await scene.retain(limit_ms=100, batches=2) == (2, 200, 50)
    assert await scene.retain(limit_ms=100, batches=2) == (0, 0, 50)


@check
async def retention_after_records_were_deleted(scene: Scene) -> None:
    """The straddling batch counts in full; the log start stays inside it while it is kept."""
    await _aged(scene, 100, 100, 100)
    await _delete(scene, 14)
    assert await scene.retain(limit_bytes=200) == (0, 0, 14)
    assert await scene.retain(limit_bytes=199) == (1, 100, 20)


@check
async def retention_is_by_partition(scene: Scene) -> None:
    await scene.commit(batch(), batch(T1), batch(B0))
    scene.clock.advance(10)
    results = await scene.plane.enforce_retention(
        [(*B0, 0, -1), (STRANGER, 0, 0, 0), (*T0, -1, 5), (*T1, -1, 10)], 100
    )
    assert [tuple(r) for r in results] == [
        (NONE, 1, 100, 1),
        (UNKNOWN, 0, 0, -1),
        (NONE, 1, 100, 1),
        (NONE, 0, 0, 0),
    ]


@check
async def retention_leaves_a_tiered_prefix_alone(scene: Scene) -> None:
    """Only tiered storage knows how old and large it is, and the log shrinks from its start."""
    await _aged(scene, 500, 500, 0, 0)
    await scene.plane.prune_to([(*T0, 20)])
    assert await scene.retain(limit_bytes=0) == (0, 0, 0)
    assert await scene.retain(limit_ms=100) == (0, 0, 0)
    await _delete(scene, 14)
    assert await scene.retain(limit_bytes=0, limit_ms=0) == (0, 0, 14)
    await scene.plane.prune_to([(*T0, 40)])
    assert await scene.retain(limit_bytes=0, limit_ms=0) == (0, 0, 14)
    await _aged(scene, 0)
    await _delete(scene, 40)
    assert await scene.retain(limit_bytes=100) == (0, 0, 40)
    assert await scene.retain(limit_bytes=99) == (1, 100, 50)


@check
async def a_prune_drops_many_batches(scene: Scene) -> None:
    """More than one step may: all the same it ends where it should."""
    count = 2 * DISKLESS_PRUNED_BATCHES_MAX + 5
    for first in range(0, count, 1000):
        await scene.commit(*[batch() for _ in range(min(1000, count - first))])
    await scene.commit(batch(T1, 5))
    (whole, other, wrong) = await scene.plane.prune_to(
        [(*T0, count - 1), (*T1, 5), (*T1, 6)],
    )
    assert (tuple(whole), tuple(other)) == ((NONE, count - 1), (NONE, 5))
    assert tuple(wrong) == (OUT_OF_RANGE, -1)
    assert await scene.info() == (0, count, 100)
    assert await scene.info(T1) == (0, 5, 0)


# --- Files ----------------------------------------------------------------------------------------


@check
async def a_file_lives_while_it_has_a_batch(scene: Scene) -> None:
    """DC-19, Q22, ENG-61."""
    key = scene.key()
    assert await scene.live(key) == (NOT_FOUND, False)
    await scene.commit(batch(count=5), batch(count=5), batch(T1, 5), key=key)
    assert await scene.live(key) == (NONE, True)
    await scene.plane.delete_records([(*T0, -1)])
    assert await scene.live(key) == (NONE, True)
    assert await scene.deletable() == []
    await scene.plane.delete_records([(*T1, 4)])
    assert await scene.live(key) == (NONE, True)
    await scene.plane.prune_to([(*T1, 5)])
    assert await scene.live(key) == (NONE, False)
    assert await scene.deletable() == [key]


@check
async def described_in_order(scene: Scene) -> None:
    live, free = scene.key(), scene.key()
    await scene.commit(batch(), key=live)
    await scene.commit(batch((STRANGER, 0)), key=free)
    results = await scene.plane.describe_files([free, scene.key(), live, free])
    assert [(r.error, r.has_live_batches) for r in results] == [
        (NONE, False),
        (NOT_FOUND, False),
        (NONE, True),
        (NONE, False),
    ]


@check
async def deletion_waits_for_its_time(scene: Scene) -> None:
    """DC-49: by the time of marking, oldest first, up to a limit."""
    keys = [scene.key() for _ in range(3)]
    for key in keys:
        await scene.commit(batch(), key=key)
    start = scene.now
    for offset in (1, 2, 3):
        scene.clock.advance(10)
        await scene.plane.delete_records([(*T0, offset)])
    files = scene.plane.files_to_delete
    assert await files(start + 10, 0) == []
    assert await files(start + 11, 0) == keys[:1]
    assert await files(start + 30, 0) == keys[:2]
    assert await files(start + 31, 0) == keys
    assert await files(start + 31, 2) == keys[:2]


@check
async def only_marked_files_are_forgotten(scene: Scene) -> None:
    """Design rule 5: a live file stays even if its deletion is confirmed; repeats are fine."""
    live, free = scene.key(), scene.key()
    await scene.commit(batch(), key=live)
    await scene.commit(batch((STRANGER, 0)), key=free)
    for _ in range(2):
        await scene.plane.confirm_deleted([live, free, scene.key()])
    assert await scene.live(live) == (NONE, True)
    assert await scene.live(free) == (NOT_FOUND, False)
    assert await scene.deletable() == []
    assert await scene.bases() == [0]


@check
async def the_topics_that_are_known(scene: Scene) -> None:
    """Each topic once, however many partitions and coordinators it has."""
    assert sorted(await scene.plane.known_topics()) == [TOPIC, OTHER]
    await scene.plane.delete_topics([TOPIC])
    assert await scene.plane.known_topics() == [OTHER]
    await scene.plane.create_partitions([(TOPIC, "a", 4)])
    assert sorted(await scene.plane.known_topics()) == [TOPIC, OTHER]


# --- Watching -------------------------------------------------------------------------------------


class Heard:
    """A listener that can be waited for."""

    def __init__(self) -> None:
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._changed = asyncio.Event()

    def __call__(self, partition: TopicPartition, high_watermark: int) -> None:
        known = self.high_watermarks.get(partition, -1)
        self.high_watermarks[partition] = max(known, high_watermark)
        self._changed.set()

    async def until(self, expected: dict[TopicPartition, int]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while self.high_watermarks != expected:
                self._changed.clear()
                await self._changed.wait()


@check
async def listeners_learn_of_commits(scene: Scene) -> None:
    """ENG decision 17: own commits, and those through another broker."""
    here = Heard()
    unsubscribe = scene.plane.watch(here)
    await scene.commit(batch(count=3), batch(T1), batch())
    await here.until({T0: 4, T1: 1})
    other = await scene.another()
    await other.commit_file(scene.file(batch(B0, 2), batch()))
    await here.until({T0: 5, T1: 1, B0: 2})
    unsubscribe()
    unsubscribe()
    later = Heard()
    scene.plane.watch(later)
    await scene.commit(batch())
    await later.until({T0: 6})
    assert here.high_watermarks[T0] == 5


@check
async def a_failing_listener_disturbs_no_other(scene: Scene) -> None:
    def bad(*_: Any) -> None:
        raise RuntimeError("a listener of a test")

    heard = Heard()
    scene.plane.watch(bad)
    scene.plane.watch(heard)
    assert await scene.offsets(batch()) == [0]
    await heard.until({T0: 1})


@check
async def both_brokers_see_one_order(scene: Scene) -> None:
    """Commits through two brokers at once: dense offsets, each given once."""
    other = await scene.another()
    files = [scene.file(batch(count=2), batch(T1), sent(n, producer=n)) for n in range(8)]
    answers = await asyncio.gather(
        *[(scene.plane, other)[n % 2].commit_file(file) for n, file in enumerate(files)]
    )
    given = sorted(r.assigned_base_offset for a in answers for r in (a[0], a[2]))
    assert given == sorted([3 * n for n in range(8)] + [3 * n + 2 for n in range(8)])
    assert sorted(a[1].assigned_base_offset for a in answers) == list(range(8))
    assert await scene.info() == (0, 24, 1600)


@check
async def one_key_at_once_through_two_brokers(scene: Scene) -> None:
    other = await scene.another()
    file = scene.file(batch(count=2), batch(T1))
    answers = await asyncio.gather(
        *[plane.commit_file(file) for plane in (scene.plane, other, scene.plane, other)]
    )
    assert [[r.assigned_base_offset for r in a] for a in answers] == [[0, 0]] * 4
    assert sum(not a[0].duplicate for a in answers) == 1
    assert await scene.info() == (0, 2, 100)
