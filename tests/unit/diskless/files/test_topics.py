from __future__ import annotations

from skylog.diskless.files.topics import TopicSweep
from skylog.kernel.ids import Uuid
from tests.unit.diskless.files.support import GRACE_MS, Bucket


async def test_a_topic_that_metadata_lost_is_deleted_after_a_grace() -> None:
    bucket = await Bucket().start()
    kept = Uuid(b"kept------------")
    await bucket.plane.create_partitions([(kept, "kept", 1)])
    await bucket.write()
    work = TopicSweep(bucket.plane, lambda one: one == kept, bucket.clock, grace_ms=GRACE_MS)
    await work.run_once()
    bucket.clock.advance(GRACE_MS - 1)
    await work.run_once()
    assert set(await bucket.plane.known_topics()) == {bucket.topic_id, kept}
    bucket.clock.advance(1)
    await work.run_once()
    assert await bucket.plane.known_topics() == [kept]
    assert len(await bucket.plane.files_to_delete(bucket.clock.now_ms() + 1, 0)) == 1
    assert work.stats.topics_deleted == 1


async def test_a_topic_that_comes_into_view_late_is_kept() -> None:
    bucket = await Bucket().start()
    seen = False
    work = TopicSweep(bucket.plane, lambda _one: seen, bucket.clock, grace_ms=GRACE_MS)
    await work.run_once()
    bucket.clock.advance(GRACE_MS - 1)
    seen = True
    await work.run_once()
    seen = False
    for _ in range(2):
        bucket.clock.advance(1)
        await work.run_once()
    assert await bucket.plane.known_topics() == [bucket.topic_id]
