"""A WAL file in the writer: requests gather in it, then it is laid out, uploaded and committed.

Its batches belong to coordinators (``ControlPlane.coordinator_of``): each gets a part of the file,
and the parts are committed independently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from skylog.diskless.batch import BatchToCommit, Extent, ProducerStamp, Stamp
from skylog.diskless.layout import Layout, arrange
from skylog.diskless.plane import FileToCommit
from skylog.diskless.writer.lost import LostBatches
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import Random, shuffled
from skylog.objects.keys import ObjectKey
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer

ProducerPartition = tuple[Uuid, int, int]


# Classes with an instance for every batch are tuples: creating them is several times as fast.
class AppendResult(NamedTuple):
    """The outcome of one batch."""

    error: ErrorCode
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None


_NOT_KNOWN_YET = AppendResult(ErrorCode.REQUEST_TIMED_OUT)


class Item(NamedTuple):
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
        """The producer whose order must be kept; None if it does not number its batches."""
        if not self.batch.has_producer:
            return None
        return self.topic_id, self.partition, self.batch.producer_id


def _new_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class Request:
    """A produce request's batches, and its waiting caller.

    ``coordinator_ids`` are those of the items; None for a partition unknown to the plane.
    """

    number: int
    items: Sequence[Item]
    coordinator_ids: Sequence[int | None]
    done: asyncio.Future[None] = field(default_factory=_new_future)
    # Waits for space in the writer.
    waits: bool = False
    size: int = 0
    bytes_by_coordinator: dict[int, int] = field(default_factory=dict)
    _results: dict[int, AppendResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item, coordinator_id in zip(self.items, self.coordinator_ids, strict=True):
            if coordinator_id is not None:
                self.bytes_by_coordinator[coordinator_id] = (
                    self.bytes_by_coordinator.get(coordinator_id, 0) + item.batch.size
                )
                self.size += item.batch.size

    def settle(self, at: int, result: AppendResult) -> None:
        """The first result of a batch counts; after the last batch the request is done."""
        self._results.setdefault(at, result)
        if len(self._results) == len(self.items) and not self.done.done():
            self.done.set_result(None)

    def results(self) -> list[AppendResult]:
        """The known results; the outcome of the rest is unknown."""
        return [self._results.get(at, _NOT_KNOWN_YET) for at in range(len(self.items))]


class Piece(NamedTuple):
    """A batch of a file, and its request."""

    request: Request
    at: int
    item: Item
    coordinator_id: int

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
    """Gathers requests in order of arrival."""

    def __init__(self, opened_ms: float, began: float) -> None:
        self.opened_ms = opened_ms
        self.began = began
        self.size = 0
        self.coordinator_ids: set[int] = set()
        self._pieces: list[Piece] = []

    def add(self, request: Request) -> None:
        for at, (item, coordinator_id) in enumerate(
            zip(request.items, request.coordinator_ids, strict=True)
        ):
            if coordinator_id is not None:
                self._pieces.append(Piece(request, at, item, coordinator_id))
                self.coordinator_ids.add(coordinator_id)
                self.size += item.batch.size

    def close(self, key: ObjectKey, rng: Random, closed_ms: float) -> list[FilePart]:
        """Freeze the bytes; returns the part of each coordinator."""
        layout = arrange(self._pieces)
        # In random order, which spreads the work of owning files evenly.
        coordinator_ids = shuffled(sorted(self.coordinator_ids), rng)
        file = ClosedFile(key, layout, coordinator_ids, closed_ms)
        by_coordinator: dict[int, list[tuple[Piece, int]]] = {
            coordinator_id: [] for coordinator_id in file.coordinator_ids
        }
        for piece, byte_offset in layout.pieces:
            by_coordinator[piece.coordinator_id].append((piece, byte_offset))
        return [
            FilePart(file, coordinator_id, pieces)
            for coordinator_id, pieces in by_coordinator.items()
        ]


class ClosedFile:
    """Laid out. Its parts refer to it, but not vice versa: a reference cycle would keep its bytes
    in memory until the garbage collector runs."""

    def __init__(
        self,
        key: ObjectKey,
        layout: Layout[Piece],
        coordinator_ids: Sequence[int],
        closed_ms: float,
    ) -> None:
        self.key = key
        self.closed_ms = closed_ms
        self.size = layout.size
        self.coordinator_ids = coordinator_ids
        self.uploaded: asyncio.Future[None] = _new_future()
        self.unsettled = len(coordinator_ids)
        # The plane has the file, or may have it.
        self.keep_object = False
        self.failed = False
        self._buffers: Sequence[Buffer] = layout.parts

    def take_buffers(self) -> Sequence[Buffer]:
        """For the upload; waiting requests hold what is needed afterwards."""
        buffers, self._buffers = self._buffers, ()
        return buffers

    def not_uploaded(self, error: Exception) -> None:
        self.uploaded.set_exception(error)
        self.uploaded.exception()  # the commit handles it later


@dataclass(frozen=True, slots=True)
class FilePart:
    """The part of a file that one coordinator commits."""

    file: ClosedFile
    coordinator_id: int
    pieces: Sequence[tuple[Piece, int]]

    def to_commit(self, broker_id: int, lost: LostBatches) -> tuple[FileToCommit, list[Piece]]:
        """Leaves out batches whose producer lost an earlier one."""
        chosen: list[Piece] = []
        batches: list[BatchToCommit] = []
        object_key = self.file.key.text
        for piece, byte_offset in self.pieces:
            if lost.admits(piece.item):
                chosen.append(piece)
                batches.append(_to_commit(piece, object_key, byte_offset))
        file = FileToCommit(
            object_key=object_key,
            size=self.file.size,
            batches=batches,
            uploader_broker_id=broker_id,
            coordinator_ids=self.file.coordinator_ids,
        )
        return file, chosen

    def names(self) -> dict[str, object]:
        """Its identity in log messages."""
        return {"key": str(self.file.key), "coordinator": self.coordinator_id}

    def lose(self, lost: LostBatches) -> None:
        for piece, _ in self.pieces:
            lost.add(piece.item)

    def fail(self, result: AppendResult) -> None:
        """Set this result wherever there is none yet."""
        for piece, _ in self.pieces:
            piece.request.settle(piece.at, result)


def _to_commit(piece: Piece, object_key: str, byte_offset: int) -> BatchToCommit:
    batch = piece.item.batch
    return BatchToCommit(
        topic_id=piece.topic_id,
        partition=piece.partition,
        extent=Extent(object_key=object_key, byte_offset=byte_offset, byte_size=batch.size),
        stamp=Stamp(
            base_offset=0,
            last_offset=batch.last_offset_delta,
            batch_max_timestamp=batch.max_timestamp,
            timestamp_type=piece.item.timestamp_type,
            magic=batch.magic,
        ),
        producer=ProducerStamp(
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            last_sequence=batch.last_sequence,
        ),
        request_id=piece.request.number,
    )
