"""On an executor: the segments of one slice, from WAL objects that are read once.

Batches are checked, get their offsets, and are appended to a file for each segment; a complete file
is put while the next objects are read. What is put is walked once more: it is about to be the only
copy of its records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from skylog.bulk.process import Connections, Pairs, Process, this_process
from skylog.bulk.store import open_tiered_store
from skylog.client.bulk import BatchLocation
from skylog.client.metadata import TopicPartition
from skylog.diskless.batch import BatchCoordinate, Extent, Stamp
from skylog.diskless.reader.patch import SERVED_EPOCH, serve
from skylog.kernel.errors import StorageError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import CheckedFile, NotFound, ObjectError, ObjectStore
from skylog.spark.jobs.segment_plan import Read, Slice, extents
from skylog.tiered.assembly import Segment, SegmentAssembler
from skylog.tiered.consolidation.walk import SegmentWalk
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.segments import RemoteSegment
from skylog.wire.batch import split_batches
from skylog.wire.buffers import Buffer

# Bytes of objects that are read while others are worked on.
AHEAD_BYTES: Final = 32 * 1024 * 1024
# What all segments of a task keep in memory before it is written.
BUFFERED_BYTES: Final = 64 * 1024 * 1024
_PUTS_AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class Stores:
    """The two stores, as an executor opens them."""

    properties: Pairs = field(repr=False)  # may hold passwords
    options: Pairs = field(repr=False)
    wal_url: str
    tiered_url: str

    async def wal(self, connections: Connections) -> ObjectStore:
        return connections.store(self.wal_url, self.options)

    async def tiered(self, connections: Connections) -> ObjectStore:
        key = f"tiered {self.tiered_url}", self.options
        if key not in connections.stores:
            connections.stores[key] = open_tiered_store(
                self.tiered_url, self.wal_url, dict(self.options)
            )
        return connections.stores[key]


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """``segments``: those of the slice, as they were granted."""

    stores: Stores
    slice: Slice
    segments: tuple[RemoteSegment, ...]


@dataclass(frozen=True, slots=True)
class Assembled:
    """The segments in their order, whose logs are put; and the requests for WAL objects."""

    segments: tuple[Segment, ...]
    gets: int


class _Log:
    """A segment that is being assembled, in a file."""

    def __init__(self, segment: RemoteSegment, path: Path, buffer_bytes: int) -> None:
        self.segment = segment
        self.path = path
        self._buffer_bytes = buffer_bytes
        self._assembler = SegmentAssembler(segment.start_offset)
        self._next_offset = segment.start_offset
        self._held: list[Buffer] = []
        self._held_bytes = 0

    @property
    def is_complete(self) -> bool:
        return self._next_offset > self.segment.end_offset

    def add(self, location: BatchLocation, data: memoryview) -> None:
        if location.base_offset != self._next_offset:
            raise StorageError(
                f"segment {self.segment.id}: offset {location.base_offset} instead of"
                f" {self._next_offset}"
            )
        served = serve(_coordinate(location), [data])
        for batch in split_batches(memoryview(served)):
            self._assembler.add(batch.buffer)
        self._next_offset = location.last_offset + 1
        self._held.append(served)
        self._held_bytes += len(served)
        if self._held_bytes >= self._buffer_bytes or self.is_complete:
            self._write()

    def _write(self) -> None:
        # Not kept open: there may be more segments than a process may have files.
        with self.path.open("ab") as file:
            file.writelines(self._held)
        self._held, self._held_bytes = [], 0

    def finish(self) -> Segment:
        """StorageError if it is not what was granted."""
        made, wanted = self._assembler.finish(), self.segment
        found = made.base_offset, made.last_offset, made.size, made.max_timestamp
        expected = wanted.start_offset, wanted.end_offset, wanted.size, wanted.max_timestamp_ms
        if found != expected:
            raise StorageError(f"segment {wanted.id}: {found} instead of {expected}")
        return made


def _coordinate(location: BatchLocation) -> BatchCoordinate:
    return BatchCoordinate(
        batch_id=0,
        extent=Extent(location.object_key, location.byte_offset, location.byte_size),
        stamp=Stamp(
            base_offset=location.base_offset,
            last_offset=location.last_offset,
            log_append_timestamp=location.log_append_timestamp,
            timestamp_type=location.timestamp_type,
        ),
    )


def assemble(task: SegmentTask) -> Assembled:
    """The logs of all segments are in the store when it returns."""
    process = this_process()
    with TemporaryDirectory(prefix="skylog-segments-") as directory:
        return _Assembly(process, task, Path(directory)).run()


class _Assembly:
    def __init__(self, process: Process, task: SegmentTask, directory: Path) -> None:
        self._process = process
        self._stores = task.stores
        self._reads = task.slice.reads
        self._gets = 0
        share = max(BUFFERED_BYTES // max(len(task.segments), 1), 1)
        self._logs: dict[TopicPartition, deque[_Log]] = {}
        for segment in task.segments:
            log = _Log(segment, directory / str(segment.id), share)
            self._logs.setdefault(_key(segment), deque()).append(log)
        self._order = [segment.id for segment in task.segments]
        self._made: dict[bytes, Segment] = {}
        self._puts: deque[Future[None]] = deque()

    def run(self) -> Assembled:
        try:
            for read, data in self._objects():
                for run in read.runs:
                    for batch in run.batches:
                        self._add(run.key, batch, data)
            while self._puts:
                self._puts.popleft().result()
        finally:
            for put in self._puts:
                put.cancel()
        return Assembled(tuple(self._made[one] for one in self._order), self._gets)

    def _add(self, key: TopicPartition, batch: BatchLocation, data: _Pieces) -> None:
        log = self._logs[key][0]
        log.add(batch, data.view(batch))
        if log.is_complete:
            self._logs[key].popleft()
            self._made[log.segment.id] = log.finish()
            while len(self._puts) >= _PUTS_AHEAD:
                self._puts.popleft().result()
            self._puts.append(self._process.start(self._put(log)))

    async def _put(self, log: _Log) -> None:
        segment = log.segment
        connections = await self._process.connections(self._stores.properties)
        store = await self._stores.tiered(connections)
        key = AivenLayout().log_key(segment)
        check = partial(SegmentWalk, segment.start_offset, segment.end_offset + 1, SERVED_EPOCH)
        try:
            await store.put_file(key, [CheckedFile(log.path, check)], segment.size)
        except ObjectError as error:
            raise StorageError(f"cannot put {key}: {error}") from error
        await self._process.executor.run(log.path.unlink)

    # -- WAL objects -------------------------------------------------------------------------------

    def _objects(self) -> Iterator[tuple[Read, _Pieces]]:
        """One object after the other; the next ones are read meanwhile."""
        waiting = iter(self._reads)
        ahead: deque[tuple[Read, Future[_Pieces]]] = deque()
        size = 0
        for read in chain(waiting, [None]):
            if read is not None:
                ahead.append((read, self._process.start(self._get(read))))
                size += read.bytes
            while ahead and (read is None or size > AHEAD_BYTES):
                first, reading = ahead.popleft()
                size -= first.bytes
                yield first, reading.result()

    async def _get(self, read: Read) -> _Pieces:
        connections = await self._process.connections(self._stores.properties)
        store = await self._stores.wal(connections)
        pieces = _Pieces()
        for extent in extents(read):
            self._gets += 1
            try:
                data = await store.get(ObjectKey.parse(read.object_key), extent.start, extent.end)
            except NotFound as error:
                raise StorageError(
                    f"{read.object_key} is gone: its records were deleted meanwhile; run the job"
                    " again"
                ) from error
            except ObjectError as error:
                raise StorageError(f"cannot read {read.object_key}: {error}") from error
            pieces.add(extent.start, data)
        return pieces


class _Pieces:
    """What was read of an object."""

    def __init__(self) -> None:
        self._pieces: list[tuple[int, memoryview]] = []

    def add(self, start: int, data: Buffer) -> None:
        self._pieces.append((start, memoryview(data)))

    def view(self, batch: BatchLocation) -> memoryview:
        end = batch.byte_offset + batch.byte_size
        for start, data in self._pieces:
            if start <= batch.byte_offset and end <= start + len(data):
                return data[batch.byte_offset - start : end - start]
        raise StorageError(f"{batch.object_key} was not read at {batch.byte_offset}")


def _key(segment: RemoteSegment) -> TopicPartition:
    return TopicPartition(segment.topic, segment.partition.partition_index)
