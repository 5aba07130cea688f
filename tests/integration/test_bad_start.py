"""A node that cannot start prints one line and changes nothing; and how nodes stop."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode as Code
from skylog.wire.apis import ApiKey
from skylog.wire.messages import fetch_request, list_offsets_request, produce_request
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.records import encode_batch
from tests.integration.auth_cases import CASES, Things, errors_in
from tests.integration.processes import MAIN, BrokerProcess, server_command
from tests.integration.wire_client import Closed, Wire, frame, request_bytes

START_SECONDS_MAX = 60
CLEAN = ".kafka_cleanshutdown"
CONTROLLER = "CONTROLLER://127.0.0.1:0"


def fingerprint(place: Path) -> str:
    """Everything below a path: names, kinds, modes and contents."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        kind = "missing" if not path.exists() else oct(path.stat().st_mode)
        digest.update(f"{path.relative_to(place)} {kind}\n".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def refused(command: list[str], place: Path) -> str:
    """The error: one line, with an exit code other than 0, and nothing below the path has
    changed."""
    before = fingerprint(place)
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS_MAX, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("skylog: ")
    assert fingerprint(place) == before
    return line


# Settings

SETTINGS = {
    "unknown": ({"log.retentoin.ms": "5"}, "log.retention.ms"),
    "not a number": ({"num.partitions": "many"}, "num.partitions"),
    "out of range": ({"num.partitions": "0"}, "[1,...]"),
    "no endpoint": ({"listeners": "PLAINTEXT//here"}, "NAME://host:port"),
    "one port twice": (
        {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9092"},
        "port",
    ),
    "no protocol": ({"listeners": f"OTHER://127.0.0.1:0,{CONTROLLER}"}, "OTHER"),
    "no key for TLS": (
        {
            "listeners": f"SSL://127.0.0.1:0,{CONTROLLER}",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SSL",
        },
        "ssl.keystore.location",
    ),
    "no such key file": (
        {
            "listeners": f"SSL://127.0.0.1:0,{CONTROLLER}",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/no/such/file.pem",
        },
        "/no/such/file.pem",
    ),
    "a mechanism without users": (
        {
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:0,{CONTROLLER}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
        },
        "sasl.jaas.config",
    ),
    "another authorizer": ({"authorizer.class.name": "com.example.Open"}, "StandardAuthorizer"),
    "no such address": (
        {"listeners": f"PLAINTEXT://192.0.2.1:0,{CONTROLLER}"},
        "192.0.2.1",
    ),
}


@pytest.mark.parametrize(("settings", "named"), SETTINGS.values(), ids=SETTINGS)
def test_settings(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    line = refused(server_command(tmp_path / "data", settings), tmp_path)
    assert named in line


def test_errors_do_not_contain_secrets(tmp_path: Path) -> None:
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:0,{CONTROLLER}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'PlainLoginModule "canary-4711" !',
    }
    assert "canary-4711" not in refused(server_command(tmp_path / "data", settings), tmp_path)


@pytest.mark.parametrize("arguments", [["/no/such/server.properties"], ["--override", "nothing"]])
def test_arguments(tmp_path: Path, arguments: list[str]) -> None:
    refused([sys.executable, "-c", MAIN, "server", *arguments], tmp_path)


@pytest.mark.parametrize("setting", ["listeners", "http.listener"])
def test_a_port_in_use(tmp_path: Path, setting: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        values = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},{CONTROLLER}",
            "http.listener": f"127.0.0.1:{port}",
        }
        command = server_command(tmp_path / "data", {setting: values[setting]})
        assert str(port) in refused(command, tmp_path)


# Directories


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A directory that a node has been using."""
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.terminate() == 0
    return tmp_path / "data"


def test_a_file_instead_of_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for place in (file, file / "below"):
        assert "not a directory" in refused(server_command(place), tmp_path).lower()


def test_a_directory_of_another_node(used: Path) -> None:
    line = refused(server_command(used, {"node.id": "7"}), used)
    assert "node 1" in line
    assert "node.id is 7" in line


def test_directories_of_two_clusters(used: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with BrokerProcess(other) as broker:
        broker.terminate()
    line = refused(server_command(used, {"log.dirs": f"{used},{other}"}), tmp_path)
    assert "belongs to cluster" in line


@pytest.mark.parametrize("text", ["", "garbage", "version=2\n", "\0" * 100, "version=1\nnode.id=x"])
def test_a_broken_meta_properties(used: Path, text: str) -> None:
    (used / "meta.properties").write_text(text)
    assert "meta.properties" in refused(server_command(used), used)


def test_a_directory_in_use(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        command = server_command(tmp_path / "data")
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 1
        (line,) = ended.stderr.splitlines()
        assert "in use" in line
        # The first node is not affected.
        with Wire(broker.address) as wire:
            assert wire.ask(ApiVersionsRequest("a", "1")).error_code == 0


# Disks


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A small file system, if the system allows one."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def remount(place: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    """As on a full disk; with free space, the same directory works."""
    before = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    )
    command = server_command(tmp_path / "data", before=before)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert str(tmp_path / "data") in line
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.terminate() == 0


def test_a_disk_without_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16k") as disk:
        (disk / "filler").write_bytes(bytes(12 * 1024))
        ended = subprocess.run(
            server_command(disk / "data"), capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 1
        assert "No space left" in ended.stderr.splitlines()[-1]
        assert "Traceback" not in ended.stderr
        remount(disk, "size=4m")
        with BrokerProcess(disk / "data") as broker:
            assert broker.terminate() == 0


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        (disk / "old").mkdir()
        remount(disk, "ro")
        for name in ("new", "old"):
            assert "read-only" in refused(server_command(disk / name), disk).lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir(mode=0o500)
    assert str(place) in refused(server_command(place), tmp_path)


def test_a_disk_that_becomes_full(tmp_path: Path) -> None:
    """Only what does not fit is refused; acknowledged records stay, and later ones are accepted."""
    with small_disk(tmp_path / "disk", "3m") as disk:
        broker = BrokerProcess(disk / "data")
        broker.log = tmp_path / "log"
        with broker:
            topic = new_topic(broker.address)
            acked = 0
            with Wire(broker.address) as wire:
                while not errors_in(produce(wire, topic)):
                    acked += 1
                assert acked > 10
                assert errors_in(produce(wire, topic)) == {Code.KAFKA_STORAGE_ERROR}
                assert end_offset(wire, topic) == acked
            broker.kill()
            remount(disk, "size=30m")
            broker.start()
            with Wire(broker.address) as wire:
                assert end_offset(wire, topic) == acked
                assert not errors_in(produce(wire, topic))


def new_topic(address: str) -> Things:
    with Wire(address) as wire:
        (created,) = wire.ask(CreateTopicsRequest([CreatableTopic("topic", 1, 1)])).topics
    return Things("topic", created.topic_id, "group", "")


def produce_bytes(topic: Things) -> Any:
    m = produce_request
    batch = encode_batch([(b"key", bytes(100_000))], timestamp=time.time_ns() // 1_000_000)
    data = m.TopicProduceData(topic.topic, topic.topic_id, [m.PartitionProduceData(0, batch)])
    return m.ProduceRequest(None, -1, 5000, [data])


def produce(wire: Wire, topic: Things) -> Any:
    return wire.ask(produce_bytes(topic))


def end_offset(wire: Wire, topic: Things) -> int:
    m = list_offsets_request
    wanted = m.ListOffsetsPartition(0, timestamp=-1)
    answer = wire.ask(m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic(topic.topic, [wanted])]))
    return int(answer.topics[0].partitions[0].offset)


# The end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_shutdown(tmp_path: Path, number: signal.Signals) -> None:
    """Requests in progress are answered or their connections closed; the next start needs no
    recovery."""
    with BrokerProcess(tmp_path / "data") as broker:
        topic = new_topic(broker.address)
        with contextlib.ExitStack() as stack:
            busy = [stack.enter_context(Wire(broker.address)) for _ in range(8)]
            waiting = [stack.enter_context(Wire(broker.address)) for _ in range(8)]
            for wire in waiting:
                wire.send(frame(request_bytes(long_poll(topic), 13)))
            for wire in busy:
                wire.send(frame(request_bytes(produce_bytes(topic), 13)) * 5)
            broker.process.send_signal(number)
            acked = sum(answers(wire, ApiKey.PRODUCE) for wire in busy)
            for wire in waiting:
                answers(wire, ApiKey.FETCH)
        assert broker.wait() == 0
        assert (broker.directory / CLEAN).exists()
        assert "ERROR" not in broker.logged()
        broker.start()
        assert not (broker.directory / CLEAN).exists()
        with Wire(broker.address) as wire:
            # Unacknowledged records may be there, too.
            assert acked <= end_offset(wire, topic) <= 40


def long_poll(topic: Things) -> Any:
    request = CASES[ApiKey.FETCH].build(topic, 13)
    assert isinstance(request, fetch_request.FetchRequest)
    request.max_wait_ms = request.min_bytes = 2**31 - 1
    return request


def answers(wire: Wire, api_key: ApiKey) -> int:
    """How many successful responses arrive before the connection is closed."""
    count = 0
    with contextlib.suppress(Closed):
        while not errors_in(wire.answer(api_key, 13, 1)):
            count += 1
    return count


def test_a_signal_while_starting(tmp_path: Path) -> None:
    """Whenever it comes, the process ends, and the directory can be used."""
    process = subprocess.Popen(
        server_command(tmp_path / "data"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not (tmp_path / "data" / "meta.properties").exists():
        assert process.poll() is None
    process.terminate()
    _, said = process.communicate(timeout=START_SECONDS_MAX)
    assert process.returncode in (0, 1, -signal.SIGTERM)
    assert b"Traceback" not in said
    with BrokerProcess(tmp_path / "data") as broker:
        new_topic(broker.address)
        assert broker.terminate() == 0


def test_a_second_signal_is_harmless(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        new_topic(broker.address)
        for _ in range(3):
            broker.process.send_signal(signal.SIGTERM)
        assert broker.wait() in (0, -signal.SIGTERM)
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.terminate() == 0
