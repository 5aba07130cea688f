"""Shutdown of a process: it ends whatever hangs, and at once after a second signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.processes import BrokerProcess
from tests.integration.test_controller_processes import format_directory
from tests.ports import free_port
from tests.waiting import until

# Python code that runs in the process first.
HANGING_STORE = """
import asyncio
from skylog.objects.local import LocalStore
async def close(self):
    await asyncio.Event().wait()
LocalStore.close = close
from skylog.kernel import limits
"""
HANGING_THREAD = """
import threading
from skylog.kernel import limits
from skylog.kernel.executor import ThreadExecutor
limits.THREADS_END_SECONDS_MAX = limits.EXIT_SECONDS_MAX = 0.2
made = ThreadExecutor.__init__
def hang(self, threads, name):
    made(self, threads, name)
    if name == "skylog-validation":
        self._pool.submit(threading.Event().wait)
ThreadExecutor.__init__ = hang
"""


def node(number: int, roles: str, port: int) -> dict[str, str]:
    """One of a cluster whose only controller is node 1."""
    controller = roles == "controller"
    listener = f"CONTROLLER://127.0.0.1:{port}" if controller else "PLAINTEXT://127.0.0.1:0"
    return {
        "process.roles": roles,
        "node.id": str(number),
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": listener,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "offsets.topic.replication.factor": "1",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    port = free_port()
    with ExitStack() as running:
        processes = []
        for number, roles in ((1, "controller"), (2, "broker"), (3, "broker")):
            given, directory = node(number, roles, port), tmp_path / str(number)
            format_directory(directory, given)
            processes.append(running.enter_context(BrokerProcess(directory, given)))
        yield processes


def test_all_nodes_of_a_cluster_stop_together(cluster: list[BrokerProcess]) -> None:
    for process in cluster:
        process.process.send_signal(signal.SIGTERM)
    assert [process.wait() for process in cluster] == [0, 0, 0]


def test_a_store_that_does_not_close_is_abandoned(tmp_path: Path) -> None:
    impatient = HANGING_STORE + "limits.STOP_STEP_SECONDS_MAX = 0.2"
    with BrokerProcess(tmp_path / "data", before=impatient) as process:
        assert process.terminate() == 0
        assert "a step of the shutdown was given up" in process.logged()
    # All later steps were still carried out.
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", before=HANGING_STORE) as process:
        process.process.send_signal(signal.SIGTERM)
        until(lambda: "shutting down" in process.logged())
        assert process.alive
        assert process.terminate() == -signal.SIGTERM


def test_a_thread_that_does_not_end_does_not_keep_the_process(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", before=HANGING_THREAD) as process:
        assert process.terminate() == 1
        assert "while work was still running" in process.logged()
