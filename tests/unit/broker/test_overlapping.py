"""Overlapping responses: in order, together, in time, and safe when the client disconnects."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from skylog.broker.net.answers import Answer, Close, Later
from skylog.broker.net.connection import Connection
from tests.unit.broker.support import soon
from tests.unit.broker.test_connection import Dispatcher, Transport, World, receive, turns

# Only Produce requests, which begin with this key, may overlap.
A, B, C = b"\0\0a", b"\0\0b", b"\0\0c"


class Late(Dispatcher):
    """Answers with the request once its future is done or the timeout expires."""

    def __init__(self) -> None:
        super().__init__()
        self.done: dict[bytes, asyncio.Future[None]] = {}
        self.seconds_max: float | None = None
        self.failures: dict[bytes, Exception] = {}

    def dispatch(self, connection: Connection, request: memoryview) -> Any:
        text = bytes(request)
        if text not in self.done:
            return super().dispatch(connection, request)
        self.seen.append(text)

        def finish() -> Answer | None:
            if text in self.failures:
                raise self.failures[text]
            return Answer([text]) if self.done[text].done() else Answer([b"late"])

        return Later(self.done[text], finish, self.seconds_max)


class CountingTransport(Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.wrote = asyncio.Event()

    def writelines(self, parts: list[bytes]) -> None:
        self.writes += 1
        self.wrote.set()
        super().writelines(parts)


def world_of(*late: bytes) -> tuple[Late, Connection, CountingTransport]:
    world = World()
    dispatcher = Late()
    loop = asyncio.get_running_loop()
    dispatcher.done = {text: loop.create_future() for text in late}
    world.listener.dispatcher = dispatcher  # type: ignore[assignment]
    connection, transport = Connection(world.listener), CountingTransport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    return dispatcher, connection, transport


async def test_answers_that_are_ready_leave_together_and_in_order() -> None:
    dispatcher, connection, transport = world_of(A, B, C)
    receive(connection, A, B, C)
    assert dispatcher.seen == [A, B, C]
    for text in (C, B):
        dispatcher.done[text].set_result(None)
    await turns()
    assert transport.written == b""
    dispatcher.done[A].set_result(None)
    await turns()
    assert (transport.written, transport.writes) == (A + B + C, 1)
    assert not connection.busy


async def test_an_answer_is_made_when_the_time_is_up_and_only_once() -> None:
    dispatcher, connection, transport = world_of(A, B)
    dispatcher.seconds_max = 0.01
    receive(connection, A)
    await soon(transport.wrote.wait())
    assert transport.written == b"late"
    dispatcher.done[A].set_result(None)
    await turns()
    assert transport.written == b"late"
    assert not connection.busy


async def test_each_answer_has_its_own_time() -> None:
    dispatcher, connection, transport = world_of(A, B, C)
    for text, seconds_max in ((A, None), (B, 60.0), (C, 0.01)):
        dispatcher.seconds_max = seconds_max
        receive(connection, text)
    dispatcher.done[A].set_result(None)
    await soon(transport.wrote.wait())
    transport.wrote.clear()
    # It is late, but it is not its turn.
    line = connection._overlapping._line
    async with asyncio.timeout(30):
        while not line[1][0].expired:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    assert transport.written == A
    dispatcher.done[B].set_result(None)
    await soon(transport.wrote.wait())
    assert transport.written == A + B + b"late"
    assert not connection.busy


async def test_a_timer_that_many_share_ends_with_the_connection() -> None:
    dispatcher, connection, _ = world_of(A, B)
    dispatcher.seconds_max = 60.0
    receive(connection, A, B)
    timer = connection._overlapping._timer
    assert timer is not None
    connection.connection_lost(None)
    assert timer.cancelled()


async def test_a_connection_that_is_gone_is_let_go_without_the_collector() -> None:
    dispatcher, connection, transport = world_of(A, B)
    dispatcher.seconds_max = 60.0
    receive(connection, A, B)
    for text in (A, B):
        dispatcher.done[text].set_result(None)
    await turns()
    gone = weakref.ref(connection)
    gc.disable()
    try:
        connection.connection_lost(None)
        del connection, dispatcher, transport
        await turns()
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("failure", [Close("no"), ValueError("a bug")])
async def test_an_answer_that_fails_ends_the_connection(failure: Exception) -> None:
    dispatcher, connection, transport = world_of(A, B)
    dispatcher.failures = {A: failure}
    receive(connection, A, B)
    for text in (A, B):
        dispatcher.done[text].set_result(None)
    await turns()
    assert transport.closed
    assert transport.written == b""


async def test_one_that_must_wait_does_not_overtake() -> None:
    dispatcher, connection, transport = world_of(A, B)
    dispatcher.waits = {C: asyncio.Event()}
    receive(connection, A, B, C)
    dispatcher.waits[C].set()
    await turns()
    assert transport.written == b""
    dispatcher.done[A].set_result(None)
    await turns()
    assert transport.written == A
    dispatcher.done[B].set_result(None)
    await turns()
    assert transport.written == A + B + C


async def test_a_disconnected_client_is_harmless() -> None:
    dispatcher, connection, transport = world_of(A, B)
    dispatcher.waits = {C: asyncio.Event()}
    receive(connection, A, B, C)
    dispatcher.waits[C].set()
    await turns()
    failures: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    connection.connection_lost(ConnectionResetError())
    await turns()
    for text in (A, B):
        dispatcher.done[text].set_result(None)
    await turns()
    assert transport.written == b""
    assert failures == []
