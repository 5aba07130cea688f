"""The contract of every object store. The same tests for all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skylog.kernel.executor import InlineExecutor
from skylog.kernel.settings import load_settings
from skylog.objects.faulty import FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.limited import LimitedStore
from skylog.objects.local import LocalStore
from skylog.objects.memory import MemoryStore
from skylog.objects.metered import MeteredStore
from skylog.objects.open import open_store
from skylog.objects.retrying import RetryingStore
from skylog.objects.store import (
    Buffer,
    CheckedFile,
    Exists,
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
)
from tests.contract.bucket_server import bucket_server, gcs_settings, s3_settings
from tests.contract.object_servers import SERVERS

Open = Callable[[], ObjectStore]
LOCAL = (
    "memory",
    "directory",
    "file-url",
    "faulty-without-faults",
    "retrying",
    "s3-api",
    "gcs-api",
)
IN_MEMORY = ("memory", "retrying", "faulty-without-faults")
KINDS = [*LOCAL, *(pytest.param(name, marks=pytest.mark.interop) for name in SERVERS)]


def opener(overrides: dict[str, str]) -> Open:
    url = overrides["diskless.storage.url"]
    settings = load_settings(None, {}, [f"{name}={text}" for name, text in overrides.items()])
    return lambda: open_store(url, settings.storage)


@contextmanager
def stage(kind: str, folder: Path) -> Iterator[Open]:
    match kind:
        case "memory":
            yield MemoryStore
        case "directory":
            yield lambda: LocalStore(folder / "objects", InlineExecutor())
        case "file-url":
            yield opener({"diskless.storage.url": f"file://{folder}/deep/objects"})
        case "faulty-without-faults":
            yield lambda: FaultyStore(MemoryStore(), random.Random(1))
        case "retrying":
            yield lambda: RetryingStore(LimitedStore(MeteredStore(MemoryStore()), 4))
        case "s3-api" | "gcs-api":
            settings = s3_settings if kind == "s3-api" else gcs_settings
            with bucket_server() as server:
                yield opener(settings(server.endpoint))
        case _:
            with SERVERS[kind](folder) as overrides:
                prefixed = overrides["diskless.storage.url"] + "/some/Prefix"
                yield opener({**overrides, "diskless.storage.url": prefixed})


@pytest.fixture(scope="module", params=KINDS)
def kind_and_open(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Open]]:
    with stage(request.param, tmp_path_factory.mktemp("store")) as open_:
        yield request.param, open_


@pytest.fixture
async def store(kind_and_open: tuple[str, Open]) -> AsyncIterator[ObjectStore]:
    """An empty store."""
    opened = kind_and_open[1]()
    await opened.delete_many([info.key async for info in opened.list("")])
    yield opened
    await opened.close()


RNG = random.Random(7)


def fresh(kind: str = "wal", at_ms: int = 1_700_000_000_000) -> ObjectKey:
    return ObjectKey.new(kind, at_ms, RNG)  # type: ignore[arg-type]


async def listed(store: ObjectStore, prefix: str = "", after: str | None = None) -> list[str]:
    return [info.key.text async for info in store.list(prefix, after)]


@pytest.mark.parametrize(
    "data",
    [b"x", bytearray(b"array"), memoryview(b"a view")[2:], [b"in ", b"", memoryview(b"parts")]],
    ids=["bytes", "bytearray", "view", "parts"],
)
async def test_what_is_put_is_read_back(store: ObjectStore, data: Payload) -> None:
    """Whichever store is behind the one interface. # ENG-55"""
    key = fresh()
    await store.put(key, data)
    expected = b"".join(data) if isinstance(data, list) else bytes(data)  # type: ignore[arg-type]
    assert await store.get(key) == expected
    info = await store.head(key)
    assert (info.key, info.size) == (key, len(expected))
    assert info.modified_ms > 1_600_000_000_000


async def test_large_objects_are_one_object(store: ObjectStore) -> None:
    """Larger than the size at which libraries switch to multipart uploads."""
    data = random.Random(3).randbytes(6 * 1024 * 1024 + 17)
    key = fresh()
    await store.put(key, [data[:1000], memoryview(data)[1000:]])
    assert await store.get(key) == data
    assert await store.get(key, 5_000_000, 5_000_100) == data[5_000_000:5_000_100]


async def test_ranges_are_exact(store: ObjectStore) -> None:
    data = bytes(range(200))
    key = fresh()
    await store.put(key, data)
    for start, end in [(0, 200), (0, 1), (199, 200), (50, 150), (7, None), (0, 0), (200, 200)]:
        assert await store.get(key, start, end) == data[start:end]


@pytest.mark.parametrize("wanted", [(0, 201), (199, 202), (201, 202), (300, None), (5, 4)])
async def test_a_range_that_is_not_there_is_refused(
    store: ObjectStore, wanted: tuple[int, int | None]
) -> None:
    key = fresh()
    await store.put(key, bytes(200))
    with pytest.raises(ObjectError) as raised:
        await store.get(key, *wanted)
    assert raised.value.kind is Outcome.REFUSED


async def test_an_object_put_at_once_is_there(store: ObjectStore) -> None:
    """A store may always return False, and is then asked to put the same object."""
    key, at_hand = fresh(), store.at_hand
    for data in (b"first", [b"se", b"cond"], b""):
        if at_hand is None or not at_hand.put_now(key, data):
            await store.put(key, data)
        assert await store.get(key) == (b"".join(data) if isinstance(data, list) else data)


async def test_only_a_directory_has_objects_at_hand(
    store: ObjectStore, kind_and_open: tuple[str, Open]
) -> None:
    assert (store.at_hand is not None) == (kind_and_open[0] in ("directory", "file-url"))


async def test_objects_at_hand_equal_those_of_a_get(store: ObjectStore) -> None:
    """A store may always return None; any other result is correct, and the caller may change it."""
    at_hand = store.at_hand
    if at_hand is None:
        return
    data = random.Random(4).randbytes(300_000)
    key, gone = fresh(), fresh()
    for one in (key, gone):
        await store.put(one, data)
    for start, end in ((0, 1), (0, len(data)), (4095, 70_001), (5, 5)):
        found = at_hand.get_now(key, start, end)
        assert found is None or found == data[start:end]
        if found:
            found[0] ^= 1
            assert await store.get(key, start, end) == data[start:end]
    for start, end in ((0, len(data) + 1), (-1, 5), (9, 3), (len(data) + 1, len(data) + 2)):
        assert at_hand.get_now(key, start, end) is None
    await store.delete_many([gone])
    assert at_hand.get_now(gone, 0, 1) is None
    assert at_hand.get_now(fresh(), 0, 1) is None


async def test_empty_objects(store: ObjectStore) -> None:
    key = fresh()
    await store.put(key, b"")
    assert await store.get(key) == b""
    assert (await store.head(key)).size == 0


async def test_absent_objects_are_not_found(store: ObjectStore) -> None:
    with pytest.raises(NotFound):
        await store.get(fresh())
    with pytest.raises(NotFound):
        await store.get(fresh(), 3, 9)
    with pytest.raises(NotFound):
        await store.head(fresh())


async def test_a_put_may_be_repeated(store: ObjectStore) -> None:
    key = fresh()
    await store.put(key, b"same")
    await store.put(key, b"same")
    assert await store.get(key) == b"same"


async def test_if_absent(store: ObjectStore) -> None:
    key = ObjectKey.named("staging", "writer-1", "00042.manifest")
    await store.put(key, b"mine", if_absent=True)
    await store.put(key, b"mine", if_absent=True)  # as after a lost response
    for others in (b"other", b"more bytes than mine", b""):
        with pytest.raises(Exists):
            await store.put(key, others, if_absent=True)
    assert await store.get(key) == b"mine"


async def test_if_absent_has_one_winner(store: ObjectStore) -> None:
    key = ObjectKey.named("staging", "race", "manifest")

    async def claim(name: bytes) -> bytes | None:
        try:
            await store.put(key, name, if_absent=True)
        except Exists:
            return None
        return name

    claims = await asyncio.gather(*(claim(b"writer-%d" % n) for n in range(8)))
    winners = [name for name in claims if name]
    assert len(winners) == 1
    assert await store.get(key) == winners[0]


async def test_deleting_is_idempotent(store: ObjectStore) -> None:
    kept, *gone = [fresh() for _ in range(6)]
    for key in (kept, *gone):
        await store.put(key, b"data")
    await store.delete_many([])
    await store.delete_many([fresh(), *gone[:3], fresh("backup")])
    await store.delete_many([*gone, gone[0]])
    assert await listed(store) == [kept.text]
    with pytest.raises(NotFound):
        await store.get(gone[0])


async def test_deleting_more_keys_than_one_request_takes(
    store: ObjectStore, kind_and_open: tuple[str, Open]
) -> None:
    absent = 60 if kind_and_open[0] in ("azure", "gcs-api") else 1500  # they need a request for
    # each key
    keys = [fresh() for _ in range(3)]
    for key in keys:
        await store.put(key, b"data")
    await store.delete_many([keys[0], *(fresh() for _ in range(absent)), *keys[1:]])
    assert await listed(store) == []


async def test_lists_in_key_order(store: ObjectStore) -> None:
    wal = [fresh(at_ms=1_700_000_000_000 + n) for n in range(20)]
    named = [
        ObjectKey.named("backup", *path.split("/"))
        for path in ("a/x", "a/y/z", "a-b", "a.b", "a_b", "b/0", "b/00", "b/1")
    ]
    for key in (*wal, *named):
        await store.put(key, b"data")
    everything = sorted(key.text for key in (*wal, *named))
    assert await listed(store) == everything
    assert await listed(store, "wal/") == sorted(key.text for key in wal)
    assert await listed(store, "backup/a/") == ["backup/a/x", "backup/a/y/z"]
    assert await listed(store, "staging/") == []
    for after in (*everything, "a", "backup/a", "backup/a0", "wal/7", "wal/80/", "z"):
        assert await listed(store, "", after) == [text for text in everything if text > after]
    assert await listed(store, "backup/", "backup/a/y/z") == [
        text for text in everything if "backup/a/y/z" < text < "wal"
    ]


async def test_a_listing_tells_size_and_time(store: ObjectStore) -> None:
    key = fresh()
    await store.put(key, b"12345")
    found = [info async for info in store.list("wal/")]
    assert found == [ObjectInfo(key, 5, found[0].modified_ms)]
    assert abs(found[0].modified_ms - (await store.head(key)).modified_ms) < 2000


async def test_a_listing_of_many_pages(store: ObjectStore, kind_and_open: tuple[str, Open]) -> None:
    count = 1010 if kind_and_open[0] in SERVERS else 310  # our own server's pages are small
    keys = [fresh() for _ in range(count)]
    await asyncio.gather(*(store.put(key, b"") for key in keys))
    assert await listed(store) == sorted(key.text for key in keys)


async def test_reads_and_writes_at_once(store: ObjectStore) -> None:
    """Objects are independent of each other."""
    objects = {fresh(): RNG.randbytes(500) for _ in range(30)}
    await asyncio.gather(*(store.put(key, data) for key, data in objects.items()))
    read = await asyncio.gather(*(store.get(key) for key in objects))
    assert read == list(objects.values())


async def test_objects_outlive_the_store(
    kind_and_open: tuple[str, Open], store: ObjectStore
) -> None:
    if kind_and_open[0] in IN_MEMORY:
        pytest.skip("memory ends with the store")
    key = fresh()
    await store.put(key, b"still here")
    again = kind_and_open[1]()
    try:
        assert await again.get(key) == b"still here"
    finally:
        await again.close()


ID = "adh9f8BMS4anaUnD8KWfWg"


async def test_remote_segments_are_listed_in_key_order(
    store: ObjectStore, kind_and_open: tuple[str, Open]
) -> None:
    """Also those of topics whose names are as long as Kafka allows, longer than file systems do."""
    # versitygw keeps objects as files and does not cut their names.
    long = "t" * (200 if kind_and_open[0] in SERVERS else 240)
    topics = ["a", "a-b", "a.b", "A", long + "a" * 9, long + "b" * 9, long, long + "Z"]
    keys = [
        ObjectKey.parse(f"{topic}-{ID}/{index}/{offset:020}-{ID}.log")
        for topic in topics
        for index in (0, 2, 10)
        for offset in (5, 77)
    ]
    keys += [
        ObjectKey.parse(f"kafka-tiered-storage/{topic}-7-{ID}/{1:020}-{ID}.snapshot")
        for topic in topics
    ]
    for key in keys:
        await store.put(key, key.text.encode())
    everything = sorted(key.text for key in keys)
    assert await listed(store) == everything
    for topic in topics:
        for prefix in (f"{topic}-{ID}/", f"{topic}-{ID}/2/"):
            assert await listed(store, prefix) == [t for t in everything if t.startswith(prefix)]
    assert await listed(store, "kafka-tiered-storage/") == [
        text for text in everything if text.startswith("kafka-tiered-storage/")
    ]
    for after in everything[::7]:
        assert await listed(store, "", after) == [text for text in everything if text > after]
    for key in keys:
        assert await store.get(key) == key.text.encode()
    await store.delete_many(keys)
    assert await listed(store) == []


PART = 8 * 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 17])
async def test_a_file_is_put_whole(store: ObjectStore, tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    path = tmp_path / "segment"
    path.write_bytes(data)
    key = fresh()
    for _ in range(2):  # the same again, as after a lost response
        await store.put_file(key, [path], size)
        assert await store.get(key) == data
        assert (await store.head(key)).size == size


async def test_files_and_buffers_are_put_one_behind_the_other(
    store: ObjectStore, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1" * PART)
    second.write_bytes(b"2" * 100)
    empty = tmp_path / "empty"
    empty.touch()
    key = fresh()
    source = [b"head", first, memoryview(b"a middle")[2:], empty, bytearray(), second, b"tail"]
    expected = b"head" + b"1" * PART + b"middle" + b"2" * 100 + b"tail"
    await store.put_file(key, source, len(expected))
    assert await store.get(key) == expected


@pytest.mark.parametrize("size", [99, 101, PART * 2])
@pytest.mark.parametrize("length", [100, PART + 100])
async def test_a_source_of_another_size_is_refused(
    store: ObjectStore, tmp_path: Path, size: int, length: int
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(length))
    key = fresh()
    with pytest.raises(ObjectError, match=f"bytes instead of {size}") as raised:
        await store.put_file(key, [path], size)
    assert raised.value.kind is Outcome.REFUSED
    with pytest.raises(NotFound):
        await store.head(key)
    assert await listed(store) == []


@pytest.mark.parametrize("before", [b"", bytes(PART + 1)], ids=["at once", "on the way"])
async def test_a_source_that_cannot_be_read_is_refused_and_is_not_a_missing_object(
    store: ObjectStore, tmp_path: Path, before: bytes
) -> None:
    key = fresh()
    with pytest.raises(ObjectError, match="cannot read") as raised:
        await store.put_file(key, [before, tmp_path / "nothing"], len(before) + 1)
    assert raised.value.kind is Outcome.REFUSED
    assert not isinstance(raised.value, NotFound)
    assert await listed(store) == []


class Refuses:
    """Looks at a file, and refuses it at its ``at``-th byte or at its end."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.seen = b""

    def take(self, piece: Buffer) -> None:
        self.seen += piece
        if len(self.seen) > self._left:
            raise ObjectError("not what it should be", Outcome.REFUSED)

    def end(self) -> None:
        if len(self.seen) == self._left:
            raise ObjectError("not what it should be", Outcome.REFUSED)


@pytest.mark.parametrize("size", [0, 1, PART + 1])
async def test_a_checked_file_is_looked_at_while_it_is_put(
    store: ObjectStore, tmp_path: Path, size: int
) -> None:
    data = random.Random(size).randbytes(size)
    path = tmp_path / "segment"
    path.write_bytes(data)
    checks: list[Refuses] = []

    def check() -> Refuses:
        checks.append(Refuses(size + 1))
        return checks[-1]

    key = fresh()
    for _ in range(2):
        await store.put_file(key, [b"head", CheckedFile(path, check)], size + 4)
        assert await store.get(key) == b"head" + data
    assert [one.seen for one in checks] == [data] * 2


@pytest.mark.parametrize("at", [0, PART, PART + 1], ids=["at once", "on the way", "at its end"])
async def test_a_file_that_its_check_refuses_is_not_put(
    store: ObjectStore, tmp_path: Path, at: int
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(PART + 1))
    key = fresh()
    with pytest.raises(ObjectError, match="not what it should be") as raised:
        await store.put_file(key, [CheckedFile(path, lambda: Refuses(at))], PART + 1)
    assert raised.value.kind is Outcome.REFUSED
    assert await listed(store) == []


async def test_a_put_file_that_is_given_up_leaves_all_or_nothing(
    store: ObjectStore, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(3 * PART))
    key = fresh()
    for turns in (1, 3, 10, 50):
        putting = asyncio.ensure_future(store.put_file(key, [path], 3 * PART))
        for _ in range(turns):
            await asyncio.sleep(0)
        putting.cancel()
        await asyncio.gather(putting, return_exceptions=True)
        assert {info.size async for info in store.list("")} <= {3 * PART}
    await store.put_file(key, [path], 3 * PART)
    assert (await store.head(key)).size == 3 * PART
