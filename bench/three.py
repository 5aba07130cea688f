"""Three nodes on this machine, each broker and controller, for skylog and Apache Kafka alike.

Voters are static. Brokers talk to each other over a separate listener, so that the kernel can count
the bytes between them, on both sides in the same way.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient

from bench.clusters import Cluster, Kafka, Skylog, free_ports
from bench.measure import Usage, usage
from skylog.client import cluster as skylog_client
from skylog.client.settings import Address, ClientSettings
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.describe_quorum_response import DescribeQuorumResponse

NODES = 3
RACKS = ("a", "b", "c")
HOST = "127.0.0.1"
WAIT_SECONDS_MAX = 120.0
SAMPLE_SECONDS = 0.5
# The defaults for a cluster, which shipped configurations reduce for a single node.
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
DISKLESS_REPLICATED = {
    "diskless.metadata.topic.num.partitions": "12",
    "diskless.metadata.topic.replication.factor": "3",
    "diskless.metadata.topic.min.isr": "2",
}
_SOCKET = re.compile(r"^\S+ +\d+ +\d+ +(\S+) +(\S+) ")
_BYTES = re.compile(r"\bbytes_(?:acked|received):(\d+)")


def wait_until(what: str, true: Callable[[], bool], seconds_max: float = WAIT_SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds_max
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds_max:.0f} s: {what}")
        time.sleep(0.05)


class Three:
    """Three nodes; ``with`` starts them together, stops them and removes their data."""

    def __init__(
        self, side: str, classpath: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self.side = side
        self._directory = Path(tempfile.mkdtemp(prefix=f"bench-three-{side}-"))
        drawn = free_ports(3 * NODES)
        self.peer_ports = drawn[2 * NODES :]
        controllers = drawn[NODES : 2 * NODES]
        voters = ",".join(f"{i + 1}@{HOST}:{port}" for i, port in enumerate(controllers))
        self.nodes: list[Cluster] = []
        for index, (broker, controller) in enumerate(zip(drawn, controllers, strict=False)):
            listeners = f"PLAINTEXT://{HOST}:{broker},REPLICATION://{HOST}:{self.peer_ports[index]}"
            found = {
                "process.roles": "broker,controller",
                "node.id": str(index + 1),
                "broker.rack": RACKS[index],
                "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": ",".join(
                    f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "REPLICATION", "CONTROLLER")
                ),
                "inter.broker.listener.name": "REPLICATION",
                "controller.quorum.voters": voters,
                **REPLICATED,
                **(settings or {}),
            }
            ports = broker, controller
            if side == "skylog":
                found["diskless.storage.url"] = f"file://{self._directory}/objects"
                self.nodes.append(Skylog({**DISKLESS_REPLICATED, **found}, ports=ports))
            else:
                found["controller.quorum.bootstrap.servers"] = ""
                self.nodes.append(Kafka(classpath, found, ports=ports))

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def node(self, node_id: int) -> Cluster:
        return self.nodes[node_id - 1]

    def usages(self) -> list[Usage]:
        return [usage(node.pid) for node in self.nodes]

    def cpu_seconds(self) -> float:
        return sum(each.cpu_seconds for each in self.usages())

    def start(self, nodes: Sequence[Cluster]) -> None:
        """Nodes need each other, so all are started before any is waited for."""
        for node in nodes:
            node.spawn()
        for node in nodes:
            node.wait_ready()

    def wait_in_sync(self) -> None:
        """Wait until all brokers are registered and every replica is in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def in_sync() -> bool:
            found = admin.list_topics(timeout=60)
            partitions = [p for topic in found.topics.values() for p in topic.partitions.values()]
            return len(found.brokers) == NODES and all(
                p.leader > 0 and len(p.isrs) == len(p.replicas) for p in partitions
            )

        wait_until(f"{self.side}: three brokers, all replicas in sync", in_sync)

    def active_controller(self) -> int:
        return asyncio.run(_active_controller(self.nodes))

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                node.prepare()
            self.start(self.nodes)
            self.wait_in_sync()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        # The last nodes would wait for a controller to hand their leaders over.
        for node in self.nodes:
            node.kill()
            node.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


async def _active_controller(nodes: Sequence[Cluster]) -> int:
    addresses = tuple(Address(HOST, int(node.bootstrap.rpartition(":")[2])) for node in nodes)
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    async with skylog_client.Cluster(ClientSettings(addresses)) as cluster:
        connection = await cluster.any_node()
        answer: DescribeQuorumResponse = await connection.request(request)
    return int(answer.topics[0].partitions[0].leader_id)


class Between:
    """Bytes over some listeners during ``with``: sent and received by their servers, as the kernel
    counts them for each connection.

    The counts of a connection are lost when it ends, so they are sampled.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._filter = " or ".join(f"sport = :{port}" for port in ports)
        self._before: dict[tuple[str, str], int] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def total(self) -> int:
        return sum(self._latest.values()) - sum(self._before.values())

    def __enter__(self) -> Self:
        self._before = self._look()
        self._latest = dict(self._before)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._latest.update(self._look())

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._latest.update(self._look())

    def _look(self) -> dict[tuple[str, str], int]:
        shown = subprocess.run(
            ["ss", "-tinHO", f"( {self._filter} )"], check=True, capture_output=True, text=True
        )
        return connection_bytes(shown.stdout)


def connection_bytes(shown: str) -> dict[tuple[str, str], int]:
    """Bytes in both directions of each connection, by its ends, of what ``ss -tinHO`` shows."""
    found = {}
    for line in shown.splitlines():
        ends = _SOCKET.match(line)
        if ends is not None:
            found[ends[1], ends[2]] = sum(int(count) for count in _BYTES.findall(line))
    return found
