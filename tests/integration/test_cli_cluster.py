"""`skylog cluster up`, `kill`, `status` and `down`: a cluster of processes, as a user has it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.cli_support import invoke
from tests.integration.diskless_support import create_topic, read_all

SECONDS_MAX = 100.0
QUICK = (
    "--override",
    "broker.session.timeout.ms=3000",
    "--override",
    "broker.heartbeat.interval.ms=500",
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    if (tmp_path / "cluster" / "cluster.json").exists():
        invoke("cluster", "down", "--dir", str(tmp_path / "cluster"))


def run(directory: Path, *arguments: str) -> str:
    result = invoke("cluster", *arguments, "--dir", str(directory))
    assert result.exit_code == 0, result.output
    return result.stdout


def status(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(directory, "status", "--json"))
    return found


def states(directory: Path) -> dict[int, str]:
    return {node["id"]: node["state"] for node in status(directory)["nodes"]}


@pytest.mark.timeout(400)
def test_a_cluster_goes_up_loses_a_node_and_goes_down(directory: Path) -> None:
    told = run(directory, "up", "--brokers", "2", "--racks", "a,b", *QUICK)
    assert "bootstrap.servers=127.0.0.1:" in told
    found = status(directory)
    assert [(each["id"], each["rack"]) for each in found["nodes"]] == [
        (1, "a"),
        (2, "b"),
        (101, None),
    ]
    wait(lambda: states(directory) == {1: "serving", 2: "serving", 101: "serving"})
    created = invoke("topics", "create", "t", "--bootstrap", found["bootstrap"])
    assert created.exit_code == 0, created.output
    run(directory, "kill", "2")
    assert states(directory)[2] == "down"
    again = invoke("cluster", "kill", "2", "--dir", str(directory))
    assert (again.exit_code, again.stderr) == (1, "skylog: node 2 is not running\n")
    run(directory, "up")
    wait(lambda: states(directory) == {1: "serving", 2: "serving", 101: "serving"})
    # A node that hangs is fenced, and serves again when it continues.
    run(directory, "kill", "2", "--signal", "STOP")
    wait(lambda: states(directory)[2] == "fenced")
    run(directory, "kill", "2", "--signal", "CONT")
    wait(lambda: states(directory)[2] == "serving")
    run(directory, "down")
    assert set(states(directory).values()) == {"down"}
    run(directory, "down", "--delete")
    assert not directory.exists()


@pytest.mark.timeout(400)
def test_no_broker_opens_the_files_of_another(directory: Path) -> None:
    """Coordinators are reached only by requests: their databases belong to their brokers."""
    # DC-01
    run(directory, "up", "--brokers", "3", *QUICK)
    found = status(directory)
    create_topic(found["bootstrap"], "t", 4)
    producer = Producer({"bootstrap.servers": found["bootstrap"], "log_level": 0})
    for partition in range(4):
        producer.produce("t", b"v", partition=partition)
    assert producer.flush(SECONDS_MAX) == 0
    assert read_all(found["bootstrap"], "t", dict.fromkeys(range(4), 1))
    homes = {f"node-{node['id']}": open_files(directory, node["pid"]) for node in found["nodes"]}
    opened = [path for paths in homes.values() for path in paths]
    assert any(path.name == "state.sqlite" for path in opened)
    for name, paths in homes.items():
        assert {path.parts[0] for path in paths} <= {name, f"{name}.log", "objects"}


def open_files(directory: Path, pid: int) -> list[Path]:
    """Files of a cluster's directory that a process has open, relative to it."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            target = link.readlink()
            if target.is_relative_to(directory):
                found.append(target.relative_to(directory))
    return found


def wait(condition: Any) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_errors_are_one_line(tmp_path: Path) -> None:
    for arguments in (("down",), ("status",), ("kill", "1")):
        result = invoke("cluster", *arguments, "--dir", str(tmp_path / "none"))
        assert result.exit_code == 1
        assert "there is no cluster in" in result.stderr
    (tmp_path / "file").write_text("mine")
    result = invoke("cluster", "up", "--dir", str(tmp_path))
    assert "is not empty and has no cluster" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    (tmp_path / "cluster.json").write_text("{}")
    result = invoke("cluster", "status", "--dir", str(tmp_path))
    assert "cluster.json cannot be used" in result.stderr
