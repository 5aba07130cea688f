"""``skylog diskless``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.bulk.files import Pair, Verdict, judged
from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call
from skylog.cli.diskless_describe import batches, coordinators, keys_of
from skylog.cli.diskless_dump import dump_wal
from skylog.cli.diskless_store import (
    BrokersToo,
    ServerConfig,
    StorageUrl,
    StoreOptions,
    opened,
)
from skylog.cli.diskless_topic import describe
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import ClientConfig, Json, Yes
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.cli.server import Override
from skylog.cli.times import format_age, format_time
from skylog.client.admin import Admin
from skylog.client.cluster import Cluster
from skylog.kernel.clock import SystemClock

if TYPE_CHECKING:
    from skylog.objects.holds import Hold
    from skylog.objects.store import ObjectStore
    from skylog.wire.messages.describe_diskless_coordinators_response import (
        DescribeDisklessCoordinatorsResponse,
    )

app = new_app(group=True)
app.command(
    "coordinators",
    epilog=examples(
        "skylog diskless coordinators", "skylog diskless coordinators -b broker1:9092 --json"
    ),
)(coordinators)
app.command(
    "describe",
    epilog=examples("skylog diskless describe orders", "skylog diskless describe orders --json"),
)(describe)
app.command(
    "batches",
    epilog=examples(
        "skylog diskless batches orders", "skylog diskless batches orders -p 3 --from 1000 -n 20"
    ),
)(batches)
app.command(
    "dump-wal",
    epilog=examples(
        "skylog diskless dump-wal objects/wal/7f/018bcf…7f",
        "skylog diskless dump-wal wal/7f/018bcf…7f --storage-url s3://bucket/prefix",
    ),
)(dump_wal)

_OBJECT_COLUMNS: Final = {"key": "KEY", "size": "SIZE", "created": "CREATED"}
_FILE_COLUMNS: Final = {
    **_OBJECT_COLUMNS,
    "state": "STATE",
    "live_batches": "BATCHES",
    "live_bytes": "LIVE BYTES",
    "owners": "OWNERS",
    "marked": "MARKED",
    "note": "NOTE",
}
_ORPHAN_COLUMNS: Final = {
    **_OBJECT_COLUMNS,
    "age": "AGE",
    "state": "STATE",
    "deleted_by_next_scan": "NEXT SCAN DELETES",
}
_UNKNOWN: Final = (Verdict.RECENT, Verdict.HELD, Verdict.KEPT, Verdict.ORPHAN)


class Kind(StrEnum):
    """The kinds of objects."""

    WAL = "wal"
    STAGING = "staging"
    BACKUP = "backup"


@app.command(
    epilog=examples(
        "skylog diskless files --storage-url file:///mnt/objects",
        "skylog diskless files --bootstrap broker1:9092",
        "skylog diskless files orders",
        "skylog diskless files --server-config config/server.properties --kind backup --json",
    )
)
def files(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]", help="Only objects with records of this topic; asks the brokers."
        ),
    ] = None,
    server_config: ServerConfig = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    bootstrap: BrokersToo = None,
    client_config: ClientConfig = None,
    kind: Annotated[Kind, typer.Option(help="Which objects.")] = Kind.WAL,
    max_: Annotated[int, typer.Option("--max", "-n", min=1, help="Show at most this many.")] = 1000,
    json: Json = False,
) -> None:
    """List the objects in the store; with TOPIC or --bootstrap, compare them with the
    coordinators' files.

    live: has records. waiting: has none, deleted after the grace period. missing: known, but not in
    the store. gone: the same, but without records. staged: not yet committed by a bulk writer.
    recent, held, kept, orphan: unknown to all coordinators, see `skylog diskless orphans`.
    """
    options = StoreOptions(server_config, override, storage_url)
    if topic is not None and kind is Kind.BACKUP:
        raise typer.BadParameter("a backup is of all topics", param_hint="TOPIC")
    if topic is not None and Path(topic).is_file():
        raise CommandError(
            f"{topic} is a file, not a topic: give the brokers' settings with --server-config"
        )
    asks = topic is not None or bootstrap is not None or client_config is not None
    if not asks or kind is Kind.BACKUP:
        _print_objects(asyncio.run(_objects(options, kind, max_)), _OBJECT_COLUMNS, json=json)
        return

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        keys = None if topic is None else await keys_of(cluster, topic)
        async with _opened_for(cluster, options) as (store, about):
            async for pair, verdict in judged(store, cluster, f"{kind.value}/", about):
                if keys is not None and pair.key not in keys:
                    continue
                if len(rows) == max_:
                    say(f"only the first {max_} are shown, see --max")
                    break
                rows.append(_file_row(pair, verdict))
        return rows

    _print_objects(call(work, bootstrap, client_config), _FILE_COLUMNS, json=json)


async def _objects(options: StoreOptions, kind: Kind, max_: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    async with opened(options) as store:
        async for info in store.list(f"{kind.value}/"):
            if len(rows) == max_:
                say(f"only the first {max_} are shown, see --max")
                break
            rows.append(_object_row(Pair(info, None)))
    return rows


@app.command(
    epilog=examples(
        "skylog diskless orphans --bootstrap broker1:9092",
        "skylog diskless orphans --storage-url s3://bucket/prefix",
        "skylog diskless orphans --storage-url s3://bucket/prefix --release",
    )
)
def orphans(
    server_config: ServerConfig = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    bootstrap: BrokersToo = None,
    client_config: ClientConfig = None,
    release: Annotated[
        bool,
        typer.Option("--release", help="Release held objects, so that brokers may delete them."),
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """List objects that no coordinator knows, and files whose objects are not in the store.

    \b
    orphan   deleted by the next orphan scan
    recent   too young to be deleted
    held     kept since a restore, until --release
    kept     objects of this kind are never scanned
    missing  known, but not in the store: its records are lost, and the exit code is 1

    Without --bootstrap, list the objects held since a restore, whether a coordinator knows them or
    not. Once you are sure that the unknown ones are not needed, --release hands them to the
    brokers' orphan scan, which deletes only objects that no coordinator knows.
    """
    options = StoreOptions(server_config, override, storage_url)
    if bootstrap is None and client_config is None:
        holds, rows = asyncio.run(_held(options))
        _print_objects(rows, _OBJECT_COLUMNS, json=json)
        say("only brokers know which objects are orphans: name one with --bootstrap")
    else:
        url, holds, rows = call(lambda c: _unmatched(c, options), bootstrap, client_config)
        options = options if options.given else StoreOptions(None, None, url)
        _print_objects(rows, _ORPHAN_COLUMNS, json=json)
    spans = ", ".join(f"{format_time(h.from_ms)} to {format_time(h.until_ms)}" for h in holds)
    say(f"held: objects created {spans}" if holds else "nothing is held")
    missing = [row["key"] for row in rows if row.get("state") == Verdict.MISSING.value]
    if missing:
        raise CommandError(
            f"{counted(len(missing), 'object')} with live records not in the store: restore "
            f"{'it' if len(missing) == 1 else 'them'} from a copy of the bucket, first {missing[0]}"
        )
    if release and holds:
        confirm(f"End {counted(len(holds), 'hold')}?", yes=yes)
        asyncio.run(_release(options))
        say("released: the next scan deletes objects that no coordinator knows")


async def _held(options: StoreOptions) -> tuple[list[Hold], list[dict[str, Any]]]:
    from skylog.objects.holds import read_holds  # noqa: PLC0415

    async with opened(options) as store:
        holds = await read_holds(store)
        if not holds:
            return holds, []
        rows = [
            _object_row(Pair(info, None))
            async for info in store.list("wal/")
            if any(hold.covers(info.key.created_ms or 0) for hold in holds)
        ]
        return holds, rows


async def _unmatched(
    cluster: Cluster, options: StoreOptions
) -> tuple[str, list[Hold], list[dict[str, Any]]]:
    from skylog.objects.holds import read_holds  # noqa: PLC0415

    shown = (*_UNKNOWN, Verdict.MISSING)
    now_ms = SystemClock().now_ms()
    async with _opened_for(cluster, options) as (store, about):
        rows = [
            _orphan_row(pair, verdict, now_ms)
            async for pair, verdict in judged(store, cluster, "wal/", about)
            if verdict in shown
        ]
        return about.storage_url, await read_holds(store), rows


async def _release(options: StoreOptions) -> None:
    from skylog.objects.holds import release_holds  # noqa: PLC0415

    async with opened(options) as store:
        await release_holds(store)


@asynccontextmanager
async def _opened_for(
    cluster: Cluster, options: StoreOptions
) -> AsyncIterator[tuple[ObjectStore, DescribeDisklessCoordinatorsResponse]]:
    """The store of a cluster, and the files that its coordinators know."""
    about = await Admin(cluster).diskless.describe_any()
    if not about.has_all_coordinators:
        say("some coordinators are on other brokers: they may know objects that are unknown here")
    async with opened(options, about.storage_url) as store:
        yield store, about


def _object_row(pair: Pair) -> dict[str, Any]:
    info, file = pair.object, pair.file
    created_ms = pair.created_ms
    if created_ms is None and info is not None:
        created_ms = info.modified_ms
    size = info.size if info is not None else file.size if file is not None else None
    return {"key": pair.key, "size": size, "created": created_ms}


def _file_row(pair: Pair, verdict: Verdict) -> dict[str, Any]:
    row = {**_object_row(pair), "state": verdict.value}
    file = pair.file
    if file is None:
        return row
    note = f"size differs: {file.size} bytes were committed" if pair.size_differs else None
    return {
        **row,
        "live_batches": file.live_batches,
        "live_bytes": file.live_bytes,
        "owners": list(file.owner_ids),
        "marked": file.marked_timestamp_ms if file.marked_timestamp_ms >= 0 else None,
        "note": note,
    }


def _orphan_row(pair: Pair, verdict: Verdict, now_ms: int) -> dict[str, Any]:
    row = _object_row(pair)
    return {
        **row,
        "age_ms": now_ms - row["created"] if row["created"] is not None else None,
        "state": verdict.value,
        "deleted_by_next_scan": verdict is Verdict.ORPHAN,
    }


def _print_objects(rows: list[dict[str, Any]], columns: dict[str, str], *, json: bool) -> None:
    if json:
        print_json(rows)
    else:
        print_table(columns, [_shown(row) for row in rows])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Replaces timestamps by readable times."""
    times = {
        name: format_time(row[name]) for name in ("created", "marked") if row.get(name) is not None
    }
    age_ms = row.get("age_ms")
    return {**row, **times, "age": None if age_ms is None else format_age(age_ms)}
