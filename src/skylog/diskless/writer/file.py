"""A WAL file on its way: requests gather in it, then it is laid out, uploaded and committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from skylog.diskless.layout import Extent, Layout, arrange
from skylog.diskless.plane import BatchToCommit, FileToCommit
from skylog.diskless.writer.lost import LostBatches
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer

ProducerPartition = tuple[Uuid, int, int]


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of one batch."""

    error: ErrorCode
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One validated batch of a request."""

    topic: str
    topic_id: Uuid
    partition: int
    batch: Batch
    timestamp_type: int = 0

    @property
    def buffer(self) -> Buffer:
        return self.batch.buffer

    @property
    def producer(self) -> ProducerPartition | None:
        """Whose order must hold; None for a producer that does not number its batches."""
        if not self.batch.has_producer:
            return None
        return self.topic_id, self.partition, self.batch.producer_id


@dataclass(slots=True)
class Request:
    """A produce request's batches, and who waits for them."""

    number: int
    items: Sequence[Item]
    size: int
    done: asyncio.Future[list[AppendResult]]
    results: dict[int, AppendResult] = field(default_factory=dict)

    def settle(self) -> None:
        if not self.done.done():
            self.done.set_result([self.results[at] for at in range(len(self.items))])


@dataclass(frozen=True, slots=True)
class _Piece:
    request: Request
    at: int
    item: Item

    @property
    def topic(self) -> str:
        return self.item.topic

    @property
    def topic_id(self) -> Uuid:
        return self.item.topic_id

    @property
    def partition(self) -> int:
        return self.item.partition

    @property
    def buffer(self) -> Buffer:
        return self.item.batch.buffer


class WalFile:
    """Holds whole requests, in order of arrival."""

    def __init__(self, opened_ms: int) -> None:
        self.opened_ms = opened_ms
        self.requests: list[Request] = []
        self.size = 0
        self.key: ObjectKey | None = None
        self.layout: Layout[_Piece] | None = None
        self.uploaded: asyncio.Future[None] | None = None

    def add(self, request: Request) -> None:
        self.requests.append(request)
        self.size += request.size

    def lay_out(self, key: ObjectKey) -> Layout[_Piece]:
        """Close the file: from now on its bytes do not change."""
        self.key = key
        pieces = (
            _Piece(request, at, item)
            for request in self.requests
            for at, item in enumerate(request.items)
        )
        self.layout = arrange(pieces)
        return self.layout

    def to_commit(self, broker_id: int, lost: LostBatches) -> tuple[FileToCommit, list[_Piece]]:
        """What is to be committed. Batches whose producer lost an earlier one stay out of it."""
        if self.layout is None or self.key is None:
            raise RuntimeError("a file is laid out before it is committed")
        chosen: list[_Piece] = []
        batches: list[BatchToCommit] = []
        for piece, extent in self.layout.pieces:
            if not lost.admits(piece.item):
                continue
            chosen.append(piece)
            batches.append(_to_commit(piece, extent))
        file = FileToCommit(
            object_key=str(self.key),
            size=self.layout.size,
            batches=batches,
            uploader_broker_id=broker_id,
        )
        return file, chosen

    def lose(self, lost: LostBatches) -> None:
        """Note all batches that have no result."""
        for request in self.requests:
            for at, item in enumerate(request.items):
                if at not in request.results:
                    lost.add(item)

    def fail(self, error: ErrorCode, message: str) -> None:
        """Everything that has no result yet gets this one."""
        for request in self.requests:
            for at in range(len(request.items)):
                request.results.setdefault(at, AppendResult(error, message=message))
            request.settle()


def _to_commit(piece: _Piece, extent: Extent) -> BatchToCommit:
    batch = piece.item.batch
    return BatchToCommit(
        topic_id=piece.topic_id,
        partition=piece.partition,
        byte_offset=extent.byte_offset,
        size=extent.size,
        base_offset=0,
        last_offset=batch.last_offset_delta,
        batch_max_timestamp=batch.max_timestamp,
        timestamp_type=piece.item.timestamp_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        last_sequence=batch.last_sequence,
        magic=batch.magic,
        request_id=piece.request.number,
    )
