"""Remote segments in an object store: both layouts, and damaged objects."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.local import LocalStore
from skylog.objects.memory import MemoryStore
from skylog.objects.retrying import RetryingStore, RetryPolicy
from skylog.objects.store import (
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
)
from skylog.tiered.layout.aiven import CustomField, CustomMetadata, decode_custom
from skylog.tiered.layout.chunks import FixedChunks, VariableChunks
from skylog.tiered.layout.manifest import IndexRange, Manifest, decode_manifest, encode_manifest
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import IndexType, SegmentState
from skylog.tiered.storage import (
    CustomMetadataTooLarge,
    DamagedSegment,
    ObjectRemoteStorage,
    UploadRate,
)
from tests.unit.tiered.remote_segments import remote_segment

LOG = random.Random(5).randbytes(10_000)
SEGMENT = remote_segment(size=len(LOG))
INDEX_BYTES = {
    IndexType.OFFSET: b"offset index",
    IndexType.TIMESTAMP: b"time",
    IndexType.PRODUCER_SNAPSHOT: b"a producer snapshot",
    IndexType.LEADER_EPOCH: b"0\n1\n0 0\n",
    IndexType.TRANSACTION: b"aborted",
}
LAYOUTS: list[Layout] = [AivenLayout(chunk_size=300), LocalTieredLayout()]


class Recording(ObjectStore):
    """Memory that notes what is asked of it, and ends after ``left`` changes as a killed process
    does."""

    def __init__(self, left: int = 1_000_000) -> None:
        self.memory = MemoryStore()
        self.calls: list[str] = []
        self.left = left

    def _change(self, what: str) -> None:
        self.calls.append(what)
        if not self.left:
            raise ObjectError("killed", Outcome.AMBIGUOUS)
        self.left -= 1

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        self._change(f"put {key.text.rpartition('.')[2]}")
        await self.memory.put(key, data, if_absent=if_absent)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        self._change(f"put {key.text.rpartition('.')[2]}")
        await self.memory.put_file(key, source, size)

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        self.calls.append(f"get {key.text.rpartition('.')[2]}")
        await asyncio.sleep(0)
        return await self.memory.get(key, start, end)

    async def head(self, key: ObjectKey) -> ObjectInfo:
        return await self.memory.head(key)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        self._change("delete " + " ".join(key.text.rpartition(".")[2] for key in keys))
        await self.memory.delete_many(keys)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in self.memory.list(prefix, after):
            yield info

    async def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def files(tmp_path: Path) -> SegmentFiles:
    paths = {}
    for kind in IndexType:
        path = tmp_path / kind.value
        path.write_bytes(INDEX_BYTES[kind])
        paths[kind] = str(path)
    (tmp_path / "log").write_bytes(LOG)
    return SegmentFiles(
        log=str(tmp_path / "log"),
        offset_index=paths[IndexType.OFFSET],
        time_index=paths[IndexType.TIMESTAMP],
        transaction_index=paths[IndexType.TRANSACTION],
        producer_snapshot=paths[IndexType.PRODUCER_SNAPSHOT],
        leader_epochs=INDEX_BYTES[IndexType.LEADER_EPOCH],
    )


def opened(store: ObjectStore, layout: Layout | None = None, **more: object) -> ObjectRemoteStorage:
    chosen = layout or AivenLayout(chunk_size=300)
    return ObjectRemoteStorage(store, chosen, InlineExecutor(), **more)  # type: ignore[arg-type]


async def keys_of(store: ObjectStore) -> list[str]:
    return [info.key.text async for info in store.list("")]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
@pytest.mark.parametrize("with_transactions", [True, False])
async def test_a_segment_is_copied_read_and_deleted(
    files: SegmentFiles, layout: Layout, with_transactions: bool
) -> None:
    if not with_transactions:
        files = files._replace(transaction_index=None)
    storage = opened(store := MemoryStore(), layout)
    for _ in range(2):  # the same again is harmless
        assert await storage.copy(SEGMENT, files) is None
    for start, end in ((0, 10_000), (0, 1), (299, 301), (9_999, 10_000), (500, 500)):
        assert bytes(await storage.fetch(SEGMENT, start, end)) == LOG[start:end]
    for start, end in ((0, 10_001), (-1, 5), (5, 4)):
        with pytest.raises(ObjectError) as raised:
            await storage.fetch(SEGMENT, start, end)
        assert raised.value.kind is Outcome.REFUSED
    for kind, data in INDEX_BYTES.items():
        if kind is IndexType.TRANSACTION and not with_transactions:
            with pytest.raises(NotFound):
                await storage.fetch_index(SEGMENT, kind)
        else:
            assert await storage.fetch_index(SEGMENT, kind) == data
    await storage.delete(SEGMENT)
    assert await keys_of(store) == []
    await storage.delete(SEGMENT)  # absent is done
    with pytest.raises(NotFound):
        await storage.fetch(SEGMENT, 0, 1)


async def test_the_manifest_is_put_last_and_deleted_first(files: SegmentFiles) -> None:
    storage = opened(store := Recording())
    await storage.copy(SEGMENT, files)
    await storage.delete(SEGMENT)
    assert store.calls == [
        *("put log", "put indexes", "put rsm-manifest"),
        *("delete rsm-manifest", "delete log indexes"),
    ]


async def test_objects_are_those_of_the_plugin(files: SegmentFiles) -> None:
    storage = opened(store := MemoryStore())
    await storage.copy(SEGMENT, files)
    path = f"topic1-{SEGMENT.partition.topic_id}/42/{0:020}-{SEGMENT.id}"
    assert await keys_of(store) == [f"{path}.{name}" for name in ("indexes", "log", "rsm-manifest")]
    assert await store.get(ObjectKey.parse(f"{path}.log")) == LOG
    whole = b"".join(INDEX_BYTES[kind] for kind in IndexType)
    assert await store.get(ObjectKey.parse(f"{path}.indexes")) == whole
    manifest = decode_manifest(await store.get(ObjectKey.parse(f"{path}.rsm-manifest")))
    assert manifest.chunks == FixedChunks(300, 10_000, 300, 100)
    assert manifest.segment == replace(SEGMENT, state=SegmentState.COPY_FINISHED)


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_a_copy_that_ends_anywhere_is_completed_or_deleted(
    files: SegmentFiles, layout: Layout
) -> None:
    """A segment is whole once its manifest is there, and not before."""
    for steps in range(8):
        store = Recording(left=steps)
        storage = opened(store, layout)
        try:
            await storage.copy(SEGMENT, files)
            done = True
        except ObjectError as error:
            assert error.kind is Outcome.AMBIGUOUS
            done = False
        assert done == (len(store.calls) <= steps)
        if isinstance(layout, AivenLayout) and any("rsm" in key for key in await keys_of(store)):
            assert done
        store.left = 1_000_000
        again = opened(store, layout)
        if steps % 2:
            await again.copy(SEGMENT, files)
            assert bytes(await again.fetch(SEGMENT, 0, 10_000)) == LOG
        await again.delete(SEGMENT)
        assert await keys_of(store) == []


async def test_a_deletion_that_ends_anywhere_leaves_no_whole_segment(files: SegmentFiles) -> None:
    for steps in range(2):
        store = Recording()
        storage = opened(store)
        await storage.copy(SEGMENT, files)
        store.left = steps
        with pytest.raises(ObjectError):
            await storage.delete(SEGMENT)
        left = await keys_of(store)
        assert any(key.endswith(".log") for key in left)
        assert any("rsm" in key for key in left) == (steps == 0)
        store.left = 1_000_000
        await storage.delete(SEGMENT)
        assert await keys_of(store) == []


async def test_a_log_of_another_size_is_not_copied(files: SegmentFiles) -> None:
    storage = opened(store := MemoryStore())
    for size in (len(LOG) - 1, len(LOG) + 1):
        with pytest.raises(ObjectError, match="bytes instead of") as raised:
            await storage.copy(replace(SEGMENT, size=size), files)
        assert raised.value.kind is Outcome.REFUSED
    with pytest.raises(ObjectError, match="cannot read"):
        await storage.copy(SEGMENT, files._replace(time_index="/nowhere"))
    assert await keys_of(store) == []


async def test_a_store_that_keeps_less_than_it_was_given_is_noticed(files: SegmentFiles) -> None:
    class Losing(MemoryStore):
        async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
            await self.put(key, b"less")

    with pytest.raises(DamagedSegment, match="4 bytes are stored instead of 10000"):
        await opened(Losing()).copy(SEGMENT, files)


# --- Custom metadata ------------------------------------------------------------------------------


async def test_custom_metadata_says_where_the_objects_are(files: SegmentFiles) -> None:
    layout = AivenLayout(300, list(CustomField), "prefix/")
    storage = opened(store := MemoryStore(), layout, custom_metadata_bytes_max=500)
    custom = await storage.copy(SEGMENT, files)
    sizes = [info.size async for info in store.list("")]
    found = decode_custom(custom)
    path = f"topic1-{SEGMENT.partition.topic_id}/42/{0:020}-{SEGMENT.id}"
    assert found == CustomMetadata(sum(sizes), "prefix/", path)
    finished = replace(SEGMENT, custom_metadata=custom)
    assert bytes(await storage.fetch(finished, 5, 10)) == LOG[5:10]
    elsewhere = opened(store, AivenLayout(300, list(CustomField), "other/"))
    with pytest.raises(DamagedSegment, match="below the prefix 'prefix/', but"):
        await elsewhere.fetch(finished, 5, 10)
    with pytest.raises(DamagedSegment):
        await elsewhere.delete(finished)
    assert len(await keys_of(store)) == 3
    await storage.delete(finished)
    assert await keys_of(store) == []


async def test_custom_metadata_over_its_limit_is_an_error_before_anything_is_put(
    files: SegmentFiles,
) -> None:
    layout = AivenLayout(300, [CustomField.OBJECT_KEY])
    size = len(await opened(MemoryStore(), layout).copy(SEGMENT, files) or b"")
    storage = opened(store := MemoryStore(), layout, custom_metadata_bytes_max=size)
    assert await storage.copy(SEGMENT, files)
    storage = opened(store := MemoryStore(), layout, custom_metadata_bytes_max=size - 1)
    with pytest.raises(CustomMetadataTooLarge, match=f"of {size} bytes"):
        await storage.copy(SEGMENT, files)
    assert await keys_of(store) == []


async def test_hostile_custom_metadata_is_one_segments_error(files: SegmentFiles) -> None:
    storage = opened(MemoryStore())
    await storage.copy(SEGMENT, files)
    hostile = replace(SEGMENT, custom_metadata=b"\xff\xff\xff")
    for work in (storage.fetch(hostile, 0, 1), storage.fetch_index(hostile, IndexType.OFFSET)):
        with pytest.raises(DamagedSegment):
            await work
    assert bytes(await storage.fetch(SEGMENT, 0, 1)) == LOG[:1]


# --- Compressed segments --------------------------------------------------------------------------


async def compressed(store: MemoryStore, chunk_size: int = 300) -> list[int]:
    """What the plugin puts with ``compression.enabled``; the sizes of its chunks."""
    chunks = [
        zstandard.compress(LOG[at : at + chunk_size]) for at in range(0, len(LOG), chunk_size)
    ]
    layout = AivenLayout(chunk_size)
    sizes = [len(chunk) for chunk in chunks]
    await store.put(layout.log_key(SEGMENT), b"".join(chunks))
    await put_manifest(store, VariableChunks(chunk_size, len(LOG), sizes))
    return sizes


async def put_manifest(
    store: MemoryStore, chunks: FixedChunks | VariableChunks, *, compression: bool = True
) -> None:
    indexes, position = {}, 0
    for kind in IndexType:
        indexes[kind] = (position, len(INDEX_BYTES[kind]))
        position += len(INDEX_BYTES[kind])
    manifest = Manifest(
        chunks=chunks,
        indexes={kind: IndexRange(*at) for kind, at in indexes.items()},
        compression=compression,
        segment=SEGMENT,
    )
    await store.put(AivenLayout().manifest_key(SEGMENT), encode_manifest(manifest))


async def test_compressed_segments_are_read() -> None:
    await compressed(store := MemoryStore())
    storage = opened(store)
    rng = random.Random(2)
    for _ in range(50):
        start = rng.randrange(len(LOG))
        end = rng.randrange(start, len(LOG) + 1)
        assert bytes(await storage.fetch(SEGMENT, start, end)) == LOG[start:end]
    with pytest.raises(DamagedSegment):
        await storage.fetch(SEGMENT, 0, len(LOG) + 1)


async def test_only_the_chunks_of_a_range_are_read(files: SegmentFiles) -> None:
    sizes = await compressed(store := MemoryStore())
    asked = []

    class Watched(MemoryStore):
        async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
            if key.text.endswith(".log"):
                asked.append((start, end))
            return await store.get(key, start, end)

        async def head(self, key: ObjectKey) -> ObjectInfo:
            return await store.head(key)

    assert bytes(await opened(Watched()).fetch(SEGMENT, 650, 700)) == LOG[650:700]
    assert asked == [(sum(sizes[:2]), sum(sizes[:3]))]


@pytest.mark.parametrize("damage", ["bomb", "shorter", "cut", "not zstd"])
async def test_a_chunk_that_is_not_what_the_manifest_says_is_damage(damage: str) -> None:
    bad = {
        "bomb": zstandard.compress(bytes(1 << 24)),
        "shorter": zstandard.compress(LOG[:299]),
        "cut": zstandard.compress(LOG[:300])[:-5],
        "not zstd": b"hello",
    }[damage]
    rest = zstandard.compress(LOG[300:600])
    store = MemoryStore()
    segment = replace(SEGMENT, size=600)
    await store.put(AivenLayout().log_key(segment), bad + rest)
    await put_manifest(store, VariableChunks(300, 600, [len(bad), len(rest)]))
    storage = opened(store)
    with pytest.raises(DamagedSegment):
        await storage.fetch(segment, 0, 300)
    assert bytes(await storage.fetch(segment, 300, 600)) == LOG[300:600]


@pytest.mark.parametrize(
    ("chunks", "compression"),
    [
        (FixedChunks(300, len(LOG), 310, 100), False),
        (VariableChunks(300, len(LOG), [300] * 33 + [100]), False),
        (VariableChunks(300, len(LOG), [2**31 - 1] * 34), True),
        (FixedChunks(len(LOG), len(LOG), 0, 2**31 - 1), True),
        (FixedChunks.plain(300, len(LOG) - 1), False),
    ],
    ids=["sizes differ", "variable", "huge chunks", "one huge chunk", "another log"],
)
async def test_a_manifest_that_does_not_fit_is_damage(
    chunks: FixedChunks | VariableChunks, compression: bool
) -> None:
    store = MemoryStore()
    await store.put(AivenLayout().log_key(SEGMENT), LOG)
    await put_manifest(store, chunks, compression=compression)
    with pytest.raises(DamagedSegment):
        await opened(store).fetch(SEGMENT, 0, 10)


async def test_an_encrypted_segment_names_its_key(files: SegmentFiles) -> None:
    storage = opened(store := MemoryStore())
    await storage.copy(SEGMENT, files)
    key = AivenLayout().manifest_key(SEGMENT)
    whole = json.loads(await store.get(key))
    whole["encryption"] = {"dataKey": "my-key:AAAA", "aad": "AAAA"}
    await store.put(key, json.dumps(whole).encode())
    with pytest.raises(DamagedSegment, match="encrypted with key 'my-key'"):
        await opened(store).fetch(SEGMENT, 0, 1)


async def test_a_manifest_of_any_size_and_content_is_bounded(
    files: SegmentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(store := MemoryStore())
    await storage.copy(SEGMENT, files)
    key = AivenLayout().manifest_key(SEGMENT)
    size = (await store.head(key)).size
    monkeypatch.setattr("skylog.tiered.storage.REMOTE_MANIFEST_BYTES_MAX", size)
    assert await opened(store).fetch(SEGMENT, 0, 1)
    monkeypatch.setattr("skylog.tiered.storage.REMOTE_MANIFEST_BYTES_MAX", size - 1)
    with pytest.raises(DamagedSegment, match="a manifest of"):
        await opened(store).fetch(SEGMENT, 0, 1)
    await store.put(key, b"{}")
    with pytest.raises(DamagedSegment):
        await opened(store).fetch(SEGMENT, 0, 1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_an_index_that_is_too_large_is_not_read(
    files: SegmentFiles, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    storage = opened(MemoryStore(), layout)
    await storage.copy(SEGMENT, files)
    size = len(INDEX_BYTES[IndexType.OFFSET])
    monkeypatch.setattr("skylog.tiered.storage.REMOTE_INDEX_BYTES_MAX", size)
    assert await storage.fetch_index(SEGMENT, IndexType.OFFSET)
    monkeypatch.setattr("skylog.tiered.storage.REMOTE_INDEX_BYTES_MAX", size - 1)
    with pytest.raises(DamagedSegment):
        await storage.fetch_index(SEGMENT, IndexType.OFFSET)


async def test_an_index_outside_its_object_is_refused(files: SegmentFiles) -> None:
    storage = opened(store := MemoryStore())
    await storage.copy(SEGMENT, files)
    await store.put(AivenLayout().index_key(SEGMENT, IndexType.OFFSET), b"short")
    with pytest.raises(ObjectError) as raised:
        await storage.fetch_index(SEGMENT, IndexType.TRANSACTION)
    assert raised.value.kind is Outcome.REFUSED


# --- Manifests in memory, and what is at hand -----------------------------------------------------


async def test_a_manifest_is_asked_for_once(
    files: SegmentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(store := Recording())
    await storage.copy(SEGMENT, files)
    monkeypatch.setattr("skylog.tiered.storage.REMOTE_MANIFESTS_KEPT_MAX", 2)
    await asyncio.gather(*(storage.fetch(SEGMENT, n, n + 1) for n in range(10)))
    assert store.calls.count("get rsm-manifest") == 1
    others = [replace(SEGMENT, start_offset=n) for n in (1, 2)]
    for number, other in enumerate(others):
        named = replace(other, id=type(SEGMENT.id)(bytes([number]) * 16))
        await storage.copy(named, files)
        await storage.fetch(named, 0, 1)
    await storage.fetch(SEGMENT, 0, 1)
    assert store.calls.count("get rsm-manifest") == 4  # only two are kept


async def test_one_that_gives_up_does_not_fail_those_that_wait_for_the_same_manifest(
    files: SegmentFiles,
) -> None:
    storage = opened(Recording())
    await storage.copy(SEGMENT, files)
    first = asyncio.ensure_future(storage.fetch(SEGMENT, 0, 5))
    second = asyncio.ensure_future(storage.fetch(SEGMENT, 5, 9))
    await asyncio.sleep(0)
    first.cancel()
    assert bytes(await second) == LOG[5:9]
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_a_directory_has_bytes_at_hand_once_the_manifest_was_read(
    files: SegmentFiles, tmp_path: Path, layout: Layout
) -> None:
    store = LocalStore(tmp_path / "objects", InlineExecutor())
    storage = opened(store, layout)
    await storage.copy(SEGMENT, files)
    if isinstance(layout, AivenLayout):
        assert storage.fetch_now(SEGMENT, 0, 10) is None
        await storage.fetch(SEGMENT, 0, 1)
    found = storage.fetch_now(SEGMENT, 5, 100)
    assert found is None or found == LOG[5:100]  # a file system may not know what is cached
    assert opened(MemoryStore()).fetch_now(SEGMENT, 0, 1) is None
    await store.close()


async def test_a_topic_of_249_characters_works_on_a_directory(
    files: SegmentFiles, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "objects", InlineExecutor())
    segment = replace(SEGMENT, topic="t" * 249)
    for layout in LAYOUTS:
        storage = opened(store, layout)
        await storage.copy(segment, files)
        assert bytes(await storage.fetch(segment, 0, 10)) == LOG[:10]
        assert all(key.startswith(("t", "kafka")) for key in await keys_of(store))
        await storage.delete(segment)
        assert await keys_of(store) == []
    await store.close()


async def test_a_store_that_fails_at_random_keeps_whole_segments(files: SegmentFiles) -> None:
    for seed in range(30):
        faulty = FaultyStore(
            inner := MemoryStore(),
            random.Random(seed),
            Faults(before=0.1, unclear=0.1, after=0.1, throttled=0.05, truncated=0.05),
        )

        async def at_once(seconds: float) -> None:
            pass

        store = RetryingStore(faulty, RetryPolicy(attempts_max=20), sleep=at_once)
        storage = opened(store)
        await storage.copy(SEGMENT, files)
        assert bytes(await storage.fetch(SEGMENT, 100, 5_000)) == LOG[100:5_000]
        for kind, data in INDEX_BYTES.items():
            assert await storage.fetch_index(SEGMENT, kind) == data
        await storage.delete(SEGMENT)
        assert await keys_of(inner) == []


async def test_uploads_are_spread() -> None:
    clock = ManualClock()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(round(seconds * 1000))

    rate = UploadRate(1000, clock, sleep)
    for _ in range(4):
        await rate.take(500)
    assert slept == pytest.approx([0.5, 0.5, 0.5])
    clock.advance(100_000)
    await rate.take(500)  # what was not used is not saved up
    await rate.take(500)
    assert slept == pytest.approx([0.5] * 4)
