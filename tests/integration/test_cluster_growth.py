"""The data directory of a single node grows into a cluster: brokers join, controllers are added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, StorageError
from skylog.kernel.rng import system_random
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.meta_properties import read_meta_properties
from skylog.quorum.storage import FormatPlan, format_directory
from skylog.quorum.voters import Endpoint
from skylog.testing.cluster import ClusterNode, Port
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tests.integration.broker_client import Client, values
from tests.integration.cluster_support import alive, ask, create, created, describe_quorum, leaders
from tests.waiting import until

HOST = "127.0.0.1"
CALM = {
    "http.listener": "",
    "broker.session.timeout.ms": "60000",
    "broker.heartbeat.interval.ms": "300",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "2",
}


def node(
    directory: Path, node_id: int, roles: str, ports: Mapping[str, Port], **more: str
) -> ClusterNode:
    listeners = ",".join(f"{name}://{port.address}" for name, port in ports.items())
    given = {name.replace("_", "."): value for name, value in more.items()}
    settings = {
        **CALM,
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": listeners,
        "log.dirs": str(directory),
        **given,
    }
    return ClusterNode(node_id, settings, list(ports.values()))


def join(directory: Path, node_id: int, cluster_id: str) -> None:
    """What `skylog format --no-initial-controllers` does."""
    nowhere = Endpoint("CONTROLLER", HOST, 0)
    plan = FormatPlan(node_id, cluster_id, nowhere, bootstrap_records(), joins=True)
    format_directory([directory], plan, system_random(), SystemClock().now_ms())


@contextmanager
def running(*nodes: ClusterNode) -> Iterator[None]:
    with ExitStack() as stack:
        for each in nodes:
            stack.callback(each.close)
            each.start()
        yield


def voters(asked: ClusterNode) -> set[int]:
    return {each.replica_id for each in describe_quorum(asked).current_voters}


def add_voter(asked: ClusterNode, joining: ClusterNode, cluster_id: str) -> int:
    found = read_meta_properties(joining.directory)
    assert found is not None
    assert found.directory_id is not None
    host, _, port = joining.bootstrap.rpartition(":")
    where = [Listener("CONTROLLER", host, int(port))]
    request = AddRaftVoterRequest(cluster_id, 30_000, joining.node_id, found.directory_id, where)
    return int(ask(asked, request).error_code)


def test_a_single_node_becomes_a_cluster(tmp_path: Path) -> None:
    ports = {"PLAINTEXT": Port(), "CONTROLLER": Port()}
    servers = ports["CONTROLLER"].address
    # The controller of a single node had no fixed address: no other node had to reach it.
    before = Port()
    single = node(tmp_path / "1", 1, "broker,controller", {**ports, "CONTROLLER": before})
    single.start()
    try:
        cluster_id = single.node.health()["cluster_id"]
        assert create(single, "old", partitions=2)[0] == 0
        with Client(single.bootstrap) as client:
            assert client.produce("old", b"kept").error_code == 0
    finally:
        single.stop()
        before.socket.close()
    # The same directory, from now on in a cluster: only the controllers must be configured.
    first = node(
        tmp_path / "1",
        1,
        "broker,controller",
        ports,
        controller_quorum_bootstrap_servers=servers,
    )
    brokers = []
    for node_id in (2, 3):
        join(tmp_path / str(node_id), node_id, cluster_id)
        brokers.append(
            node(
                tmp_path / str(node_id),
                node_id,
                "broker",
                {"PLAINTEXT": Port()},
                controller_quorum_bootstrap_servers=servers,
            )
        )
    controllers = []
    for node_id, auto in ((4, "false"), (5, "true")):
        join(tmp_path / str(node_id), node_id, cluster_id)
        controllers.append(
            node(
                tmp_path / str(node_id),
                node_id,
                "controller",
                {"CONTROLLER": Port()},
                controller_quorum_bootstrap_servers=servers,
                controller_quorum_auto_join_enable=auto,
            )
        )
    # Controllers stop last: brokers need them for a controlled shutdown.
    with ExitStack() as last, running(first, *brokers):
        until(lambda: alive(first) == {1, 2, 3})
        assert create(brokers[0], "new", partitions=6, replicas=3)[0] == 0
        until(lambda: set(leaders(brokers[1], "new")) == {1, 2, 3})
        until(lambda: leaders(brokers[1], "old") == [1, 1])
        with Client(first.bootstrap) as client:
            assert values(client.fetch("old", 0).records) == [b"kept"]
        for controller in controllers:
            last.callback(controller.close)
            controller.start()
        fourth = controllers[0]
        # One is added by an operator, through any broker; the other joins automatically.
        until(lambda: add_voter(brokers[0], fourth, cluster_id) in (0, 126))
        until(lambda: voters(brokers[0]) == {1, 4, 5})
        known = read_meta_properties(first.directory)
        assert known is not None
        assert known.directory_id is not None
        # The first one may then leave the quorum, and remains a broker.
        removal = RemoveRaftVoterRequest(cluster_id, 1, known.directory_id)
        done = (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND)
        until(lambda: ask(brokers[0], removal).error_code in done)
        until(lambda: voters(brokers[0]) == {4, 5})
        created(brokers[1], "newest", replicas=3)
        assert create(first, "bad name", replicas=3)[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
        until(lambda: len(leaders(first, "newest")) == 3)


def test_a_directory_of_a_cluster_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """A node that joins must have been formatted: it must not create another cluster."""
    alone = node(
        tmp_path / "new",
        7,
        "broker",
        {"PLAINTEXT": Port()},
        controller_quorum_bootstrap_servers=f"{HOST}:1",
    )
    try:
        with pytest.raises(StorageError, match=r"meta\.properties.*format"):
            alone.start()
    finally:
        alone.close()
