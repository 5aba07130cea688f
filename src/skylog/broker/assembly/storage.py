"""A node's directories: formatted beforehand, or on the first start of a single node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skylog.broker.assembly.translate import advertised_host
from skylog.quorum.storage import NodeStorage, format_if_new, load_directory
from skylog.quorum.voters import Endpoint, parse_servers, parse_voters

if TYPE_CHECKING:
    from collections.abc import Callable

    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.system import System


def directories(settings: BrokerSettings) -> list[Path]:
    return [Path(directory).absolute() for directory in settings.node.log_dirs]


def open_storage(
    settings: BrokerSettings, port_of: Callable[[str], int], system: System
) -> NodeStorage:
    """Open the directories. Only a single node may generate the cluster id: all others must have
    been formatted with it."""
    node_id, named = settings.node.node_id, settings.node.metadata_log_dir
    metadata_dir = Path(named).absolute() if named else None
    combined = settings.node.is_broker and settings.node.is_controller
    first = (settings.controller_listeners or settings.listeners)[0]
    endpoint = Endpoint(first.name, advertised_host(first), port_of(first.name))
    if not combined or _others(settings, endpoint):
        return load_directory(directories(settings), node_id, metadata_dir=metadata_dir)
    return format_if_new(
        directories(settings),
        node_id,
        endpoint,
        system.rng,
        system.clock.now_ms(),
        metadata_dir=metadata_dir,
    )


def _others(settings: BrokerSettings, own: Endpoint) -> bool:
    """Whether the settings name other controllers."""
    voters = parse_voters(settings.quorum.voters, own.listener)
    servers = parse_servers(settings.quorum.bootstrap_servers, own.listener)
    strangers = any(voter.key.id != settings.node.node_id for voter in voters.voters)
    return strangers or any(server.port != own.port for server in servers)
