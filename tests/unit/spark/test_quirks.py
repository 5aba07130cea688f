"""Workarounds for Spark's quirks work, can be switched off, and are still needed."""

from __future__ import annotations

import inspect
import io
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyspark.daemon
import pyspark.worker
import pytest

from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.layers import ENVIRONMENT_OTHERS
from skylog.spark.quirks import (
    FREEZE_IMPORTS,
    KEEP_MEMORY,
    QUICK_ACK,
    QUIRKS,
    Quirk,
    SentToWorkers,
    settle,
)

ROOT = Path(__file__).resolve().parents[3]
# The page faults of allocations of eight megabytes, the second time.
FAULTS = """
import resource
from skylog.spark.quirks import settle

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [b"x" * (8 << 20) for _ in range(6)]
    del kept
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

settle()
faults()
print(faults())
"""
FREEZES = """
import gc
from skylog.spark.quirks import settle

settle()
print(gc.get_freeze_count() > 0)
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="others have no such option")


class Task(SentToWorkers):
    """Like a reader: plain state that is sent to a worker."""

    def __init__(self, name: str) -> None:
        self.name = name


def main(infile: Any) -> Task:
    """Like the start of PySpark's workers: the task arrives through ``infile``."""
    task = pickle.load(infile)
    assert isinstance(task, Task)
    return task


def quick(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)


@LINUX
@pytest.mark.parametrize("switch", ["true", "false"])
def test_a_worker_acknowledges_its_task_at_once(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(QUICK_ACK.variable, switch)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as jvm,
        listening.accept()[0] as connection,
        os.fdopen(os.dup(connection.fileno()), "rb") as infile,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        assert quick(connection) == 0
        jvm.sendall(pickle.dumps(Task("scan")))
        assert main(infile).name == "scan"
        assert quick(connection) == (switch == "true")
        jvm.sendall(b"more")
        assert connection.recv(4) == b"more"  # the connection is as it was


def test_a_task_that_came_another_way_is_the_same() -> None:
    sent = pickle.dumps(Task("scan"))
    assert main(io.BytesIO(sent)).name == "scan"
    assert pickle.loads(sent).name == "scan"
    with tempfile.TemporaryFile() as file:
        file.write(sent)
        file.seek(0)
        assert main(file).name == "scan"
    near, far = socket.socketpair()
    with near, far, far.makefile("rb") as infile:
        near.sendall(sent)
        assert main(infile).name == "scan"


# Switches ---------------------------------------------------------------------------------------


def in_worker(script: str, **variables: str) -> str:
    """The output of a new process: settings of a process cannot be undone."""
    command = [sys.executable, "-c", script]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.variable)
def test_a_switch_is_yes_or_no(quirk: Quirk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(quirk.variable, raising=False)
    assert quirk.is_answered
    monkeypatch.setenv(quirk.variable, " True ")
    assert quirk.is_answered
    monkeypatch.setenv(quirk.variable, "false")
    assert not quirk.is_answered
    monkeypatch.setenv(quirk.variable, "maybe")
    with pytest.raises(ConfigError, match=f"{quirk.variable} is 'maybe'; allowed are true and"):
        settle.__wrapped__()


def test_a_broker_in_the_same_environment_takes_no_switch_for_a_setting() -> None:
    assert {quirk.variable for quirk in QUIRKS} <= ENVIRONMENT_OTHERS


def test_the_page_on_spark_has_every_quirk() -> None:
    page = (ROOT / "docs" / "spark.md").read_text()
    for quirk in QUIRKS:
        assert f"| `{quirk.variable}` | {quirk.seen_in} | {quirk.what} | {quirk.cost} |" in page


def test_imports_are_frozen_unless_that_is_turned_off() -> None:
    assert in_worker(FREEZES) == "True"
    assert in_worker(FREEZES, **{FREEZE_IMPORTS.variable: "false"}) == "False"


# Still needed? If a test fails here, delete its quirk and its row in docs/spark.md ------------


def test_spark_still_collects_garbage_after_every_task() -> None:
    source = inspect.getsource(pyspark.daemon.manager)
    assert "gc.collect()" in source, f"delete {FREEZE_IMPORTS}"
    assert "gc.freeze()" not in source, f"delete {FREEZE_IMPORTS}"


@LINUX
def test_the_c_library_still_gives_memory_back() -> None:
    kept = int(in_worker(FAULTS))
    given_back = int(in_worker(FAULTS, **{KEEP_MEMORY.variable: "false"}))
    assert kept < 1000
    assert given_back > 5 * kept + 1000, f"delete {KEEP_MEMORY}"


def test_the_jvm_still_leaves_nagles_algorithm_on() -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as classes:
        own = [
            name for name in classes.namelist() if name.startswith("org/apache/spark/api/python")
        ]
        assert "org/apache/spark/api/python/PythonWorkerFactory.class" in own
        off = [
            name for name in own if b"NoDelay" in (code := classes.read(name)) or b"NODELAY" in code
        ]
    assert not off, f"delete {QUICK_ACK}"
    # What worker_input looks for.
    assert "infile" in inspect.signature(pyspark.worker.main).parameters
