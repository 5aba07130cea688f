"""A whole node: starts, stops, keeps its data, leaks nothing, shows its health."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from skylog.kernel.errors import ConfigError
from skylog.testing import Broker
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.integration.broker_client import FETCH_BY_NAME, Client, batch, fetch_request, values
from tests.integration.processes import MAIN, BrokerProcess
from tests.integration.wire_client import frame, request_bytes
from tests.ports import free_port
from tests.waiting import until

pytest_plugins = ["pytester"]


def open_files() -> set[str]:
    gc.collect()
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)  # noqa: PTH115 - not every target is a path
        except FileNotFoundError:
            continue
        found.add(f"{link.name} {target}")
    return found


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "skylog" in thread.name}


@pytest.fixture
def nothing_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Every test stops what it starts."""
    # Other programs have files in the usual directory.
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    # Other tests of this process may share a broker, and readers keep a thread.
    before, files = threads(), open_files()
    yield
    assert threads() <= before
    assert list(temporary.iterdir()) == []
    new = open_files() - files
    assert not [name for name in new if "skylog" in name or "socket:" in name], new


# Starting and stopping


@pytest.mark.usefixtures("nothing_left")
def test_a_broker_leaves_nothing_behind() -> None:
    with Broker({"http.listener": "127.0.0.1:0"}) as broker:
        assert threads()
        with Client(broker.bootstrap) as client:
            client.create("t", partitions=3)
            client.produce("t", b"x")
            client.fetch("t")
    assert not broker.directory.exists()


@pytest.mark.usefixtures("nothing_left")
def test_a_broker_stops_while_clients_wait_and_do_not_read() -> None:
    with contextlib.ExitStack() as open_clients, Broker() as broker:
        client = open_clients.enter_context(Client(broker.bootstrap))
        lazy = open_clients.enter_context(Client(broker.bootstrap, receive_buffer=4096))
        client.create("t")
        for _ in range(5):
            client.produce("t", bytes(900_000))
        lazy.send(frame(request_bytes(fetch_request([("t", 0, 0)]), FETCH_BY_NAME)))
        waits = fetch_request([("t", 0, 5)], wait_ms=1_000_000)
        client.send(frame(request_bytes(waits, FETCH_BY_NAME)))


@pytest.mark.usefixtures("nothing_left")
def test_starting_and_stopping_again_and_again(tmp_path: Path) -> None:
    for turn in range(20):
        with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
            if turn == 0:
                client.create("t")
            assert client.produce("t", b"x").base_offset == turn
    with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert len(values(client.fetch("t").records)) == 20


def test_a_clean_stop_keeps_everything(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        cluster = client.metadata().cluster_id
        topic_id = client.create("kept", partitions=2, configs={"max.message.bytes": "1000"})
        client.create("gone")
        client.delete("gone")
        client.produce("kept", b"a", index=0)
        # Producers whose records are a day old are forgotten.
        now = time.time_ns() // 1_000_000
        who = {"timestamp": now, "producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
        client.produce("kept", b"b", index=1, **who)
    with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        answer = client.metadata("kept", "gone")
        assert answer.cluster_id == cluster
        assert [(t.error_code, t.topic_id) for t in answer.topics if t.name == "kept"] == [
            (0, topic_id)
        ]
        assert [t.error_code for t in answer.topics if t.name == "gone"] == [3]
        assert values(client.fetch("kept").records) == [b"a"]
        assert client.produce("kept", bytes(2000)).error_code == 10
        # Its last batch is remembered: a retry is not written again.
        assert client.produce("kept", b"b", index=1, **who).base_offset == 0
        assert client.fetch("kept", index=1).high_watermark == 1


@pytest.mark.usefixtures("nothing_left")
def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        with pytest.raises(Exception, match=r"(?i)lock|in use|another"):
            Broker(directory=tmp_path).start()
        with Client(broker.bootstrap) as client:
            client.create("still-there")


@pytest.mark.usefixtures("nothing_left")
def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        with pytest.raises(ConfigError, match=str(port)):
            Broker({"listeners": listeners}).start()
        with pytest.raises(ConfigError, match=str(port)):
            Broker({"http.listener": f"127.0.0.1:{port}"}).start()


@pytest.mark.usefixtures("nothing_left")
def test_invalid_settings_are_named() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker({"num.partitions": "many"}).start()


def test_a_broker_that_does_not_run_says_so() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap
    broker.stop()
    assert not broker.directory.exists()


# Observing it


def get(broker: Broker, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{broker.node.http_address}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_health_and_metrics() -> None:
    with Broker({"http.listener": "127.0.0.1:0"}) as broker, Client(broker.bootstrap) as client:
        status, text = get(broker, "/health")
        assert (status, json.loads(text)["status"]) == (200, "ok")
        client.create("seen")
        client.produce("seen", b"x", b"y")
        client.append("seen", b"")
        client.fetch("seen")
        assert client.ask(SaslHandshakeRequest("PLAIN"), 1).error_code != 0
        status, text = get(broker, "/metrics")
        assert status == 200
        size = len(batch(b"x", b"y"))
        for line in (
            'skylog_topic_messages_in_total{topic="seen"} 2.0',
            f'skylog_topic_bytes_in_total{{topic="seen"}} {float(size)}',
            f'skylog_topic_bytes_out_total{{topic="seen"}} {float(size)}',
            'skylog_topic_rejected_batches_total{topic="seen"} 1.0',
            'skylog_requests_total{api="PRODUCE"} 2.0',
            'skylog_request_seconds_count{api="PRODUCE"} 2.0',
            'skylog_request_seconds_bucket{api="FETCH",le="+Inf"} 1.0',
            'skylog_request_errors_total{api="SASL_HANDSHAKE",error="ILLEGAL_SASL_STATE"} 1.0',
            'skylog_in_flight_bytes{kind="answers"} 0.0',
            'skylog_in_flight_limit_bytes{kind="requests"} 5.36870912e+08',
            "skylog_event_loop_lag_seconds_sum",
            "process_resident_memory_bytes",
            "skylog_partitions 1.0",
            'skylog_connections{listener="PLAINTEXT"} 1.0',
        ):
            assert line in text
        client.delete("seen")
        assert 'topic="seen"' not in get(broker, "/metrics")[1]
        assert get(broker, "/nowhere")[0] == 404


def test_health_tells_of_a_broker_that_no_longer_serves() -> None:
    with Broker({"http.listener": "127.0.0.1:0"}) as broker:
        task = broker.node._lifecycle._heartbeats
        assert task is not None
        assert broker._loop is not None
        broker._loop.call_soon_threadsafe(task.cancel)
        while get(broker, "/health")[0] == 200:
            pass
        assert get(broker, "/health")[0] == 503


# For tests of other projects


def test_the_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        def test_it(skylog_broker, skylog_bootstrap):
            assert skylog_bootstrap == skylog_broker.bootstrap
            host, _, port = skylog_bootstrap.rpartition(":")
            socket.create_connection((host, int(port))).close()
        """
    )
    options = ["-o", "asyncio_default_fixture_loop_scope=function"]
    if not entry_points(group="pytest11", name="skylog"):  # only on the path
        options += ["-p", "skylog.testing.plugin"]
    pytester.runpytest_inprocess("-q", *options).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "voters",
    ["controller.quorum.voters=1@127.0.0.1:{}", "controller.quorum.bootstrap.servers=127.0.0.1:{}"],
    ids=["voters", "bootstrap"],
)
def test_a_node_that_names_only_itself_works_with_a_file_as_it_is(
    tmp_path: Path, voters: str
) -> None:
    """Groups, transactions and diskless topics, whose internal topics cannot have three
    replicas."""
    port, file = free_port(), tmp_path / "server.properties"
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        voters.format(port),
        f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names=CONTROLLER",
        "http.listener=",
        f"log.dirs={tmp_path / 'data'}",
    ]
    file.write_text("\n".join(lines))
    process = BrokerProcess(tmp_path / "data")
    process.command = [sys.executable, "-c", MAIN, "server", str(file)]
    with process, Client(process.address) as client:
        client.create("diskless", configs={"diskless.enable": "true"})
        assert client.produce("diskless", b"x").error_code == 0
        for kind in (0, 1):  # of a group, of transactions
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
            until(lambda asked=request: client.ask(asked).coordinators[0].error_code == 0)
        found = client.metadata("__consumer_offsets", "__transaction_state", "__diskless_metadata")
        for topic in found.topics:
            assert {len(one.replica_nodes) for one in topic.partitions} == {1}
