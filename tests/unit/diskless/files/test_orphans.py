from __future__ import annotations

import random
from typing import Any

import pytest

from skylog.diskless.bulk import PinRequest
from skylog.diskless.files.orphans import OrphanScanner
from skylog.diskless.plane import DescribeFileResult
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.limits import STAGED_PIN_AGE_MS_MAX
from skylog.objects.claim import BucketClaim
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.holds import Hold, put_hold, read_holds, release_holds
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError
from tests.unit.diskless.files.support import GRACE_MS, Bucket, no_rest


def scanner(bucket: Bucket, store: Any = None, **settings: Any) -> OrphanScanner:
    return OrphanScanner(
        bucket.plane,
        BucketClaim(store or bucket.store, "ours"),
        bucket.clock,
        grace_ms=GRACE_MS,
        sleep=no_rest,
        **settings,
    )


OWNER = "ab" * 8
DAY_MS = 24 * 60 * 60 * 1000


async def test_orphans_go_when_they_are_old_and_nothing_else_does() -> None:  # DC-50, DC-51
    bucket = await Bucket().start()
    orphans = {(await bucket.upload()).text for _ in range(5)}
    known = (await bucket.write()).text
    staging = ObjectKey.staged(OWNER, bucket.clock.now_ms(), bucket.rng)
    await bucket.store.put(staging, b"x")
    work = scanner(bucket, page=2)
    bucket.clock.advance(GRACE_MS)
    await work.run_once()
    assert orphans <= await bucket.objects()
    bucket.clock.advance(1)
    young = (await bucket.upload()).text
    await work.run_once()
    assert await bucket.objects() == {known, young}
    assert await bucket.objects("staging/") == {staging.text}
    assert (work.stats.deleted, work.stats.progress) == (5, 1.0)


async def test_orphans_go_beside_records_that_stay() -> None:  # DC-51 partly
    bucket = await Bucket().start()
    kept = await bucket.write()
    bucket.clock.advance(3 * GRACE_MS)
    orphan = await bucket.upload()
    work = scanner(bucket)
    bucket.clock.advance(GRACE_MS)
    await work.run_once()
    assert orphan.text in await bucket.objects()
    bucket.clock.advance(1)
    await work.run_once()
    assert await bucket.objects() == {kept.text}


async def test_a_file_that_waits_for_its_deletion_is_no_orphan() -> None:  # Q22
    bucket = await Bucket().start()
    key = await bucket.write()
    await bucket.delete_all()
    bucket.clock.advance(GRACE_MS * 10)
    await scanner(bucket).run_once()
    assert await bucket.objects() == {key.text}


async def test_a_silent_coordinator_ends_the_scan() -> None:  # DC-52
    bucket = await Bucket().start()
    key = await bucket.upload()
    bucket.clock.advance(GRACE_MS + 1)

    async def silent(*_: Any) -> Any:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    bucket.plane.describe_files = silent  # type: ignore[method-assign]
    with pytest.raises(KafkaError):
        await scanner(bucket).run_once()
    del bucket.plane.describe_files
    bucket.plane.reaches_all = lambda: False  # type: ignore[method-assign]
    with pytest.raises(KafkaError):
        await scanner(bucket).run_once()
    assert await bucket.objects() == {key.text}


async def test_a_coordinator_that_goes_away_during_the_question() -> None:
    bucket = await Bucket().start()
    key = await bucket.upload()
    bucket.clock.advance(GRACE_MS + 1)
    answers = iter([True, False])
    bucket.plane.reaches_all = lambda: next(answers)  # type: ignore[method-assign]
    with pytest.raises(KafkaError):
        await scanner(bucket).run_once()
    assert await bucket.objects() == {key.text}


async def test_only_not_found_is_a_reason_to_delete() -> None:  # Q22
    bucket = await Bucket().start()
    key = await bucket.upload()
    bucket.clock.advance(GRACE_MS + 1)

    async def unsure(keys: Any) -> list[DescribeFileResult]:
        return [DescribeFileResult(ErrorCode.NOT_COORDINATOR) for _ in keys]

    bucket.plane.describe_files = unsure  # type: ignore[method-assign]
    with pytest.raises(KafkaError):
        await scanner(bucket).run_once()
    assert await bucket.objects() == {key.text}


async def test_held_objects_wait_for_the_operator() -> None:
    bucket = await Bucket().start()
    held = await bucket.upload()
    hold = Hold(bucket.clock.now_ms(), bucket.clock.now_ms())
    bucket.clock.advance(1)
    free = await bucket.upload()
    await put_hold(bucket.store, hold)
    await put_hold(bucket.store, hold)
    bucket.clock.advance(GRACE_MS * 3)
    await scanner(bucket).run_once()
    assert await bucket.objects() == {held.text}
    assert free.text != held.text
    assert await release_holds(bucket.store) == [hold]
    await scanner(bucket).run_once()
    assert await bucket.objects() == set()


async def test_a_hold_that_cannot_be_read_holds_everything() -> None:
    bucket = await Bucket().start()
    await bucket.store.put(ObjectKey.named("backup", "holds", "from-the-future"), b"")
    await bucket.upload()
    bucket.clock.advance(GRACE_MS * 3)
    with pytest.raises(ObjectError):
        await read_holds(bucket.store)
    with pytest.raises(ObjectError):
        await scanner(bucket).run_once()
    assert len(await bucket.objects()) == 1


async def test_a_listing_that_breaks_off_is_no_reason_to_delete_less_next_time() -> None:
    bucket = await Bucket().start()
    for _ in range(20):
        await bucket.upload()
    bucket.clock.advance(GRACE_MS + 1)
    store = FaultyStore(bucket.store, random.Random(5), Faults(before=0.2))
    with pytest.raises(ObjectError):
        await scanner(bucket, store, page=3).run_once()
    store.faults = Faults()
    await scanner(bucket, store, page=3).run_once()
    assert await bucket.objects() == set()


async def test_objects_of_another_cluster_are_not_orphans() -> None:
    bucket = await Bucket().start()
    await BucketClaim(bucket.store, "theirs").require()
    key = await bucket.upload()
    bucket.clock.advance(GRACE_MS * 2)
    with pytest.raises(StorageError, match="belongs to cluster 'theirs', this one is ours"):
        await scanner(bucket).run_once()
    assert await bucket.objects() == {key.text}


# --- Staged objects -------------------------------------------------------------------------------


async def _stage(bucket: Bucket) -> ObjectKey:
    key = ObjectKey.staged(OWNER, bucket.clock.now_ms(), bucket.rng)
    await bucket.store.put(key, b"x")
    return key


def _pin(bucket: Bucket, key: ObjectKey, lifetime_ms: int) -> PinRequest:
    return PinRequest(key.text, "w", 1, bucket.clock.now_ms() + lifetime_ms, [(bucket.topic_id, 0)])


async def test_staged_objects_go_when_they_can_neither_be_pinned_nor_committed() -> None:
    bucket = await Bucket().start()
    await bucket.write()  # an old file delays nothing here
    orphan = await _stage(bucket)
    work = scanner(bucket, page=1)
    bucket.clock.advance(STAGED_PIN_AGE_MS_MAX)
    assert await bucket.plane.pin_files([_pin(bucket, orphan, 1)]) == [None]
    await bucket.plane.release_pins([orphan.text])
    bucket.clock.advance(GRACE_MS)
    await work.run_once()
    assert await bucket.objects("staging/") == {orphan.text}
    (refused,) = await bucket.plane.pin_files([_pin(bucket, orphan, 1)])
    assert refused is not None
    bucket.clock.advance(1)
    young = await _stage(bucket)
    await work.run_once()
    assert await bucket.objects("staging/") == {young.text}


async def test_pinned_and_committed_objects_are_no_orphans() -> None:
    bucket = await Bucket().start()
    pinned, committed, expiring = [await _stage(bucket) for _ in range(3)]
    await bucket.plane.pin_files(
        [_pin(bucket, pinned, 7 * DAY_MS), _pin(bucket, expiring, 3 * DAY_MS)]
    )
    await bucket.commit(committed)
    work = scanner(bucket)
    bucket.clock.advance(3 * DAY_MS)
    await work.run_once()
    assert len(await bucket.objects("staging/")) == 3
    bucket.clock.advance(DAY_MS)
    await work.run_once()
    assert await bucket.objects("staging/") == {pinned.text, committed.text}
    # What the scan kept can still be committed.
    await bucket.commit(pinned)
    bucket.clock.advance(9 * DAY_MS)
    await work.run_once()
    assert await bucket.objects("staging/") == {pinned.text, committed.text}


async def test_all_staged_objects_wait_for_the_operator_with_those_that_are_held() -> None:
    bucket = await Bucket().start()
    held = await _stage(bucket)
    mark = await _mark(bucket, "11" * 16, 1)
    await _mark(bucket, "11" * 16, 2)
    bucket.clock.advance(DAY_MS)
    await put_hold(bucket.store, Hold(bucket.clock.now_ms(), bucket.clock.now_ms()))
    bucket.clock.advance(30 * DAY_MS)
    work = scanner(bucket)
    await work.run_once()
    assert {held.text, mark.text} <= await bucket.objects("staging/")
    await release_holds(bucket.store)
    await work.run_once()
    assert {held.text, mark.text}.isdisjoint(await bucket.objects("staging/"))


async def _mark(bucket: Bucket, writer: str, epoch: int, what: str = "done") -> ObjectKey:
    key = ObjectKey.named("staging", OWNER, "w", writer, f"{epoch}.{what}")
    await bucket.store.put(key, b"{}")
    return key


async def test_the_marks_of_a_writers_last_epoch_stay() -> None:
    """Others are deleted a day after the last possible end of a pin."""
    bucket = await Bucket().start()
    first, second = "11" * 16, "22" * 16
    for epoch in (8, 9, 10, 11):
        for what in ("manifest", "done"):
            await _mark(bucket, first, epoch, what)
    last = await _mark(bucket, second, 3, "manifest")
    other = ObjectKey.named("staging", OWNER, "w", first, "note")
    await bucket.store.put(other, b"")
    bucket.clock.advance(4 * DAY_MS)
    later = await _mark(bucket, first, 12)
    work = scanner(bucket, page=2)
    bucket.clock.advance(4 * DAY_MS)
    await work.run_once()
    assert work.stats.deleted == 0
    bucket.clock.advance(1)
    await work.run_once()
    assert await bucket.objects("staging/") == {last.text, other.text, later.text}
    bucket.clock.advance(100 * DAY_MS)
    await work.run_once()
    assert await bucket.objects("staging/") == {last.text, other.text, later.text}
