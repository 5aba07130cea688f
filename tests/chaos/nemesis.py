"""Injects faults into the processes of a cluster, as its seed decides."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka.admin

from skylog.cli.local_cluster import LocalCluster, LocalNode
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from tests.chaos.history import Place
from tests.chaos.load import QUIET
from tests.chaos.network import Network
from tests.integration.wire_client import Closed, Wire

GONE_SECONDS_MAX = 60
_COORDINATORS = ("__diskless_metadata", "__consumer_offsets", "__transaction_state")


class Nemesis:
    """Draws targets by role: leader, follower, controller, coordinator."""

    def __init__(
        self,
        cluster: LocalCluster,
        seed: int,
        session_seconds: float,
        network: Network | None = None,
    ) -> None:
        self.cluster = cluster
        self._network = network
        self._rng = random.Random(seed)
        self._session = session_seconds
        self._admin = confluent_kafka.admin.AdminClient(
            {"bootstrap.servers": cluster.bootstrap, **QUIET}
        )

    # -- looking -------------------------------------------------------------------------------

    def metadata(self) -> Any:
        return self._admin.list_topics(timeout=30)

    def brokers(self) -> list[LocalNode]:
        return [node for node in self.cluster.nodes if node.is_broker]

    def leader(self, topic: str) -> LocalNode:
        """The leader of a random partition of the topic; any broker if it has none."""
        found = self.metadata().topics.get(topic)
        led = sorted({each.leader for each in found.partitions.values()} - {-1}) if found else []
        return self.cluster.node(self._rng.choice(led)) if led else self._any_broker()

    def led(self, node: LocalNode) -> set[Place]:
        """The partitions that a broker leads."""
        return {
            (name, index)
            for name, topic in self.metadata().topics.items()
            for index, part in topic.partitions.items()
            if part.leader == node.id
        }

    def follower(self, topic: str) -> LocalNode:
        """A broker that does not lead all of it."""
        found = self.metadata().topics[topic].partitions[0]
        others = [node for node in self.brokers() if node.id != found.leader]
        return self._rng.choice(others)

    def active_controller(self) -> LocalNode:
        request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        for node in self.brokers():
            # There may be no leader at this moment, and a node may stop while it is asked.
            nothing = contextlib.suppress(OSError, AssertionError, Closed, IndexError)
            with nothing, Wire(node.address) as wire:
                answer = wire.ask(request).topics[0].partitions[0]
                if answer.leader_id >= 0:
                    return self.cluster.node(answer.leader_id)
        return self._rng.choice(self.cluster.controllers)

    def whole(self) -> bool:
        """Whether every replica of every partition is in sync."""
        with contextlib.suppress(confluent_kafka.KafkaException):
            topics = self.metadata().topics.values()
            return all(
                part.leader >= 0 and len(part.isrs) == len(part.replicas)
                for topic in topics
                for part in topic.partitions.values()
            )
        return False

    def _any_broker(self) -> LocalNode:
        return self._rng.choice(self.brokers())

    def draw_target(self) -> tuple[str, LocalNode]:
        """A target and its role."""
        kind = self._rng.choice(("leader", "follower", "controller", "coordinator", "coordinator"))
        if kind == "leader":
            return kind, self.leader("classic")
        if kind == "follower":
            return kind, self.follower("classic")
        if kind == "controller":
            return kind, self.active_controller()
        topic = self._rng.choice(_COORDINATORS)
        return f"leader of {topic}", self.leader(topic)

    def draw(self, actions: Sequence[str]) -> str:
        return self._rng.choice(actions)

    def maybe(self, chance: float) -> bool:
        return self._rng.random() < chance

    # -- doing ---------------------------------------------------------------------------------

    def start(self, *nodes: LocalNode) -> None:
        with warnings.catch_warnings():
            # A process must outlive the object that started it.
            warnings.simplefilter("ignore", ResourceWarning)
            for node in nodes:
                self.cluster.start(node)

    def kill(self, *nodes: LocalNode) -> None:
        self._end(signal.SIGKILL, nodes)

    def terminate(self, *nodes: LocalNode) -> None:
        self._end(signal.SIGTERM, nodes)

    def _end(self, number: signal.Signals, nodes: Sequence[LocalNode]) -> None:
        for node in nodes:
            if self.cluster.pid(node) is not None:
                self.cluster.send(node, number)
        left = self.cluster.wait_gone(nodes, GONE_SECONDS_MAX)
        if left:
            said = {node.id: self.cluster.last_words(node)[-500:] for node in left}
            raise TimeoutError(f"V15 nodes do not end by {number.name}: {said}")

    def pause(self, nodes: Sequence[LocalNode], meanwhile: Callable[[], None]) -> float:
        """SIGSTOP for longer than the session timeout, then SIGCONT; returns the duration."""
        return self._for_a_session(
            lambda: self._send(signal.SIGSTOP, nodes),
            meanwhile,
            lambda: self._send(signal.SIGCONT, nodes),
        )

    def cut_off(self, nodes: Sequence[LocalNode], meanwhile: Callable[[], None]) -> float:
        """Cut these nodes off from all others for longer than the session timeout; returns the
        duration."""
        network = self._network
        assert network is not None, "without network namespaces nodes cannot be cut off"
        others = [node.host for node in self.cluster.nodes if node not in nodes]
        return self._for_a_session(
            lambda: network.cut([node.host for node in nodes], others), meanwhile, network.heal
        )

    def _for_a_session(
        self, begin: Callable[[], None], meanwhile: Callable[[], None], end: Callable[[], None]
    ) -> float:
        seconds = self._session + 1 + 3 * self._rng.random()
        since = time.monotonic()
        begin()
        meanwhile()
        time.sleep(max(0.0, since + seconds - time.monotonic()))
        end()
        return time.monotonic() - since

    def _send(self, number: signal.Signals, nodes: Sequence[LocalNode]) -> None:
        for node in nodes:
            self.cluster.send(node, number)

    def end(self) -> None:
        """Kill all processes."""
        for node in self.cluster.nodes:
            pid = self.cluster.pid(node)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.cluster.wait_gone(self.cluster.nodes, GONE_SECONDS_MAX)
