"""kill −9 of a broker while it consolidates: nothing acknowledged is lost or duplicated, and in the
end everything is tiered and has left the WAL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode
from tests.consolidating import CONSOLIDATING
from tests.integration.broker_client import Client
from tests.integration.consolidating_node import POINTS
from tests.integration.diskless_support import Load, create_topic, end_offsets, read_all
from tests.integration.looping_reader import looping
from tests.integration.processes import MAIN
from tests.integration.tiered_topics import EARLIEST_LOCAL, LATEST
from tests.ports import free_port
from tests.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60.0
# A few segments for each life of the process.
TOPIC = {**CONSOLIDATING, "internal.segment.bytes": "10000", "segment.ms": "1000"}


class Node:
    """A broker process that kills itself at a point, and is started again at the same address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self, *point: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.consolidating_node",
             str(self.directory), str(self._port), *point],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )  # fmt: skip
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert point or ready == "ready\n"

    def wait_dead(self, point: str) -> None:
        assert self._process is not None
        try:
            code = self._process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{point}: never reached")
        assert code == -signal.SIGKILL, f"{point}: exit code {code}"
        self._forget()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS_MAX)
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    one = Node(tmp_path / "data")
    try:
        yield one
    finally:
        one.kill()


def all_pruned(address: str) -> bool:
    with Client(address) as client:
        return bool(client.offset("t", EARLIEST_LOCAL).offset == client.offset("t", LATEST).offset)


def verified(address: str) -> None:
    """``skylog tiered verify`` says that all is well."""
    given = ["tiered", "verify", "t", "-b", address]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_crash_at_each_named_point(node: Node) -> None:
    node.start()
    create_topic(node.address, "t", 1, **TOPIC)
    passing = frozenset({ErrorCode.KAFKA_STORAGE_ERROR})
    with (
        Load(node.address, "t", 1, per_second=300, **{"batch.size": 2000}) as load,
        looping(lambda: [node.address], "t", passing) as reader,
    ):
        load.wait_for(50)
        node.kill()
        for number, point in enumerate(POINTS):
            node.start(point, str(1 + number % 2))
            node.wait_dead(point)
        node.start()
        load.wait_for(50)
        history = load.finish()
        loops = reader.loops
        until(lambda: reader.failure or reader.loops > loops + 2, "the reader goes on")
    assert history.failed == {}
    until(lambda: all_pruned(node.address), "everything leaves the WAL")
    found = read_all(node.address, "t", end_offsets(node.address, "t", 1))
    history.check(found)
    assert found == dict(history.sent)
    assert {offset: found[0][offset] for offset in reader.found} == reader.found
    verified(node.address)
    left = (node.directory / "diskless-tiering").rglob("*.log")
    assert not list(left)
