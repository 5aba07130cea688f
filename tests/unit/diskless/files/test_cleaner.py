from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from skylog.diskless.files.cleaner import REFUSALS_MAX, FileCleaner
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, Outcome
from tests.unit.diskless.files.support import BATCH_BYTES, GRACE_MS, Bucket, no_rest


def cleaner(bucket: Bucket, store: Any = None, **settings: Any) -> FileCleaner:
    return FileCleaner(
        bucket.plane,
        store or bucket.store,
        bucket.clock,
        grace_ms=GRACE_MS,
        sleep=no_rest,
        **settings,
    )


async def garbage(count: int) -> Bucket:
    bucket = await Bucket().start()
    for _ in range(count):
        await bucket.write()
    await bucket.delete_all()
    return bucket


class Locked:
    """A store that refuses to delete some objects."""

    def __init__(self, bucket: Bucket, locked: set[str]) -> None:
        self._store = bucket.store
        self._locked = locked
        self.requests = 0

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        self.requests += 1
        if any(key.text in self._locked for key in keys):
            raise ObjectError("locked", Outcome.REFUSED)
        await self._store.delete_many(keys)


async def test_files_are_deleted_after_the_grace_and_not_before() -> None:
    bucket = await garbage(7)
    kept = await bucket.write()
    work = cleaner(bucket, chunk=3)
    bucket.clock.advance(GRACE_MS)
    await work.run_once()
    assert len(await bucket.objects()) == 8
    bucket.clock.advance(1)
    await work.run_once()
    assert await bucket.objects() == {kept.text}
    assert await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0) == []
    assert work.stats.files_deleted == 7


async def test_staged_files_that_were_committed_are_deleted_like_others() -> None:
    bucket = await Bucket().start()
    for _ in range(REFUSALS_MAX + 1):
        key = ObjectKey.staged("a1" * 8, bucket.clock.now_ms(), bucket.rng)
        await bucket.store.put(key, b"x" * BATCH_BYTES * 8)
        await bucket.commit(key)
    await bucket.write()
    await bucket.delete_all()
    bucket.clock.advance(GRACE_MS + 1)
    work = cleaner(bucket)
    await work.run_once()
    assert await bucket.objects("staging/") | await bucket.objects() == set()
    assert work.stats.files_refused == 0
    assert await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0) == []


@pytest.mark.parametrize("faults", [Faults(partial_delete=1.0), Faults(after=1.0)])
async def test_nothing_is_confirmed_that_the_store_did_not_confirm(faults: Faults) -> None:
    bucket = await garbage(5)
    bucket.clock.advance(GRACE_MS + 1)
    store = FaultyStore(bucket.store, random.Random(3), faults)
    with pytest.raises(ObjectError):
        await cleaner(bucket, store).run_once()
    assert len(await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0)) == 5
    store.faults = Faults()
    await cleaner(bucket, store).run_once()  # a new one, as after a restart
    assert await bucket.objects() == set()
    assert await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0) == []


async def test_an_object_that_cannot_be_deleted_does_not_hold_up_the_others() -> None:
    bucket = await garbage(20)
    bucket.clock.advance(GRACE_MS + 1)
    locked = set(sorted(await bucket.objects())[:3])
    work = cleaner(bucket, Locked(bucket, locked), chunk=4)
    with pytest.raises(ObjectError):
        await work.run_once()
    assert await bucket.objects() == locked
    assert work.stats.files_refused == 3


async def test_a_store_that_refuses_everything_is_not_asked_for_each_object() -> None:
    bucket = await garbage(500)
    bucket.clock.advance(GRACE_MS + 1)
    store = Locked(bucket, await bucket.objects())
    with pytest.raises(ObjectError):
        await cleaner(bucket, store).run_once()
    assert store.requests < 4 * REFUSALS_MAX


async def test_a_store_that_hangs_ends_the_pass() -> None:
    bucket = await garbage(1)
    bucket.clock.advance(GRACE_MS + 1)

    class Hanging:
        async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await cleaner(bucket, Hanging(), delete_seconds_max=0.01).run_once()
    assert len(await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0)) == 1


async def test_commits_and_reads_go_on_while_a_deletion_takes_its_time() -> None:
    bucket = await garbage(2)
    bucket.clock.advance(GRACE_MS + 1)
    started, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
            started.set()
            await go_on.wait()
            await bucket.store.delete_many(keys)

    task = asyncio.ensure_future(cleaner(bucket, Slow()).run_once())
    await started.wait()
    key = await bucket.write()
    assert key.text in await bucket.live()
    go_on.set()
    await task
    assert await bucket.objects() == {key.text}


async def test_a_plane_that_does_not_forget_is_not_asked_for_ever() -> None:
    bucket = await garbage(3)
    bucket.clock.advance(GRACE_MS + 1)

    async def forget_nothing(_keys: Sequence[str]) -> None:
        """Like a coordinator that has just moved."""

    bucket.plane.confirm_deleted = forget_nothing  # type: ignore[method-assign]
    await cleaner(bucket, chunk=1).run_once()
    assert len(await bucket.plane.files_to_delete(bucket.clock.now_ms(), 0)) == 3
