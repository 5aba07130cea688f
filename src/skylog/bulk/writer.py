"""Writing rows in bulk: what a task does with its rows, and what the driver does afterwards.

Callers have no event loop: Spark calls in from outside. Rows of diskless topics are staged in the
bucket and become visible when the driver completes the epoch; rows of classic topics go through
the brokers at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from skylog.bulk.encode import BATCH_BYTES_DEFAULT, RowBatch, RowEncoder, TopicTarget
from skylog.bulk.epoch import Step, writer_prefix
from skylog.bulk.process import Connections, pairs, this_process
from skylog.bulk.produce import BatchProducer
from skylog.bulk.staging import (
    OBJECT_BYTES_DEFAULT,
    ClusterBrokers,
    EpochCommitter,
    Stager,
    StagingArea,
)
from skylog.bulk.store import STORAGE_URL, is_reachable
from skylog.bulk.targets import fetch_targets
from skylog.client.bulk import StagedObject, staging_info
from skylog.client.cluster import Cluster
from skylog.kernel.errors import ConfigError
from skylog.wire.batch import Compression

# Objects of a task that are uploaded while the next one is encoded.
_UPLOADS_AT_ONCE: Final = 2
# How long one that gives up waits for its uploads.
_STOPPED_SECONDS_MAX: Final = 5.0


@dataclass(frozen=True, slots=True)
class WriteContext:
    """All that tasks and driver need; it is sent between processes, and shows no secret."""

    client: Mapping[str, str] = field(repr=False)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    topic: str | None = None
    codec: Compression = Compression.NONE
    batch_bytes: int = BATCH_BYTES_DEFAULT
    object_bytes: int = OBJECT_BYTES_DEFAULT


@dataclass(frozen=True, slots=True)
class Written:
    """What one task wrote: objects for the driver to commit, and rows that are already stored."""

    objects: tuple[StagedObject, ...] = ()
    rows: int = 0
    produced_rows: int = 0  # of classic topics


def write_rows(context: WriteContext, batches: Iterable[pa.RecordBatch], seed: int = 0) -> Written:
    """A task's work. If it fails, it removes everything that it staged."""
    encoder = RowEncoder(
        topic=context.topic, codec=context.codec, batch_bytes=context.batch_bytes, seed=seed
    )
    process = this_process()
    session = _Session(context)
    rows = 0
    try:
        for chunk in chunks(batches, context.object_bytes):
            targets = process.run(session.targets(encoder.topics(chunk)))
            encoded = encoder.encode(chunk, targets, session.now_ms())
            rows += chunk.num_rows
            session.pend(process.start(session.send(encoded)))
        return session.finish(rows)
    except BaseException:
        process.run(session.discard())
        raise


def chunks(batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows in pieces of about this many bytes: small batches merged, large ones split."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        for part in _parts(batch, chunk_bytes):
            if gathered and size + part.nbytes > chunk_bytes:
                yield _concat(gathered)
                gathered, size = [], 0
            gathered.append(part)
            size += part.nbytes
    if gathered:
        yield _concat(gathered)


def _concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _parts(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    if batch.num_rows == 1 or batch.nbytes <= bytes_max:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half), bytes_max)
    yield from _parts(batch.slice(half), bytes_max)


class _Session:
    """A task's connections to brokers and bucket; opened when there are rows."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._connections: Connections | None = None
        self._stager: Stager | None = None
        self._producer: BatchProducer | None = None
        self._targets: dict[str, TopicTarget] = {}
        self._pending: deque[Future[list[StagedObject]]] = deque()
        self._staged: list[StagedObject] = []
        self._produced_rows = 0

    @property
    def _cluster(self) -> Cluster:
        return self._connected().cluster

    def _connected(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("the session is not connected")
        return self._connections

    def now_ms(self) -> int:
        return self._cluster.system.clock.now_ms()

    async def targets(self, names: Collection[str]) -> Mapping[str, TopicTarget]:
        if self._connections is None:
            self._connections = await this_process().connections(pairs(self._context.client))
        unknown = [name for name in names if name not in self._targets]
        if unknown:
            self._targets |= await fetch_targets(self._cluster, unknown)
        kinds = {self._targets[name].diskless for name in names}
        if True in kinds and self._stager is None:
            area = await open_area(self._connected(), self._context)
            self._stager = Stager(area, self._context.object_bytes)
        if False in kinds and self._producer is None:
            self._producer = BatchProducer(self._cluster)
        return self._targets

    async def send(self, batches: Sequence[RowBatch]) -> list[StagedObject]:
        classic = [batch for batch in batches if not self._targets[batch.topic].diskless]
        diskless = [batch for batch in batches if self._targets[batch.topic].diskless]
        # First, so that earlier rows come earlier in their partition's queue.
        if classic and self._producer is not None:
            await self._producer.send(classic)
            self._produced_rows += sum(batch.count for batch in classic)
        if diskless and self._stager is not None:
            return await self._stager.stage(diskless)
        return []

    def pend(self, sending: Future[list[StagedObject]]) -> None:
        """Queue it for sending; wait while too much is in flight."""
        self._pending.append(sending)
        while len(self._pending) > _UPLOADS_AT_ONCE:
            self._staged += self._pending.popleft().result()

    def finish(self, rows: int) -> Written:
        while self._pending:
            self._staged += self._pending.popleft().result()
        return Written(tuple(self._staged), rows, self._produced_rows)

    async def discard(self) -> None:
        """Stop sending and remove what was staged."""
        # A thread that uploads cannot be stopped: what it puts after the deletion would stay.
        under_way = [asyncio.wrap_future(sending) for sending in self._pending]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOPPED_SECONDS_MAX):
                await asyncio.gather(*under_way, return_exceptions=True)
        if self._stager is not None:
            await self._stager.discard()


async def open_area(connections: Connections, context: WriteContext) -> StagingArea:
    """Where this client stages."""
    cluster = connections.cluster
    info = await staging_info(cluster)
    url = context.storage.get(STORAGE_URL) or info.storage_url
    if url is None or not is_reachable(url):
        raise ConfigError(
            f"the cluster's object storage is {url or 'not set'}: only its broker can write "
            f"there, but diskless topics are written through the bucket"
        )
    store = connections.store(url, pairs(context.storage))
    system = cluster.system
    return StagingArea(ClusterBrokers(cluster), store, info.prefix, system.clock, system.rng)


# The driver's side -------------------------------------------------------------------------------


class EpochDriver:
    """Completes what tasks staged, and removes what failed."""

    def __init__(
        self,
        context: WriteContext,
        writer: str,
        before: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._context = context
        self._writer = writer
        self._before = before

    def check(self, topics: Collection[str]) -> None:
        """Before any task runs: check that brokers, topics and bucket are available."""
        this_process().run(self._check(topics))

    async def _check(self, topics: Collection[str]) -> None:
        connections = await this_process().connections(pairs(self._context.client))
        await connections.cluster.refresh(())
        targets = await fetch_targets(connections.cluster, topics)
        if any(target.diskless for target in targets.values()):
            area = await open_area(connections, self._context)
            # There are few objects here; the point is that the bucket answers.
            async for _ in area.store.list(writer_prefix(area.prefix, self._writer)):
                break

    def has_written(self) -> bool:
        """Whether this writer has begun an epoch that its bucket still knows."""
        return this_process().run(self._has_written())

    async def _has_written(self) -> bool:
        if not await self._writes_diskless():
            return False
        connections = await this_process().connections(pairs(self._context.client))
        area = await open_area(connections, self._context)
        async for _ in area.store.list(writer_prefix(area.prefix, self._writer)):
            return True
        return False

    def complete(self, epoch: int, written: Sequence[Written], *, single: bool = False) -> None:
        """Make the rows of an epoch visible, exactly once."""
        this_process().run(self._complete(epoch, _objects(written), single))

    async def _complete(self, epoch: int, objects: Sequence[StagedObject], single: bool) -> None:
        if objects or (not single and await self._writes_diskless()):
            await (await self._committer()).complete(epoch, objects, single=single)

    async def _writes_diskless(self) -> bool:
        """Whether an earlier attempt may have left something although this one staged nothing.

        Writers of classic topics need no bucket, and their cluster need not be skylog.
        """
        topic = self._context.topic
        if topic is None:
            return False
        connections = await this_process().connections(pairs(self._context.client))
        return (await fetch_targets(connections.cluster, [topic]))[topic].diskless

    def give_up(self, epoch: int, written: Sequence[Written]) -> None:
        """Some task failed, so the epoch was not claimed: remove what the others staged."""
        if _objects(written):
            this_process().run(self._give_up(epoch, _objects(written)))

    async def _give_up(self, epoch: int, objects: Sequence[StagedObject]) -> None:
        await (await self._committer()).give_up(epoch, objects)

    async def _committer(self) -> EpochCommitter:
        connections = await this_process().connections(pairs(self._context.client))
        area = await open_area(connections, self._context)
        return EpochCommitter(area, self._writer, self._before)


def _objects(written: Sequence[Written]) -> list[StagedObject]:
    return [staged for one in written for staged in one.objects]
