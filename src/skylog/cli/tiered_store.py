"""The store of remote segments, from the options or from what a broker says of itself."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skylog.cli.errors import CommandError
from skylog.client.admin import Admin
from skylog.client.admin.configs import ConfigResource, ConfigSource, ConfigType

if TYPE_CHECKING:
    from skylog.client.cluster import Cluster
    from skylog.kernel.settings import BrokerSettings
    from skylog.tiered.storage import ObjectRemoteStorage

StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage-url",
        metavar="URL",
        help="The store of remote segments, as tiered.storage.url (default: that of the config or "
        "of the broker).",
    ),
]
ServerConfig = Annotated[
    Path | None,
    typer.Option(
        "--server-config",
        metavar="FILE",
        help="The brokers' server.properties, which name the store and its credentials.",
    ),
]
_CLASS: Final = "remote.log.storage.manager.class.name"
_URL: Final = "tiered.storage.url"
_DISKLESS_URL: Final = "diskless.storage.url"
_STORE: Final = "diskless.storage."


@dataclass(frozen=True, slots=True)
class RemoteStoreOptions:
    """What the options say about the store."""

    config: Path | None
    override: list[str] | None
    url: str | None

    @property
    def given(self) -> bool:
        return bool(self.config or self.override or self.url)

    def settings(self, more: list[str] | None = None) -> BrokerSettings:
        from skylog.kernel.settings import load_settings  # noqa: PLC0415 - not needed for --help

        given = [] if self.url is None else [f"{_URL}={self.url}"]
        return load_settings(
            self.config, os.environ, [*(self.override or []), *given, *(more or [])]
        )


@asynccontextmanager
async def opened_remote(
    options: RemoteStoreOptions, cluster: Cluster | None = None
) -> AsyncIterator[ObjectRemoteStorage]:
    """The store of the options, or that of the cluster's brokers if they name none."""
    from skylog.kernel.system import real_system  # noqa: PLC0415 - not needed for --help
    from skylog.objects.open import parse_url  # noqa: PLC0415
    from skylog.tiered.configuration import (  # noqa: PLC0415
        open_remote_storage,
        remote_storage_config,
    )

    settings = options.settings()
    if not options.given and cluster is not None:
        settings = options.settings(await _of_broker(cluster))
    config = remote_storage_config(
        settings.tiered, settings.storage, settings.diskless.storage_url, settings.node.log_dirs[0]
    )
    where = parse_url(config.url)
    if where.scheme == "memory":
        raise CommandError("the brokers keep their objects in memory: no other process reads it")
    if where.scheme == "file":
        _check_directory(Path(where.path))
    cluster_id = None if cluster is None else cluster.metadata.cluster_id
    storage = open_remote_storage(config, real_system(), cluster_id)
    try:
        yield storage
    finally:
        await storage.close()


def _check_directory(path: Path) -> None:
    """One that is not there is not created: an empty store would look like a lost one."""
    if not path.is_dir():
        raise CommandError(
            f"{path} is not a directory on this machine: run this command where the broker runs, or"
            " say with --storage-url or --server-config where the objects are"
        )


async def _of_broker(cluster: Cluster) -> list[str]:
    """The settings of a broker that say where its objects are; secrets are not among them."""
    node = str(min(cluster.metadata.brokers))
    resource = ConfigResource(ConfigType.BROKER, node)
    answer = (await Admin(cluster).configs.describe([resource]))[resource]
    if isinstance(answer, Exception):
        raise answer
    told = {
        entry.name: entry.value
        for entry in answer
        if entry.value is not None and entry.source != ConfigSource.DEFAULT
    }
    if told.get(_CLASS) not in (None, "", "skylog"):
        raise CommandError(
            f"the brokers' store is configured by rsm.config.* of {told[_CLASS]}, which brokers do "
            "not tell: give their settings with --server-config"
        )
    found = {name: text for name, text in told.items() if name.startswith((_STORE, _URL))}
    if _URL not in found and _DISKLESS_URL not in found:
        about = await Admin(cluster).diskless.describe_any()
        # Beside the logs, and so is the directory of remote segments.
        objects = Path(about.storage_url.removeprefix("file://"))
        found["log.dirs"] = str(objects.parent)
    return [f"{name}={text}" for name, text in found.items()]
