"""What workers of Spark do besides reading and writing."""

from __future__ import annotations

import io
import os
import pickle
import socket
import sys
import tempfile
from typing import Any

import pytest

from skylog.spark.worker import SentToWorkers


class Task(SentToWorkers):
    """As readers are: plain state, sent to a worker."""

    def __init__(self, name: str) -> None:
        self.name = name


def main(infile: Any) -> Task:
    """As PySpark's workers begin: what is to be done comes through ``infile``."""
    task = pickle.load(infile)
    assert isinstance(task, Task)
    return task


def quick(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such option")
def test_a_worker_acknowledges_its_task_at_once() -> None:
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
        assert quick(connection) == 1
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
