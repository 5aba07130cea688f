"""A store that fails, cuts answers short and flips bits: readers get right records, or an error."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.memory import MemoryStore
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.reading.indexes import IndexCache
from skylog.tiered.reading.needs import RemoteData
from skylog.tiered.reading.reader import ReaderSettings, RemoteReader
from skylog.tiered.segments import IndexType
from skylog.tiered.storage import ObjectRemoteStorage
from tests.unit.tiered.reading_world import Reading, Remote, bytes_of, line, wanted

RECORDS = 60
# The outcomes that a consumer asks again after.
ERRORS = {ErrorCode.UNKNOWN_SERVER_ERROR}


async def stored(folder: Path, remote: Remote, storage: ObjectRemoteStorage) -> bytes:
    """Segments of ten batches, of more bytes than a chunk; returns all of them."""
    batches = line(*[150_000] * RECORDS)
    for first in range(0, RECORDS, 10):
        one = remote.put(batches[first : first + 10])
        for name, data in (
            ("log", remote.logs[one.id]),
            ("index", remote.indexes[one.id, IndexType.OFFSET]),
            ("timeindex", remote.indexes[one.id, IndexType.TIMESTAMP]),
            ("snapshot", b"none"),
        ):
            (folder / name).write_bytes(data)
        paths = [str(folder / name) for name in ("log", "index", "timeindex", "snapshot")]
        files = SegmentFiles(*paths[:3], None, paths[3], b"0\n1\n0 0\n")
        await storage.copy(one, files)
    return bytes_of(batches)


@pytest.mark.parametrize("seed", range(5))
async def test_right_records_or_an_error(tmp_path: Path, seed: int) -> None:
    remote, store = Remote(), MemoryStore()
    expected = await stored(
        tmp_path, remote, ObjectRemoteStorage(store, AivenLayout(), InlineExecutor())
    )
    faults = Faults(before=0.1, after=0.05, truncated=0.1, corrupted=0.2)
    faulty = FaultyStore(store, Random(seed), faults)
    storage = ObjectRemoteStorage(faulty, AivenLayout(), InlineExecutor())
    parts = Reading(tmp_path / "other", remote)
    indexes = IndexCache(
        tmp_path / "cache", storage, parts.system, bytes_max=1 << 20, idle_ms_max=-1
    )
    # A small cache: most is asked of the store more than once.
    settings = ReaderSettings(cache_bytes_max=3 << 20, prefetch_bytes_max=1 << 20)
    reader = RemoteReader(remote, storage, indexes, parts.system, parts.counts, settings)
    random, offset, found, errors = Random(seed), 0, b"", 0
    while offset < RECORDS:
        try:
            data = reader.read(wanted(offset, random.choice([1, 200_000, 1 << 20])))
            if not isinstance(data, RemoteData):
                data = await data
        except KafkaError as error:
            assert error.code in ERRORS, error
            errors += 1
            assert errors < 1000
            continue
        found += b"".join(data.parts)
        offset = data.next_offset
    await reader.close()
    assert found == expected
    assert errors
    assert faulty.injected["corrupted"] + faulty.injected["truncated"]
