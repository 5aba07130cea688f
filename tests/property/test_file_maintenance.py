"""Random histories of a bucket: nothing needed is ever deleted, all garbage is eventually.

Passes are interrupted by failing requests and by cancellation at any await, which looks like a
crash of the broker to the plane and the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.files.cleaner import FileCleaner
from skylog.diskless.files.orphans import OrphanScanner
from skylog.diskless.files.retention import RetentionPass
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import KafkaError
from skylog.objects.claim import BucketClaim
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError
from tests.unit.diskless.coordinator.support import Home, home
from tests.unit.diskless.files.support import GRACE_MS, Bucket

COMMIT_AGE_MS = PlaneRules().commit_age_ms_max
OWNERS = 2
AHEAD_MS = PlaneRules().commit_ahead_ms_max


async def turn(_seconds: float = 0) -> None:
    """Lets other tasks run, and a cancellation happen."""
    await asyncio.sleep(0)


class Life:
    """A bucket, its uploads that were never committed, and the passes over it."""

    def __init__(self, seed: int, faults: Faults, home: Home | None = None) -> None:
        """``home``: coordinators instead of a plane in memory."""
        self.home = home
        if home is None:
            self.bucket = Bucket(seed)
        else:
            plane = TopicPlane(home.coordinators, lambda partition: partition[1] % 2, home.rng)
            self.bucket = Bucket(seed, clock=home.clock, plane=plane)
        self.rng = random.Random(seed)
        self.store = FaultyStore(self.bucket.store, self.rng, faults, sleep=turn)
        self.uploads: list[ObjectKey] = []
        confirm = self.bucket.plane.confirm_deleted

        async def confirm_later(keys: Sequence[str]) -> None:
            await turn()
            await confirm(keys)

        self.bucket.plane.confirm_deleted = confirm_later

    def passes(self) -> list[Any]:
        """New ones each time: they keep no state that a restart could lose."""
        bucket, topic_id = self.bucket, self.bucket.topic_id
        limits = [(topic_id, 0, 300, -1), (topic_id, 1, -1, GRACE_MS)]
        return [
            RetentionPass(bucket.plane, lambda: limits, bucket.clock, batches_max=2, sleep=turn),
            FileCleaner(
                bucket.plane, self.store, bucket.clock, grace_ms=GRACE_MS, chunk=2, sleep=turn
            ),
            OrphanScanner(
                bucket.plane,
                BucketClaim(self.store, "ours"),
                bucket.clock,
                grace_ms=GRACE_MS,
                page=2,
                sleep=turn,
            ),
        ]

    async def upload(self) -> None:
        self.uploads.append(await self.bucket.upload())

    async def upload_by_a_fast_clock(self) -> None:
        key = ObjectKey.new("wal", self.bucket.clock.now_ms() + AHEAD_MS, self.bucket.rng)
        await self.bucket.store.put(key, b"x" * 800)
        self.uploads.append(key)

    async def commit(self) -> None:
        """Commit an upload, however late: if the plane accepts it, its object must still be
        there."""
        if self.uploads:
            at = self.rng.randrange(len(self.uploads))
            key = self.uploads.pop(at)
            try:
                await self.bucket.commit(key, self.rng.choice([(0,), (1,), (0, 1), (7,)]))
            except KafkaError:
                self.uploads.append(key)

    async def write(self) -> None:
        await self.upload()
        await self.commit()

    async def delete(self) -> None:
        partition = self.rng.randrange(2)
        info = (await self.bucket.plane.log_info([(self.bucket.topic_id, partition)]))[0]
        if info.high_watermark > info.log_start_offset >= 0:
            offset = self.rng.randrange(info.log_start_offset, info.high_watermark + 1)
            await self.bucket.plane.delete_records([(self.bucket.topic_id, partition, offset)])

    async def wait(self) -> None:
        self.bucket.clock.advance(
            self.rng.choice([1, 1_000, COMMIT_AGE_MS, GRACE_MS, 3 * GRACE_MS])
        )

    async def retain(self) -> None:
        await self.cut_off(self.passes()[0])

    async def clean(self) -> None:
        await self.cut_off(self.passes()[1])

    async def scan(self) -> None:
        await self.cut_off(self.passes()[2])

    async def restart(self) -> None:
        """The coordinators restart from their logs, some without their caches."""
        if self.home is not None:
            if self.rng.random() < 0.5:
                for path in self.home.directory.glob("*/state.sqlite*"):
                    path.unlink()
            await self.home.lead(0, 1)

    async def cut_off(self, work: Any) -> None:
        """Run a pass; the broker may crash at any await of it."""
        task = asyncio.ensure_future(work.run_once())
        if self.rng.random() < 0.3:
            for _ in range(self.rng.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
        with contextlib.suppress(ObjectError, KafkaError, asyncio.CancelledError):
            await task

    async def check(self) -> None:
        objects = await self.bucket.objects()
        assert await self.bucket.live() <= objects, "a live batch without its object"
        now_ms = self.bucket.clock.now_ms()
        may_come = {
            key.text for key in self.uploads if now_ms - (key.created_ms or 0) <= COMMIT_AGE_MS
        }
        assert may_come <= objects, "an object is gone that may still be committed"

    async def end(self) -> None:
        """The store works again, everything is deleted, and time passes."""
        self.store.faults = Faults()
        await self.bucket.delete_all()
        for _ in range(OWNERS):  # a file is handed from owner to owner, with a grace period for
            # each
            self.bucket.clock.advance(GRACE_MS + AHEAD_MS + 1)
            for work in self.passes():
                await work.run_once()
        assert await self.bucket.objects() == set()
        assert await self.bucket.plane.files_to_delete(self.bucket.clock.now_ms() + 1, 0) == []


STEPS: dict[str, Callable[[Life], Awaitable[None]]] = {
    name: getattr(Life, name)
    for name in (
        *("upload", "upload_by_a_fast_clock", "commit", "write", "delete"),
        *("wait", "retain", "clean", "scan", "restart"),
    )
}
FAULTS = st.sampled_from(
    [
        Faults(latency=1.0),
        Faults(latency=0.5, before=0.2, after=0.2, partial_delete=0.3),
        Faults(refused=0.3, latency=0.5),
    ]
)


async def live(life: Life) -> None:
    await life.bucket.start()
    for _ in range(100):
        await STEPS[life.rng.choice(sorted(STEPS))](life)
        await life.check()
    await life.end()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), FAULTS)
def test_nothing_needed_is_deleted_and_all_garbage_is(seed: int, faults: Faults) -> None:
    asyncio.run(live(Life(seed, faults)))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), FAULTS)
def test_the_same_with_two_coordinators(seed: int, faults: Faults) -> None:  # DC-44, DC-52
    async def run() -> None:
        async with home(in_memory=seed % 4 > 0) as opened:
            await opened.lead(0, 1)
            await live(Life(seed, faults, opened))

    asyncio.run(run())
