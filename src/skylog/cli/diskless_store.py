"""The object store that ``skylog diskless`` reads, from the options or from a broker."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skylog.cli.errors import CommandError

if TYPE_CHECKING:
    from skylog.objects.store import ObjectStore

StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage-url",
        metavar="URL",
        help="The object store (default: that of the config or of the broker).",
    ),
]

ServerConfig = Annotated[
    Path | None,
    typer.Option(
        "--server-config",
        metavar="FILE",
        help="The brokers' server.properties, which name the object store.",
    ),
]

BrokersToo = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="SKYLOG_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Also ask these brokers (default: only the store is read).",
    ),
]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What the options say about the store."""

    config: Path | None
    override: list[str] | None
    url: str | None

    @property
    def given(self) -> bool:
        return bool(self.config or self.override or self.url)


@asynccontextmanager
async def opened(
    options: StoreOptions, broker_url: str | None = None
) -> AsyncIterator[ObjectStore]:
    """The store of the options, or that of the broker if they name none."""
    from skylog.broker.assembly.diskless_engine import storage_url_of  # noqa: PLC0415 - not needed for --help
    from skylog.kernel.settings import load_settings  # noqa: PLC0415
    from skylog.objects.open import open_store  # noqa: PLC0415

    given = [] if options.url is None else [f"diskless.storage.url={options.url}"]
    if broker_url is not None and not options.given:
        _check_reachable(broker_url)
        given = [f"diskless.storage.url={broker_url}"]
    settings = load_settings(options.config, os.environ, [*(options.override or []), *given])
    url = storage_url_of(settings)
    check_there(url)
    store = open_store(url, settings.storage)
    try:
        yield store
    finally:
        await store.close()


def check_there(url: str) -> None:
    """Opens the store without creating a directory: an empty one would look as if every object were
    lost."""
    from skylog.objects.open import parse_url  # noqa: PLC0415

    where = parse_url(url)
    if where.scheme == "file" and not Path(where.path).is_dir():
        raise CommandError(f"{where.path} is not a directory: the objects must be elsewhere")


def _check_reachable(url: str) -> None:
    from skylog.objects.open import parse_url  # noqa: PLC0415

    where = parse_url(url)
    if where.scheme == "memory":
        raise CommandError(
            "the broker keeps its objects in memory, which no other process can read"
        )
    if where.scheme == "file" and not Path(where.path).is_dir():
        raise CommandError(
            f"the broker's objects are in {where.path}, which is not on this machine: "
            "run this command where the broker runs, or give their location with --storage-url"
        )
