"""Damage of remote segments is found, each kind of it, and nothing else is called damage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.executor import InlineExecutor
from skylog.objects.memory import MemoryStore
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.tiered.verify import VerifyReport, gaps, verify_partition
from tests.unit.tiered.real_segments import real_segment
from tests.unit.tiered.remote_segments import remote_segment

LAYOUTS: list[Layout] = [AivenLayout(chunk_size=1000), LocalTieredLayout()]


class Bucket:
    """Two segments of two hundred offsets each."""

    def __init__(self, layout: Layout) -> None:
        self.store = MemoryStore()
        self.storage = ObjectRemoteStorage(self.store, layout, InlineExecutor())
        self.segments: list[RemoteSegment] = []

    async def fill(self, folder: Path) -> None:
        for number, start in enumerate((0, 200)):
            segment, files, _ = real_segment(folder, number, start)
            await self.storage.copy(segment, files)
            self.segments.append(replace(segment, state=SegmentState.COPY_FINISHED))

    async def verify(self, **more: object) -> VerifyReport:
        again = ObjectRemoteStorage(self.store, self.storage.layout, InlineExecutor())
        options = {"start": 0, "end": 400, **more}
        return await verify_partition(again, self.segments, **options)  # type: ignore[arg-type]

    async def damage(self, at: int, flip: int = 1) -> None:
        """Flip a bit of the first log."""
        key = self.storage.layout.log_key(self.segments[0])
        data = bytearray(await self.store.get(key))
        data[at] ^= flip
        await self.store.put(key, bytes(data))


@pytest.fixture(params=LAYOUTS, ids=["aiven", "kafka-local"])
async def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    made = Bucket(request.param)
    await made.fill(tmp_path)
    return made


def texts(report: VerifyReport) -> list[str]:
    return [problem.text for problem in report.problems]


async def test_a_sound_partition_has_no_problems(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await bucket.verify()
    assert texts(report) == []
    assert (report.segments, report.bytes) == (2, sum(one.size for one in bucket.segments))
    monkeypatch.setattr("skylog.tiered.verify._PIECE_BYTES", 100)  # smaller than a batch
    assert texts(await bucket.verify()) == []


async def test_every_flipped_byte_of_a_log_is_found(bucket: Bucket) -> None:
    """Also those that no checksum covers."""
    size = bucket.segments[0].size
    for at in [*range(0, size, 211), *range(40)]:
        await bucket.damage(at)
        assert texts(await bucket.verify()), at
        await bucket.damage(at)
    assert texts(await bucket.verify()) == []


async def test_without_logs_only_objects_are_looked_at(bucket: Bucket) -> None:
    await bucket.damage(500)
    assert texts(await bucket.verify(logs=False)) == []
    assert (await bucket.verify(logs=False)).bytes == 0


async def test_a_batch_that_claims_too_much_ends_the_walk(bucket: Bucket) -> None:
    await bucket.damage(8, 0x40)
    assert any("a batch of" in text for text in texts(await bucket.verify()))


@pytest.mark.parametrize("number", range(3))
async def test_a_missing_object_is_found(bucket: Bucket, number: int) -> None:
    keys = [info.key async for info in bucket.store.list("")]
    await bucket.store.delete_many([keys[number]])
    report = await bucket.verify()
    assert len({problem.segment for problem in report.problems}) == 1
    assert report.problems[0].segment == bucket.segments[0]


async def test_a_log_of_another_size_is_found(bucket: Bucket) -> None:
    key = bucket.storage.layout.log_key(bucket.segments[1])
    data = await bucket.store.get(key)
    await bucket.store.put(key, data[:-1])
    (problem,) = (await bucket.verify()).problems
    assert f"{len(data) - 1} bytes instead of {len(data)}" in problem.text
    assert problem.segment == bucket.segments[1]


@pytest.mark.parametrize("kind", [IndexType.OFFSET, IndexType.LEADER_EPOCH])
async def test_a_damaged_index_is_found(bucket: Bucket, kind: IndexType) -> None:
    layout = bucket.storage.layout
    key = layout.index_key(bucket.segments[0], kind)
    data = bytearray(await bucket.store.get(key))
    manifest = await bucket.storage.read_manifest(bucket.segments[0])
    at = manifest.indexes[kind].position if manifest else 0
    data[at : at + 2] = b"\xff\xff"
    await bucket.store.put(key, bytes(data))
    assert any(kind.value in text or "index" in text for text in texts(await bucket.verify()))


async def test_offsets_that_are_in_no_segment_are_found(bucket: Bucket) -> None:
    del bucket.segments[0]
    (problem,) = (await bucket.verify()).problems
    assert problem == (None, "offsets 0 to 199 are in no remote segment")
    assert texts(await bucket.verify(start=200)) == []
    assert texts(await bucket.verify(end=500, start=200)) == [
        "offsets 400 to 499 are in no remote segment"
    ]


async def test_segments_that_are_not_finished_are_not_looked_at(bucket: Bucket) -> None:
    for state in (SegmentState.COPY_STARTED, SegmentState.DELETE_STARTED):
        bucket.segments[0] = replace(bucket.segments[0], state=state)
        report = await bucket.verify(start=200)
        assert (report.segments, texts(report)) == (1, [])


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=8),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_gaps_are_what_a_set_says(runs: list[tuple[int, int]], start: int, end: int) -> None:
    segments = [remote_segment(start_offset=s, end_offset=s + n) for s, n in runs]
    had = {offset for s, n in runs for offset in range(s, s + n + 1)}
    found = [
        offset for first, behind in gaps(segments, start, end) for offset in range(first, behind)
    ]
    assert found == [offset for offset in range(start, end) if offset not in had]
