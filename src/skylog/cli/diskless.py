"""``skylog diskless``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skylog.cli.errors import CommandError, counted
from skylog.cli.group import examples, new_app
from skylog.cli.options import Json, Yes
from skylog.cli.output import confirm, print_json, print_json_line, print_table, say
from skylog.cli.server import Config, Override
from skylog.cli.times import format_time
from skylog.kernel.errors import KafkaError

if TYPE_CHECKING:
    from skylog.diskless.files.holds import Hold
    from skylog.objects.store import ObjectInfo, ObjectStore
    from skylog.wire.batch import Batch

app = new_app(group=True)

StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage-url", metavar="URL", help="The object store; that of the config without."
    ),
]
_BATCH_COLUMNS = {
    "position": "POSITION",
    "size": "SIZE",
    "records": "RECORDS",
    "timestamp": "TIMESTAMP",
    "codec": "CODEC",
    "producer_id": "PRODUCER",
    "sequence": "SEQUENCE",
    "fault": "FAULT",
}
_OBJECT_COLUMNS = {"key": "KEY", "size": "SIZE", "created": "CREATED"}


@app.command("dump-wal", epilog=examples("skylog diskless dump-wal objects/wal/7f/018bcf…7f"))
def dump_wal(
    path: Annotated[Path, typer.Argument(help="A WAL object that was downloaded, or in a store.")],
    json: Json = False,
) -> None:
    """Show the batches of a WAL object.

    Which partitions and offsets they have is known to the coordinators only. Checksums are
    verified; the exit code is 1 if anything is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
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


def _batches(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    from skylog.diskless.layout import batches_of  # noqa: PLC0415 - not needed for --help

    try:
        found = batches_of(data)
    except KafkaError as error:
        raise CommandError(f"{path} is no WAL object: {error.message}") from None
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


@app.command(
    epilog=examples(
        "skylog diskless files --storage-url file:///mnt/objects",
        "skylog diskless files config/server.properties --kind backup --json",
    )
)
def files(
    config: Config = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    kind: Annotated[str, typer.Option(help="wal, staging or backup.")] = "wal",
    max_: Annotated[int, typer.Option("--max", "-n", min=1, help="Show so many.")] = 1000,
    json: Json = False,
) -> None:
    """List the objects in the store."""

    async def work() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        async with _opened(config, override, storage_url) as store:
            async for info in store.list(f"{kind}/"):
                if len(rows) == max_:
                    say(f"only the first {max_} are shown, see --max")
                    break
                rows.append(_object_row(info))
        return rows

    _print_objects(asyncio.run(work()), json=json)


@app.command(
    epilog=examples(
        "skylog diskless orphans --storage-url s3://bucket/prefix",
        "skylog diskless orphans --storage-url s3://bucket/prefix --release",
    )
)
def orphans(
    config: Config = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    release: Annotated[
        bool, typer.Option("--release", help="End the holds: brokers may delete what is held.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """List the objects that a restore keeps from being deleted as orphans.

    After a restore, objects from around and after the backup are held, whether a coordinator knows
    them or not. Once it is clear that what nobody knows is not needed, --release hands it to the
    brokers' scan for orphans, which deletes only what no coordinator knows.
    """
    holds, rows = asyncio.run(_held(config, override, storage_url))
    _print_objects(rows, json=json)
    spans = ", ".join(f"{format_time(h.from_ms)} to {format_time(h.until_ms)}" for h in holds)
    say(f"held: objects created {spans}" if holds else "nothing is held")
    if release and holds:
        confirm(f"End {counted(len(holds), 'hold')}?", yes=yes)
        asyncio.run(_release(config, override, storage_url))


async def _held(
    config: Path | None, override: list[str] | None, url: str | None
) -> tuple[list[Hold], list[dict[str, Any]]]:
    from skylog.diskless.files.holds import read_holds  # noqa: PLC0415

    async with _opened(config, override, url) as store:
        holds = await read_holds(store)
        if not holds:
            return holds, []
        rows = [
            _object_row(info)
            async for info in store.list("wal/")
            if any(hold.covers(info.key.created_ms or 0) for hold in holds)
        ]
        return holds, rows


async def _release(config: Path | None, override: list[str] | None, url: str | None) -> None:
    from skylog.diskless.files.holds import release_holds  # noqa: PLC0415

    async with _opened(config, override, url) as store:
        await release_holds(store)


@asynccontextmanager
async def _opened(
    config: Path | None, override: list[str] | None, url: str | None
) -> AsyncIterator[ObjectStore]:
    from skylog.broker.diskless import storage_url_of  # noqa: PLC0415
    from skylog.kernel.settings import load_settings  # noqa: PLC0415
    from skylog.objects.open import open_store  # noqa: PLC0415

    given = [f"diskless.storage.url={url}"] if url is not None else []
    settings = load_settings(config, os.environ, [*(override or []), *given])
    store = open_store(storage_url_of(settings), settings.storage)
    try:
        yield store
    finally:
        await store.close()


def _object_row(info: ObjectInfo) -> dict[str, Any]:
    created_ms = info.key.created_ms
    return {
        "key": info.key.text,
        "size": info.size,
        "created": info.modified_ms if created_ms is None else created_ms,
    }


def _print_objects(rows: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        print_json(rows)
    else:
        shown = [{**row, "created": format_time(row["created"])} for row in rows]
        print_table(_OBJECT_COLUMNS, shown)
