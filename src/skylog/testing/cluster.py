"""A cluster in threads of this process: brokers and controllers that can be stopped and killed."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import SkylogError
from skylog.kernel.rng import random_uuid, system_random
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.storage import FormatPlan, format_directory, new_cluster_id
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet
from skylog.testing.threads import NodeThread

HOST: Final = "127.0.0.1"
CONTROLLER: Final = "CONTROLLER"
# Dedicated controllers have ids from here on; brokers count from 1.
FIRST_CONTROLLER_ID: Final = 101
# Settings with which a cluster starts, and detects failures, quickly.
DEFAULTS: Final[Mapping[str, str]] = {
    "http.listener": "",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}
_REPLICATED: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "diskless.metadata.topic.replication.factor",
)


class Port:
    """A port that is reserved as long as this object lives, whether a node listens on it or not."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        # Nodes bind it with the same option and share it; no other process gets it by chance.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((HOST, 0))
        self.number: int = self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        return f"{HOST}:{self.number}"


class ClusterNode(NodeThread):
    """One node; its addresses stay the same across stops, kills and starts."""

    def __init__(self, node_id: int, settings: Mapping[str, str], sockets: Sequence[Port]) -> None:
        self.failure: Exception | None = None
        super().__init__([f"{key}={value}" for key, value in settings.items()], self._failed)
        self.node_id = node_id
        self.directory = Path(settings["log.dirs"])
        self._held = list(sockets)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of its first listener."""
        return self._held[0].address

    def _failed(self, error: Exception) -> None:
        self.failure = error

    def close(self) -> None:
        """Stop, and release the addresses."""
        try:
            if self.running:
                self.stop()
        finally:
            for held in self._held:
                held.socket.close()


class Cluster:
    """``with Cluster() as c: … c.bootstrap``; without controllers, every broker is one too."""

    def __init__(
        self,
        brokers: int = 3,
        controllers: int = 1,
        racks: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        *,
        listener: str = "PLAINTEXT",
        static_voters: bool = False,
        directory: Path | None = None,
    ) -> None:
        """``racks`` are assigned to the brokers in turn; ``settings`` apply to every node.

        ``listener`` is the brokers' listener; ``static_voters`` are in the settings, not in the
        metadata log.
        """
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="skylog-")
        self.directory = directory or Path(self._temporary.name)  # type: ignore[union-attr]
        self.cluster_id = new_cluster_id(system_random())
        self._given = dict(settings or {})
        self._broker_count = brokers
        self._racks = racks
        self._listener = listener
        self._static = static_voters
        first = FIRST_CONTROLLER_ID
        ids = range(first, first + controllers) if controllers else range(1, brokers + 1)
        self._voter_ports = {node_id: Port() for node_id in ids}
        self._directory_ids = {node_id: random_uuid(system_random()) for node_id in ids}
        self.brokers = [self._broker(node_id) for node_id in range(1, brokers + 1)]
        self.controllers = [self._controller(node_id) for node_id in ids] if controllers else []

    @property
    def bootstrap(self) -> str:
        """For ``bootstrap.servers``."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def controller_servers(self) -> str:
        """For ``bootstrap.controllers`` and controller.quorum.bootstrap.servers."""
        return ",".join(port.address for port in self._voter_ports.values())

    def broker(self, node_id: int) -> ClusterNode:
        return next(each for each in self.brokers if each.node_id == node_id)

    @property
    def active_controller(self) -> ClusterNode | None:
        """The running node that leads the quorum, if any."""
        for each in (*self.controllers, *self.brokers):
            if each.running and each.node.leads:
                return each
        return None

    def add_broker(self, rack: str | None = None) -> ClusterNode:
        """Another broker, not yet started."""
        node_id = max(each.node_id for each in self.brokers) + 1
        added = self._broker(node_id, rack)
        self.brokers.append(added)
        return added

    def start(self) -> Self:
        """Start every node: controllers first; combined nodes concurrently, because they need
        each other."""
        try:
            for controller in self.controllers:
                controller.start()
            start_together(self.brokers)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all running nodes, brokers first."""
        failed: Exception | None = None
        for each in (*self.brokers, *self.controllers):
            try:
                each.close()
            except (SkylogError, OSError) as error:
                failed = error
        for port in self._voter_ports.values():
            port.socket.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        if failed is not None:
            raise failed

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- making nodes --------------------------------------------------------------------------

    def _broker(self, node_id: int, rack: str | None = None) -> ClusterNode:
        port = Port()
        listeners, roles = f"{self._listener}://{port.address}", "broker"
        if node_id in self._voter_ports:
            listeners += f",{CONTROLLER}://{self._voter_ports[node_id].address}"
            roles = "broker,controller"
        chosen: dict[str, str] = dict.fromkeys(_REPLICATED, str(min(3, self._broker_count)))
        if rack is not None or self._racks:
            chosen["broker.rack"] = rack or self._racks[(node_id - 1) % len(self._racks)]
        return self._node(node_id, roles, listeners, chosen, [port])

    def _controller(self, node_id: int) -> ClusterNode:
        port = self._voter_ports[node_id]
        return self._node(node_id, "controller", f"{CONTROLLER}://{port.address}", {}, [port])

    def _node(
        self,
        node_id: int,
        roles: str,
        listeners: str,
        chosen: Mapping[str, str],
        ports: Sequence[Port],
    ) -> ClusterNode:
        directory = self.directory / f"node-{node_id}"
        settings = {
            **DEFAULTS,
            "node.id": str(node_id),
            "process.roles": roles,
            "listeners": listeners,
            "controller.listener.names": CONTROLLER,
            **self._quorum(),
            "diskless.storage.url": (self.directory / "objects").as_uri(),
            **chosen,
            **self._given,
            "log.dirs": str(directory),
        }
        self._format(node_id, directory)
        return ClusterNode(node_id, settings, ports)

    def _quorum(self) -> dict[str, str]:
        if not self._static:
            return {"controller.quorum.bootstrap.servers": self.controller_servers}
        voters = (f"{node_id}@{port.address}" for node_id, port in self._voter_ports.items())
        return {"controller.quorum.voters": ",".join(voters)}

    def _format(self, node_id: int, directory: Path) -> None:
        votes = node_id in self._voter_ports and not self._static
        voters = [
            Voter(ReplicaKey(each, self._directory_ids[each]), (self._endpoint(each),))
            for each in self._voter_ports
        ]
        plan = FormatPlan(
            node_id,
            self.cluster_id,
            Endpoint(CONTROLLER, HOST, 0),
            bootstrap_records(),
            VoterSet(tuple(voters)) if votes else None,
            joins=not votes,
        )
        format_directory([directory], plan, system_random(), SystemClock().now_ms())

    def _endpoint(self, node_id: int) -> Endpoint:
        return Endpoint(CONTROLLER, HOST, self._voter_ports[node_id].number)


def start_together(nodes: Sequence[ClusterNode]) -> None:
    """Start nodes concurrently; the first failure is raised when all are done."""
    failures: list[BaseException] = []

    def start(node: ClusterNode) -> None:
        try:
            node.start()
        except BaseException as error:  # noqa: BLE001 - raised below, in the caller's thread
            failures.append(error)

    starters = [threading.Thread(target=start, args=(node,)) for node in nodes]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    if failures:
        raise failures[0]
