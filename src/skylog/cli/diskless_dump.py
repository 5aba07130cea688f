"""``skylog diskless dump-wal``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.diskless_store import StorageUrl, StoreOptions, opened
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Json
from skylog.cli.output import print_json_line, print_table
from skylog.cli.times import format_time
from skylog.kernel.errors import KafkaError

if TYPE_CHECKING:
    from skylog.wire.batch import Batch

_BATCH_COLUMNS: Final = {
    "position": "POSITION",
    "size": "SIZE",
    "records": "RECORDS",
    "timestamp": "TIMESTAMP",
    "codec": "CODEC",
    "producer_id": "PRODUCER",
    "sequence": "SEQUENCE",
    "fault": "FAULT",
}


def dump_wal(
    path: Annotated[str, typer.Argument(help="A file; with --storage-url, the key of an object.")],
    storage_url: StorageUrl = None,
    json: Json = False,
) -> None:
    """Show the batches of a WAL object.

    Only the coordinators know their partitions and offsets: see `skylog diskless batches`.
    Checksums are verified; the exit code is 1 if anything is wrong.
    """
    data = _read(path) if storage_url is None else asyncio.run(_get(path, storage_url))
    rows = list(_batches(path, data))
    if json:
        for row in rows:
            print_json_line(row)
    else:
        print_table(
            _BATCH_COLUMNS,
            [{**row, "timestamp": format_time(row["timestamp"])} for row in rows],
        )
    faults = sum(bool(row["fault"]) for row in rows)
    if faults:
        raise CommandError(f"{counted(faults, 'batch')} with a wrong checksum")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


async def _get(key: str, url: str) -> bytes:
    from skylog.objects.keys import ObjectKey  # noqa: PLC0415 - not needed for --help
    from skylog.objects.store import NotFound  # noqa: PLC0415

    async with opened(StoreOptions(None, None, url)) as store:
        try:
            return await store.get(ObjectKey.parse(key))
        except NotFound:
            raise CommandError(
                f"{key} is not in the store; `skylog diskless files` lists what is"
            ) from None


def _batches(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    from skylog.diskless.layout import batches_of  # noqa: PLC0415 - not needed for --help

    try:
        found = batches_of(data)
    except KafkaError as error:
        raise CommandError(f"{path} is not a WAL object: {error.message}") from None
    for position, batch in found:
        yield _batch_row(position, batch)


def _batch_row(position: int, batch: Batch) -> dict[str, Any]:
    from skylog.wire.batch import Compression  # noqa: PLC0415

    return {
        "position": position,
        "size": batch.size,
        "records": batch.last_offset_delta + 1,
        "timestamp": batch.max_timestamp,
        "codec": Compression(batch.codec).name.lower(),
        "producer_id": batch.producer_id,
        "sequence": batch.base_sequence,
        "fault": None if batch.crc_ok() else "checksum",
    }
