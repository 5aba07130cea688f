"""Remote segments in memory, with their indexes, for the tests of reading."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.system import System
from skylog.log.aborted import AbortedTransaction, encode_aborted
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.tiered.assembly import SegmentAssembler
from skylog.tiered.counts import TieredCounts
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.reading import needs, plan
from skylog.tiered.reading.indexes import IndexCache
from skylog.tiered.reading.needs import RemoteData, RemoteRead
from skylog.tiered.reading.reader import ReaderSettings, RemoteReader
from skylog.tiered.reading.tables import DamagedIndexError, open_table
from skylog.tiered.reading.walk import Chunk
from skylog.tiered.segments import IndexType, RemoteSegment, TopicIdPartition
from skylog.wire.batch import Batch
from skylog.wire.records import encode_batch, find_record
from tests.unit.tiered.remote_records import PARTITION, TOPIC, History, segment

FIRST_MS = 1_700_000_000_000


def stored(
    base: int, *values: bytes, epoch: int = 0, timestamp: int = FIRST_MS, codec: int = 0
) -> Batch:
    """A batch as it is in a log."""
    data = encode_batch(
        [(None, value) for value in values],
        timestamp=timestamp,
        base_offset=base,
        leader_epoch=epoch,
        codec=codec,
    )
    return Batch(memoryview(data))


def line(*sizes: int, epoch: int = 0, base: int = 0) -> list[Batch]:
    """One record of each size, a batch each, a second apart."""
    return [
        stored(base + at, b"x" * size, epoch=epoch, timestamp=FIRST_MS + 1000 * (base + at))
        for at, size in enumerate(sizes)
    ]


def bytes_of(batches: Iterable[Batch]) -> bytes:
    return b"".join(batch.buffer for batch in batches)


class Remote:
    """Remote storage, remote logs and the partition's metadata in one."""

    def __init__(self) -> None:
        self.history = History()
        self.logs: dict[bytes, bytearray] = {}
        self.indexes: dict[tuple[bytes, IndexType], bytes] = {}
        self.batches: dict[bytes, list[Batch]] = {}
        self.fetched: list[tuple[bytes, int, int]] = []
        self.fetched_indexes: list[tuple[bytes, IndexType]] = []
        self.failures: list[ObjectError] = []
        # Positions whose bytes are wrong in the next answer only.
        self.flipped: list[int] = []
        # Fetches wait for it while it is not set.
        self.open = asyncio.Event()
        self.open.set()
        self.known = asyncio.Event()
        self.known.set()
        # What ``fetch_now`` may answer.
        self.in_memory = False

    @property
    def log(self) -> RemoteLog:
        return self.history.log

    def put(
        self,
        batches: Sequence[Batch],
        aborted: Sequence[AbortedTransaction] = (),
        interval: int = 1,
    ) -> RemoteSegment:
        """A finished segment of these batches."""
        assembler = SegmentAssembler(batches[0].base_offset, interval)
        for batch in batches:
            assembler.add(batch.buffer)
        made = assembler.finish()
        one = segment(
            len(self.logs) + 1,
            made.base_offset,
            made.last_offset,
            made.epochs,
            size=made.size,
            max_timestamp_ms=made.max_timestamp,
            txn_index_empty=not aborted,
        )
        self.logs[one.id] = bytearray(bytes_of(batches))
        self.indexes[one.id, IndexType.OFFSET] = made.offset_index
        self.indexes[one.id, IndexType.TIMESTAMP] = made.time_index
        if aborted:
            self.indexes[one.id, IndexType.TRANSACTION] = encode_aborted(aborted)
        self.batches[one.id] = list(batches)
        self.history.copied(one)
        return one

    # RemoteStorage

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> bytes:
        self.fetched.append((segment.id, start, end))
        await self.open.wait()
        if self.failures:
            raise self.failures.pop()
        if segment.id not in self.logs:
            raise NotFound(f"{segment.id}.log does not exist")
        found = bytearray(self.logs[segment.id][start:end])
        while self.flipped:
            found[self.flipped.pop() - start] ^= 1
        return bytes(found)

    def fetch_now(self, segment: RemoteSegment, start: int, end: int) -> bytes | None:
        return bytes(self.logs[segment.id][start:end]) if self.in_memory else None

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> bytes:
        self.fetched_indexes.append((segment.id, kind))
        await self.open.wait()
        found = self.indexes.get((segment.id, kind))
        if found is None:
            raise NotFound(f"{segment.id}: no {kind.value}")
        return found

    # RemoteLogs

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.log if self.known.is_set() else None

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        await self.known.wait()
        return self.log


def unavailable() -> ObjectError:
    return ObjectError("the store is away", Outcome.NOT_DONE)


def wanted(offset: int, bytes_max: int = 1 << 20, **more: Any) -> RemoteRead:
    more.setdefault("epochs", ((0, 0),))
    return RemoteRead(topic=TOPIC, partition=PARTITION, offset=offset, bytes_max=bytes_max, **more)


class Reading:
    """A reader over ``Remote``."""

    def __init__(self, folder: Path, remote: Remote, **settings: Any) -> None:
        self.remote = remote
        self.clock = ManualClock()
        self.system = System(self.clock, Random(1), InlineExecutor())
        self.counts = TieredCounts(self.clock)
        self.indexes = IndexCache(
            folder, remote, self.system, bytes_max=1 << 30, idle_ms_max=900_000
        )
        self.reader = RemoteReader(
            remote,
            remote,
            self.indexes,
            self.system,
            self.counts,
            ReaderSettings(**settings),
            at_hand=remote,
        )

    async def read(self, asked: RemoteRead) -> RemoteData:
        found = self.reader.read(asked)
        return found if isinstance(found, RemoteData) else await found

    async def bytes(self, asked: RemoteRead) -> bytes:
        return b"".join((await self.read(asked)).parts)


def play(
    remote: Remote, steps: Generator[needs.Need, object, Any], chunk_bytes: int = 1 << 20
) -> Any:
    """Answer the steps of a read at once, from chunks of a given size."""
    answer: object = None
    rebuilt: dict[tuple[bytes, IndexType], object] = {}
    try:
        while True:
            need = steps.send(answer)
            answer = None
            if isinstance(need, needs.Bytes):
                answer = _chunks(remote, need, chunk_bytes)
            elif isinstance(need, needs.Index):
                key = (need.segment.id, need.kind)
                answer = rebuilt.get(key) or _table(need, remote.indexes.get(key, b""))
            elif isinstance(need, needs.Keep):
                rebuilt[need.segment.id, IndexType.OFFSET] = need.offsets
                rebuilt[need.segment.id, IndexType.TIMESTAMP] = need.times
            elif isinstance(need, needs.Search):
                answer = find_record(need.batch, need.timestamp, need.offset_min)
    except StopIteration as done:
        return done.value


def _table(need: needs.Index, data: bytes) -> object:
    try:
        return open_table(need.segment, need.kind, data)
    except DamagedIndexError:
        return None


def _chunks(remote: Remote, need: needs.Bytes, size: int) -> list[Chunk]:
    log = remote.logs[need.segment.id]
    assert 0 <= need.start < need.end <= need.segment.size
    first = need.start // size * size
    return [
        Chunk(bytes(log[at : min(at + size, len(log))]), at) for at in range(first, need.end, size)
    ]


def played(remote: Remote, asked: RemoteRead, chunk_bytes: int = 1 << 20) -> RemoteData:
    data: RemoteData = play(remote, plan.read(remote.log, asked, plan.Hints()), chunk_bytes)[0]
    return data
