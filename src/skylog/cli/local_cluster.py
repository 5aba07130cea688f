"""A cluster of processes on this machine, in one directory: for evaluation and tests.

``cluster.json`` lists the nodes and their addresses; each node has its settings, data, output and
process id in files named after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from skylog.cli.errors import CommandError
from skylog.kernel.clock import SystemClock
from skylog.kernel.rng import random_uuid, shuffled, system_random
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.storage import FormatPlan, format_directory, new_cluster_id
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet

HOST: Final = "127.0.0.1"
CONTROLLER: Final = "CONTROLLER"
# Dedicated controllers have ids from here on; brokers count from 1.
FIRST_CONTROLLER_ID: Final = 101
FILE_NAME: Final = "cluster.json"
# Below the ephemeral ports, or a restarted node might find its port taken by an outgoing
# connection.
_PORTS: Final = range(20_000, 32_000)
_MAIN: Final = "from skylog.cli.main import main; main()"
_POLL_SECONDS: Final = 0.05
_LOG_TAIL_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One process of the cluster."""

    id: int
    role: str
    port: int
    rack: str | None = None
    controller_port: int = 0
    host: str = HOST

    @property
    def is_broker(self) -> bool:
        return "broker" in self.role

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def controller_address(self) -> str:
        return f"{self.host}:{self.controller_port}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``up`` creates in an empty directory."""

    brokers: int = 3
    controllers: int = 1
    racks: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    # Listen addresses of nodes, if not all of them use the loopback address.
    hosts: tuple[str, ...] = ()


class LocalCluster:
    """The cluster of a directory."""

    def __init__(self, directory: Path, cluster_id: str, nodes: Sequence[LocalNode]) -> None:
        self.directory = directory
        self.cluster_id = cluster_id
        self.nodes = list(nodes)

    @classmethod
    def load(cls, directory: Path) -> Self:
        try:
            found = json.loads((directory / FILE_NAME).read_text())
            nodes = [LocalNode(**each) for each in found["nodes"]]
            return cls(directory, found["cluster_id"], nodes)
        except FileNotFoundError:
            raise CommandError(
                f"there is no cluster in {directory}; `skylog cluster up` creates one"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{directory / FILE_NAME} cannot be used: {error}") from error

    @classmethod
    def create(cls, directory: Path, plan: Plan) -> Self:
        """Choose ids and ports, write every node's settings, format every directory."""
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise CommandError(
                f"{directory} is not empty and has no cluster; choose another directory"
            )
        cluster = cls(directory.absolute(), new_cluster_id(system_random()), _nodes(plan))
        cluster._format()
        for node in cluster.nodes:
            text = "".join(
                f"{key}={value}\n" for key, value in cluster.settings(node, plan).items()
            )
            cluster.file(node, "properties").write_text(text)
        told = {"cluster_id": cluster.cluster_id, "nodes": [asdict(each) for each in cluster.nodes]}
        (directory / FILE_NAME).write_text(json.dumps(told, indent=2) + "\n")
        return cluster

    # -- looking -------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes if node.is_broker)

    @property
    def controllers(self) -> list[LocalNode]:
        return [node for node in self.nodes if node.controller_port]

    def node(self, node_id: int) -> LocalNode:
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(str(node.id) for node in self.nodes)
        raise CommandError(f"there is no node {node_id}; there are {known}")

    def file(self, node: LocalNode, kind: str) -> Path:
        return self.directory / f"node-{node.id}.{kind}"

    def pid(self, node: LocalNode) -> int | None:
        """The process of a node, if it is alive and still the one that was started."""
        try:
            pid = int(self.file(node, "pid").read_text())
            os.kill(pid, 0)
        except (OSError, ValueError):
            return None
        return pid if self._is_ours(pid, node) else None

    def _is_ours(self, pid: int, node: LocalNode) -> bool:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except FileNotFoundError:
            return not Path("/proc/self").exists()  # not Linux: the id must suffice
        except OSError:
            return False
        if not command:
            # A process has no command line yet just after its start, and none any more after its
            # end.
            return state not in (b"Z", b"X")
        return str(self.file(node, "properties")).encode() in command.split(b"\0")

    # -- doing ---------------------------------------------------------------------------------

    def start(self, node: LocalNode) -> None:
        """Start a node's process, which outlives this one."""
        if self.pid(node) is not None:
            return
        log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        command = self.command(node)
        pid = os.posix_spawnp(  # in its own session
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.file(node, "log")), log, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        self.file(node, "pid").write_text(str(pid))

    def command(self, node: LocalNode) -> list[str]:
        """The command line of this program."""
        return [sys.executable, "-c", _MAIN, "server", str(self.file(node, "properties"))]

    def send(self, node: LocalNode, number: signal.Signals) -> None:
        pid = self.pid(node)
        if pid is None:
            raise CommandError(f"node {node.id} is not running")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def wait_gone(self, nodes: Sequence[LocalNode], seconds_max: float) -> list[LocalNode]:
        """Wait for processes to exit; returns those that are still running after the time-out."""
        end = time.monotonic() + seconds_max
        left = [node for node in nodes if self._lives(node)]
        while left and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
            left = [node for node in left if self._lives(node)]
        return left

    def _lives(self, node: LocalNode) -> bool:
        pid = self.pid(node)
        if pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # reap it if it is our child
        return self.pid(node) is not None

    def last_words(self, node: LocalNode) -> str:
        """The last lines of a node's output."""
        try:
            data = self.file(node, "log").read_bytes()
        except OSError:
            return ""
        return data[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()

    # -- making --------------------------------------------------------------------------------

    def settings(self, node: LocalNode, plan: Plan) -> dict[str, str]:
        listeners = [f"{CONTROLLER}://{node.controller_address}"] if node.controller_port else []
        if node.is_broker:
            listeners.insert(0, f"PLAINTEXT://{node.address}")
        replicas = str(min(3, plan.brokers))
        servers = ",".join(each.controller_address for each in self.controllers)
        found = {
            "process.roles": node.role,
            "node.id": str(node.id),
            "listeners": ",".join(listeners),
            "controller.listener.names": CONTROLLER,
            "controller.quorum.bootstrap.servers": servers,
            "log.dirs": str(self.directory / f"node-{node.id}"),
            "http.listener": f"{HOST}:0",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, plan.brokers)),
            "diskless.metadata.topic.replication.factor": replicas,
            "diskless.metadata.topic.min.isr": str(min(2, plan.brokers)),
            "diskless.storage.url": f"file://{self.directory}/objects",
        }
        if node.rack is not None:
            found["broker.rack"] = node.rack
        return {**found, **(plan.settings or {})}

    def _format(self) -> None:
        rng, now_ms = system_random(), SystemClock().now_ms()
        voters = VoterSet(
            tuple(
                Voter(
                    ReplicaKey(node.id, random_uuid(rng)),
                    (Endpoint(CONTROLLER, node.host, node.controller_port),),
                )
                for node in self.controllers
            )
        )
        for node in self.nodes:
            votes = bool(node.controller_port)
            plan = FormatPlan(
                node.id,
                self.cluster_id,
                Endpoint(CONTROLLER, node.host, node.controller_port),
                bootstrap_records(),
                voters if votes else None,
                joins=not votes,
            )
            format_directory([self.directory / f"node-{node.id}"], plan, rng, now_ms)


def _nodes(plan: Plan) -> list[LocalNode]:
    """Without dedicated controllers, brokers are controllers too: all of them, or three."""
    combined = min(plan.brokers, 3) if not plan.controllers else 0
    ports = iter(_free_ports(plan.brokers + combined + plan.controllers))
    nodes: list[LocalNode] = []
    for number in range(plan.brokers):
        both: dict[str, Any] = {"role": "broker"}
        port = next(ports)
        if number < combined:
            both = {"role": "broker,controller", "controller_port": next(ports)}
        rack = plan.racks[number % len(plan.racks)] if plan.racks else None
        nodes.append(LocalNode(number + 1, port=port, rack=rack, **both))
    for number in range(plan.controllers):
        port = next(ports)
        node_id = FIRST_CONTROLLER_ID + number
        nodes.append(LocalNode(node_id, "controller", port, controller_port=port))
    hosts = plan.hosts or (HOST,) * len(nodes)
    return [replace(node, host=host) for node, host in zip(nodes, hosts, strict=True)]


def _free_ports(count: int) -> list[int]:
    """All are bound at the same time, so that they differ."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in shuffled(_PORTS, system_random()):
            if len(found) == count:
                break
            bound = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # taken
                bound.bind((HOST, port))
                found.append(port)
    if len(found) < count:
        raise CommandError(
            f"{count} ports are needed; only {len(found)} are free from {_PORTS[0]} to {_PORTS[-1]}"
        )
    return found
