"""``skylog format``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skylog.broker.translate import advertised_host
from skylog.cli.group import examples, new_app
from skylog.cli.server import Config, Override
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import system_random
from skylog.kernel.settings import BrokerSettings, load_settings
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.storage import FormatPlan, format_directory, new_cluster_id
from skylog.quorum.voters import Endpoint

app = new_app()


@app.command(
    "format",
    epilog=examples(
        "skylog format",
        "skylog format config/server.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg",
    ),
)
def format_(
    config: Config = None,
    override: Override = None,
    cluster_id: Annotated[
        str | None, typer.Option(help="Id of the cluster; a new one is drawn without.")
    ] = None,
    ignore_formatted: Annotated[
        bool,
        typer.Option(
            "--ignore-formatted", help="Leave directories alone that are formatted already."
        ),
    ] = False,
) -> None:
    """Format the directories of a node, as kafka-storage format --standalone does.

    `skylog server` does so on its first start; this is for choosing the cluster id beforehand.
    """
    settings = load_settings(config, os.environ, override or [])
    format_node(settings, cluster_id, ignore_formatted=ignore_formatted)


def format_node(
    settings: BrokerSettings, cluster_id: str | None, *, ignore_formatted: bool
) -> None:
    """Format every directory of the node; StorageError or ConfigError, and nothing is changed."""
    rng = system_random()
    if cluster_id is not None:
        try:
            Uuid.parse(cluster_id)
        except ValueError as error:
            raise ConfigError(
                f"--cluster-id {cluster_id}: {error}; allowed are 22 characters of URL-safe base64"
            ) from error
    first = (settings.controller_listeners or settings.listeners)[0]
    plan = FormatPlan(
        settings.node.node_id,
        cluster_id or new_cluster_id(rng),
        Endpoint(first.name, advertised_host(first), first.port),
        bootstrap_records(),
    )
    metadata_dir = settings.node.metadata_log_dir
    storage = format_directory(
        [Path(directory).absolute() for directory in settings.node.log_dirs],
        plan,
        rng,
        SystemClock().now_ms(),
        metadata_dir=Path(metadata_dir).absolute() if metadata_dir else None,
        ignore_formatted=ignore_formatted,
    )
    for directory in storage.directory_ids:
        sys.stdout.write(f"{directory} is formatted for cluster {storage.cluster_id}\n")
