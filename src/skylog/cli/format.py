"""``skylog format``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skylog.broker.assembly.translate import advertised_host
from skylog.cli.command_tree import examples, new_app
from skylog.cli.server import Config, Override
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import system_random
from skylog.kernel.settings import BrokerSettings, load_settings
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.config import CONTROLLER_LISTENER
from skylog.quorum.storage import FormatPlan, format_directory, new_cluster_id
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet, parse_servers

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
        str | None, typer.Option(help="Id of the cluster (default: a new one).")
    ] = None,
    ignore_formatted: Annotated[
        bool,
        typer.Option("--ignore-formatted", help="Skip directories that are already formatted."),
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            help="The initial voters, as id@host:port:directory-id,… (default: only this node)."
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool,
        typer.Option("--no-initial-controllers", help="For a node that joins an existing cluster."),
    ] = False,
) -> None:
    """Format the directories of a node, as kafka-storage format does.

    A single node is formatted on its first start. The nodes of a cluster share a cluster id.
    """
    settings = load_settings(config, os.environ, override or [])
    voters = initial_voters(settings, initial_controllers)
    if voters is not None and no_initial_controllers:
        raise ConfigError("--initial-controllers and --no-initial-controllers exclude each other")
    follows = bool(settings.quorum.voters) or not settings.node.is_controller
    joins = no_initial_controllers or follows
    format_node(settings, cluster_id, ignore_formatted=ignore_formatted, voters=voters, joins=joins)


def initial_voters(settings: BrokerSettings, text: str | None) -> VoterSet | None:
    """``id@host:port:directory-id`` of each voter; ConfigError for anything else."""
    if text is None:
        return None
    names = settings.listener_texts.controller_names
    listener, found = names[0] if names else CONTROLLER_LISTENER, []
    for entry in text.split(","):
        try:
            node_id, _, rest = entry.strip().partition("@")
            address, _, directory = rest.rpartition(":")
            endpoint = parse_servers([address], listener)[0]
            key = ReplicaKey(int(node_id), Uuid.parse(directory))
        except ValueError as error:
            raise ConfigError(
                f"--initial-controllers {entry}: {error}; allowed is id@host:port:directory-id"
            ) from error
        found.append(Voter(key, (endpoint,)))
    if len({voter.key.id for voter in found}) < len(found):
        raise ConfigError(f"--initial-controllers {text}: a node is named twice")
    return VoterSet(tuple(found))


def format_node(
    settings: BrokerSettings,
    cluster_id: str | None,
    *,
    ignore_formatted: bool,
    voters: VoterSet | None = None,
    joins: bool = False,
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
        voters,
        joins=joins and voters is None,
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
