"""``skylog cluster up``, ``down``, ``kill`` and ``status``: a cluster on this machine."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from skylog.cli.errors import CommandError
from skylog.cli.local_cluster import FILE_NAME, LocalCluster, LocalNode, Plan
from skylog.cli.options import Json, parse_pairs
from skylog.cli.output import print_json, print_table, say
from skylog.client.cluster import Cluster
from skylog.client.settings import ClientSettings, parse_bootstrap
from skylog.kernel.errors import KafkaError
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_cluster_response import DescribeClusterResponse

Directory = Annotated[
    Path, typer.Option("--dir", metavar="DIRECTORY", help="The directory of the cluster.")
]
DEFAULT_DIRECTORY: Final = Path("skylog-cluster")
UP_SECONDS_MAX: Final = 120
DOWN_SECONDS_MAX: Final = 60
_SIGNALS: Final = ("KILL", "TERM", "STOP", "CONT")
_COLUMNS: Final = {
    "id": "Node",
    "role": "Role",
    "address": "Address",
    "rack": "Rack",
    "pid": "Process",
    "state": "State",
}


def up(
    brokers: Annotated[int, typer.Option(min=1, max=100, help="Number of brokers.")] = 3,
    racks: Annotated[str, typer.Option(help="Racks a,b,c, assigned to the brokers in turn.")] = "",
    controllers: Annotated[
        int,
        typer.Option(
            min=0,
            max=9,
            help="Number of dedicated controllers; with 0, brokers are also controllers.",
        ),
    ] = 1,
    directory: Directory = DEFAULT_DIRECTORY,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="NAME=VALUE", help="A setting for all nodes."),
    ] = None,
) -> None:
    """Start a cluster on this machine, on free ports; nodes that are down are started again.

    The processes run until `skylog cluster down`.
    """
    if (directory / FILE_NAME).exists():
        cluster = LocalCluster.load(directory.absolute())
        say(f"starting the existing cluster in {directory}")
    else:
        named = tuple(filter(None, map(str.strip, racks.split(","))))
        settings = parse_pairs(override or [], "--override")
        cluster = LocalCluster.create(directory, Plan(brokers, controllers, named, settings))
    for node in (*cluster.controllers, *cluster.nodes):
        cluster.start(node)
    _wait_up(cluster)
    print(f"cluster {cluster.cluster_id} is up; bootstrap.servers={cluster.bootstrap}")
    say(f"SKYLOG_BOOTSTRAP={cluster.bootstrap} makes other commands use it")


def _wait_up(cluster: LocalCluster) -> None:
    end = time.monotonic() + UP_SECONDS_MAX
    wanted = {node.id for node in cluster.nodes if node.is_broker}
    while True:
        for node in cluster.nodes:
            if cluster.pid(node) is None:
                said = cluster.last_words(node).splitlines()
                raise CommandError(
                    f"node {node.id} did not start: {said[-1] if said else 'no output'} "
                    f"({cluster.file(node, 'log')} has more)"
                )
        if asyncio.run(_serving(cluster)) >= wanted:
            return
        if time.monotonic() > end:
            raise CommandError(
                f"the cluster did not start within {UP_SECONDS_MAX} s; see "
                f"{cluster.directory}/node-*.log"
            )
        time.sleep(0.1)


async def _serving(cluster: LocalCluster) -> set[int]:
    """The brokers that answer and are unfenced."""
    brokers = [node for node in cluster.nodes if node.is_broker]
    answers = await asyncio.gather(*(_serves(node) for node in brokers))
    return {node.id for node, serves in zip(brokers, answers, strict=True) if serves}


async def _serves(node: LocalNode) -> bool:
    address = parse_bootstrap(node.address)
    client = Cluster(ClientSettings(address, connect_timeout_ms=1000, request_timeout_ms=1000))
    try:
        connection = await client.any_node()
        found: DescribeClusterResponse = await connection.request(DescribeClusterRequest())
    except KafkaError:
        return False
    else:
        return node.id in {broker.broker_id for broker in found.brokers}
    finally:
        await client.close()


def down(
    directory: Directory = DEFAULT_DIRECTORY,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the cluster with all its data.")
    ] = False,
) -> None:
    """Stop the cluster: first the brokers, which hand over partitions, then the controllers."""
    cluster = LocalCluster.load(directory.absolute())
    brokers = [node for node in cluster.nodes if node.is_broker]
    for nodes in (brokers, [node for node in cluster.nodes if not node.is_broker]):
        for node in nodes:
            if cluster.pid(node) is not None:
                # A process stopped by SIGSTOP cannot exit before it is continued.
                cluster.send(node, signal.SIGCONT)
                cluster.send(node, signal.SIGTERM)
        left = cluster.wait_gone(nodes, DOWN_SECONDS_MAX)
        for node in left:
            say(f"node {node.id} did not exit within {DOWN_SECONDS_MAX} s; killing it")
            cluster.send(node, signal.SIGKILL)
        cluster.wait_gone(left, DOWN_SECONDS_MAX)
    if delete:
        shutil.rmtree(cluster.directory)
    print(f"cluster {cluster.cluster_id} is down")


def kill(
    node_id: Annotated[int, typer.Argument(metavar="NODE", help="The node's id.")],
    directory: Directory = DEFAULT_DIRECTORY,
    with_signal: Annotated[
        str,
        typer.Option(
            "--signal",
            help="KILL: at once; TERM: clean shutdown; STOP: pause; CONT: resume.",
        ),
    ] = "KILL",
) -> None:
    """Send a signal to a node: SIGKILL by default. `up` restarts it."""
    name = with_signal.upper().removeprefix("SIG")
    if name not in _SIGNALS:
        raise CommandError(f"--signal {with_signal}: allowed are {', '.join(_SIGNALS)}")
    cluster = LocalCluster.load(directory.absolute())
    node = cluster.node(node_id)
    cluster.send(node, signal.Signals[f"SIG{name}"])
    if name in ("KILL", "TERM"):
        cluster.wait_gone([node], DOWN_SECONDS_MAX)
    print(f"node {node_id} got SIG{name}")


def status(directory: Directory = DEFAULT_DIRECTORY, json: Json = False) -> None:
    """Show the nodes of the cluster on this machine, and which of them serve."""
    cluster = LocalCluster.load(directory.absolute())
    serving = asyncio.run(_serving(cluster))
    rows = [_row(cluster, node, serving) for node in cluster.nodes]
    if json:
        told = {"cluster_id": cluster.cluster_id, "bootstrap": cluster.bootstrap, "nodes": rows}
        print_json(told)
        return
    print(f"cluster {cluster.cluster_id} in {directory}; bootstrap.servers={cluster.bootstrap}")
    print_table(_COLUMNS, rows)


def _row(cluster: LocalCluster, node: LocalNode, serving: set[int]) -> dict[str, Any]:
    pid = cluster.pid(node)
    running = "serving" if node.id in serving or not node.is_broker else "fenced"
    return {
        "id": node.id,
        "role": node.role,
        "address": node.address,
        "rack": node.rack,
        "pid": pid,
        "state": "down" if pid is None else running,
    }
