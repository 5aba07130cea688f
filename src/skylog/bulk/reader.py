"""From splits to Arrow batches: read ahead on the process's loop, decode on the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import pyarrow as pa

from skylog.bulk.bucket import BucketSettings, BucketSource, Stores
from skylog.bulk.decode import CHUNK_BYTES, Selection, decode_chunks
from skylog.bulk.fetch import BrokerSource
from skylog.bulk.names import COLUMNS
from skylog.bulk.process import Pairs, Process, pairs, this_process
from skylog.bulk.schema import schema_of
from skylog.bulk.source import LossPolicy, Piece, WindowSource
from skylog.bulk.store import is_reachable, storage_settings
from skylog.client.bulk import Split
from skylog.client.settings import ClientSettings
from skylog.kernel.errors import ConfigError

Via = Literal["bucket", "broker"]
VIA: Final[tuple[Via, ...]] = ("bucket", "broker")
# Bytes of objects in one window; while one is decoded, up to three more are read or wait.
WINDOW_BYTES: Final = 16 * 1024 * 1024
# Smaller Arrow batches are merged.
SMALL_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What every reader of a query needs; sent to other processes, so it consists of plain values.

    ``properties`` are those of a Kafka client, ``storage`` those of ``diskless.storage.*``.
    """

    properties: Pairs = field(repr=False)  # may hold passwords
    storage_url: str | None = None
    storage: Pairs = field(default=(), repr=False)
    via: Via = "bucket"
    columns: tuple[str, ...] = COLUMNS
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    fail_on_data_loss: bool = True
    window_bytes: int = WINDOW_BYTES
    chunk_bytes: int = CHUNK_BYTES

    @classmethod
    def of(  # noqa: PLR0913 - the fields
        cls,
        properties: Mapping[str, str],
        *,
        storage_url: str | None = None,
        storage: Mapping[str, str] | None = None,
        via: str = "bucket",
        columns: Sequence[str] = COLUMNS,
        min_timestamp: int | None = None,
        max_timestamp: int | None = None,
        fail_on_data_loss: bool = True,
    ) -> ReadContext:
        """Validated here, so that an error shows before anything is read."""
        if via not in VIA:
            raise ConfigError(f"via is {via!r}; allowed are {', '.join(VIA)}")
        schema_of(columns)
        ClientSettings.of(properties)
        storage_settings(storage or {})
        return cls(
            pairs(properties),
            storage_url,
            pairs(storage or {}),
            "bucket" if via == "bucket" else "broker",
            tuple(columns),
            min_timestamp,
            max_timestamp,
            fail_on_data_loss,
        )

    def at(self, storage_url: str | None) -> ReadContext:
        """The same, with the address that the brokers returned."""
        return replace(self, storage_url=storage_url)

    def schema(self) -> pa.Schema:
        """The schema of every batch that is read."""
        return schema_of(self.columns)


def read_splits(
    context: ReadContext,
    splits: Sequence[Split],
    *,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some splits, one after another; ``on_bytes`` is called with the bytes read.

    Splits of small partitions should be adjacent: they are then read with one request.
    """
    return _joined(_rows(context, splits, on_bytes))


def _rows(
    context: ReadContext, splits: Sequence[Split], on_bytes: Callable[[int], None] | None
) -> Iterator[pa.RecordBatch]:
    for piece in read_pieces(context, splits):
        yield from _decoded(context, piece)
        if on_bytes is not None:
            on_bytes(piece.bytes)


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merged batches of small partitions: each batch has a fixed cost for its consumer."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > SMALL_BYTES:
            yield pa.concat_batches(held) if len(held) > 1 else held[0]
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield pa.concat_batches(held) if len(held) > 1 else held[0]


def read_pieces(context: ReadContext, splits: Sequence[Split]) -> Iterator[Piece]:
    """The batches of some splits, verified but not decoded; the following ones are read ahead."""
    process = this_process()
    for via_bucket, run in _runs(context, splits):
        source = process.run(_open(process, context, run, via_bucket=via_bucket))
        ahead = process.start(source.next())
        try:
            while (window := ahead.result()) is not None:
                ahead = process.start(source.next())
                yield from window
        finally:
            ahead.cancel()
            process.end(source.close())


def _runs(context: ReadContext, splits: Sequence[Split]) -> Iterator[tuple[bool, list[Split]]]:
    """Runs of splits that are read the same way."""
    bucket = context.via == "bucket" and is_reachable(context.storage_url)
    run: list[Split] = []
    for split in splits:
        if run and run[-1].in_bucket != split.in_bucket and bucket:
            yield run[-1].in_bucket, run
            run = []
        run.append(split)
    if run:
        yield bucket and run[-1].in_bucket, run


async def _open(
    process: Process, context: ReadContext, splits: Sequence[Split], *, via_bucket: bool
) -> WindowSource:
    connections = await process.connections(context.properties)
    loss = LossPolicy(context.fail_on_data_loss)
    if not via_bucket:
        return BrokerSource(connections.cluster, process.executor, splits, loss)
    url, earliest = context.storage_url or "", context.min_timestamp
    return BucketSource(
        connections.cluster,
        Stores(
            connections.store(url, context.storage),
            connections.tiered_reads(url, context.storage, process.executor),
        ),
        process.executor,
        splits,
        BucketSettings(context.window_bytes, -1 if earliest is None else earliest, loss),
    )


def _decoded(context: ReadContext, piece: Piece) -> Iterator[pa.RecordBatch]:
    split = piece.split
    selection = Selection(
        split.topic,
        split.partition,
        context.columns,
        split.start_offset,
        split.end_offset,
        context.min_timestamp,
        context.max_timestamp,
    )
    return decode_chunks(piece.batches, selection, context.chunk_bytes)
