"""One loop per process: shared connections, closed when idle, reopened after a fork."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from skylog.bulk import process as module
from skylog.bulk.errors import DataLossError
from skylog.bulk.process import close_process, pairs, this_process
from skylog.bulk.reader import ReadContext

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    close_process()
    yield
    close_process()


def test_connections_are_shared_by_settings() -> None:
    ours = this_process()
    assert this_process() is ours
    one = ours.run(ours.connections(pairs(SERVERS)))
    assert ours.run(ours.connections(pairs(dict(SERVERS)))) is one
    other = pairs({**SERVERS, "client.id": "other"})
    assert ours.run(ours.connections(other)) is not one


def test_clusters_not_used_for_long_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLUSTERS_MAX", 2)
    ours = this_process()
    settings = [pairs({**SERVERS, "client.id": str(number)}) for number in range(3)]
    first, second, _ = (ours.run(ours.connections(one)) for one in settings)
    assert ours.run(ours.connections(settings[1])) is second
    assert ours.run(ours.connections(settings[0])) is not first


def test_closing_lets_the_next_reader_start_over() -> None:
    before = this_process()
    close_process()
    assert this_process() is not before


def test_closing_ends_pending_waits() -> None:
    ours = this_process()
    waiting = ours.start(asyncio.sleep(600))
    close_process()
    with pytest.raises(CancelledError):
        waiting.result(60)
    with pytest.raises(RuntimeError, match="closed"):
        ours.run(asyncio.sleep(0))
    ours.end(asyncio.sleep(600))  # nothing is left that could be closed


def _in_child(connection) -> None:  # type: ignore[no-untyped-def]
    connection.send((this_process().pid, os.getpid()))
    close_process()
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_gets_a_loop_of_its_own() -> None:
    ours = this_process()
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(there,))
    child.start()
    assert here.poll(60)
    of_loop, of_child = here.recv()
    child.join(60)
    assert of_loop == of_child != ours.pid


def test_what_travels_between_processes_can_be_pickled() -> None:
    context = ReadContext.of(
        {**SERVERS, "sasl.jaas.config": "secret"}, storage={"diskless.storage.s3.region": "eu"}
    )
    assert pickle.loads(pickle.dumps(context)) == context
    assert "secret" not in repr(context)
    error = DataLossError("t", 3, 5, 9, "deleted")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.partition, copy.end_offset) == (str(error), 3, 9)
