from __future__ import annotations

import random
from typing import Any

import pytest

from skylog.diskless.files.claim import BucketClaim
from skylog.diskless.files.holds import Hold, put_hold, read_holds, release_holds
from skylog.diskless.files.orphans import OrphanScanner, orphan_threshold
from skylog.diskless.plane import DescribeFileResult
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.objects.faulty import Faults, FaultyStore
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


@pytest.mark.parametrize(
    ("oldest", "expected"),
    [
        (None, 9_000_000),  # no files: now − grace
        (1_000_000, 2_000_000),  # oldest + grace
        (9_500_000, 9_000_000),  # oldest + grace would be in the future
    ],
)
def test_threshold(oldest: int | None, expected: int) -> None:  # DC-51, Q19
    assert orphan_threshold(oldest, 10_000_000, 1_000_000) == expected


async def test_orphans_go_when_they_are_old_and_nothing_else_does() -> None:  # DC-50, DC-51
    bucket = await Bucket().start()
    orphans = {(await bucket.upload()).text for _ in range(5)}
    known = (await bucket.write()).text
    staging = ObjectKey.new("staging", bucket.clock.now_ms(), bucket.rng)
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


async def test_old_files_keep_younger_orphans_from_being_looked_at() -> None:  # DC-51
    bucket = await Bucket().start()
    await bucket.write()
    bucket.clock.advance(3 * GRACE_MS)
    orphan = await bucket.upload()
    bucket.clock.advance(3 * GRACE_MS)
    work = scanner(bucket)
    await work.run_once()
    assert orphan.text in await bucket.objects()
    await bucket.delete_all()
    await work.run_once()
    assert orphan.text not in await bucket.objects()


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
    for failing in ("oldest_file_ms", "describe_files"):

        async def silent(*_: Any) -> Any:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

        setattr(bucket.plane, failing, silent)
        with pytest.raises(KafkaError):
            await scanner(bucket).run_once()
        delattr(bucket.plane, failing)
    with pytest.raises(KafkaError):
        await scanner(bucket, all_coordinators=lambda: False).run_once()
    assert await bucket.objects() == {key.text}


async def test_a_coordinator_that_goes_away_during_the_question() -> None:
    bucket = await Bucket().start()
    key = await bucket.upload()
    bucket.clock.advance(GRACE_MS + 1)
    answers = iter([True, False])
    with pytest.raises(KafkaError):
        await scanner(bucket, all_coordinators=lambda: next(answers)).run_once()
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
