"""Settings of three nodes, the kernel's counts of their connections, and fail-over times."""

from __future__ import annotations

import shutil
import socket

import pytest

from bench.cluster_failover import first_after
from bench.cluster_partitions import _idle_figures
from bench.cluster_throughput import CLASSIC_GOAL, Rows, Run, _turns
from bench.plan import Plan
from bench.three import RACKS, Between, Three, connection_bytes

# Output of `ss -tinHO`, which leaves out counters of zero.
SHOWN = """\
ESTAB 0      0      127.0.0.1:9094 127.0.0.1:55298 bbr rto:212 bytes_sent:4600 bytes_acked:4530 \
bytes_received:1759 segs_out:149
ESTAB 0      0      127.0.0.1:9095 127.0.0.1:55312 bbr rto:204 bytes_received:96 segs_out:30
ESTAB 12     2048   [::1]:9096     [::1]:37711     cubic bytes_sent:2 bytes_retrans:7 bytes_acked:2
"""


def test_bytes_are_those_that_arrived_in_both_directions() -> None:
    assert connection_bytes(SHOWN) == {
        ("127.0.0.1:9094", "127.0.0.1:55298"): 4530 + 1759,
        ("127.0.0.1:9095", "127.0.0.1:55312"): 96,
        ("[::1]:9096", "[::1]:37711"): 2,
    }
    assert connection_bytes("") == {}


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss of iproute2")
def test_only_what_passes_over_the_ports_is_counted() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        client.sendall(bytes(500))
        _receive(server, 500)
        with Between([listener.getsockname()[1]]) as between:
            client.sendall(bytes(3_000))
            _receive(server, 3_000)
            server.sendall(bytes(40_000))
            _receive(client, 40_000)
            client.sendall(b"!")  # acknowledges everything before it
            _receive(server, 1)
        with Between([client.getsockname()[1]]) as elsewhere:
            pass
    assert between.total == 43_001
    assert elsewhere.total == 0


def _receive(end: socket.socket, size: int) -> None:
    while size:
        size -= len(end.recv(size))


@pytest.mark.parametrize("side", ["skylog", "kafka"])
def test_nodes_of_both_sides_are_set_up_alike(side: str) -> None:
    cluster = Three(side, "jars/*", {"min.insync.replicas": "2"})
    try:
        found = [node.settings for node in cluster.nodes]
        assert [each["node.id"] for each in found] == ["1", "2", "3"]
        assert [each["broker.rack"] for each in found] == list(RACKS)
        assert len({each["controller.quorum.voters"] for each in found}) == 1
        assert len({each["listeners"] for each in found}) == 3
        assert {each["min.insync.replicas"] for each in found} == {"2"}
        for node, port in zip(cluster.nodes, cluster.peer_ports, strict=True):
            assert node.settings["process.roles"] == "broker,controller"
            assert node.settings["inter.broker.listener.name"] == "REPLICATION"
            assert f"REPLICATION://127.0.0.1:{port}," in node.settings["listeners"]
            assert f"PLAINTEXT://{node.bootstrap}," in node.settings["listeners"]
            assert node.votes_with_others
        stores = {each.get("diskless.storage.url") for each in found}
        assert len(stores) == 1  # all share one
        assert (None in stores) == (side == "kafka")
    finally:
        cluster.stop()
    assert not any(node.directory.exists() for node in cluster.nodes)


def test_a_fail_over_ends_with_a_record_that_was_sent_after_the_kill() -> None:
    acknowledged = [(9.9, 10.5), (8.0, 8.1)]
    assert first_after(acknowledged, 10.0) is None
    acknowledged += [(10.2, 19.4), (10.1, 19.3)]
    assert first_after(acknowledged, 10.0) == 19.3


def test_rows_are_of_the_same_kafka() -> None:
    rows = Rows("classic", CLASSIC_GOAL, None, "")
    rows.add("skylog", Run(70.0, 3.0, 2.1))
    rows.add("kafka", Run(100.0, 6.0, 2.0))
    assert [row.ratio for row in rows.rows()] == [0.7, 0.5, 1.05]
    assert [row.met for row in rows.rows()] == [True, None, None]


def test_idle_cpu_is_judged_by_what_partitions_add() -> None:
    empty, full, added = _idle_figures("partitions", [1.0, 8.0, 2.0], [3.0, 9.0, 1.0])
    assert (empty.skylog, full.skylog) == ([8.0], [9.0])
    assert added.skylog == [2.0, 1.0, 0.0]
    assert added.met


def test_rounds_that_count_come_after_those_that_warm_up() -> None:
    turns = _turns(Plan("", rounds=2), ("skylog", "kafka"))
    assert [side for number, side in turns if number < 0] == ["skylog", "kafka"] * 3
    assert turns[6:] == [(0, "skylog"), (0, "kafka"), (1, "kafka"), (1, "skylog")]
    assert _turns(Plan("", rounds=1, quick=True), ("kafka",)) == [(0, "kafka")]
