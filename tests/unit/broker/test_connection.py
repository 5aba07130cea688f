"""A connection and its listener, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.background.tasks import Background
from skylog.broker.net.answers import Answer, Close
from skylog.broker.net.connection import Connection
from skylog.broker.net.in_flight import Memory
from skylog.broker.net.quota_gate import INT32_MAX, QuotaGate
from skylog.broker.net.server import Listener
from skylog.kernel import limits
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.settings import load_settings
from skylog.security.connection_limits import ConnectionLimits, ConnectionSettings, ListenerLimits
from skylog.security.quotas import ClientQuotas
from tests.integration.wire_client import frame
from tests.unit.broker.support import soon


class Transport:
    """What a connection does to its socket."""

    def __init__(self, *, tls: bool = False) -> None:
        self.written = b""
        self.unsent = 0
        self.reading = True
        self.closed = self.aborted = False
        self._tls = tls

    def get_extra_info(self, name: str) -> Any:
        if name == "ssl_object":
            return object() if self._tls else None
        return ("10.0.0.1", 5) if name == "peername" else None

    def writelines(self, parts: list[bytes]) -> None:
        self.written += b"".join(parts)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class Dispatcher:
    """Answers with the request itself; some requests wait, some fail."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.ended: list[bytes] = []
        self.waits: dict[bytes, asyncio.Event] = {}
        self.verdicts: dict[bytes, Exception] = {}
        self.mute_ms = 0

    def dispatch(self, connection: Connection, request: memoryview) -> Any:
        text = bytes(request)
        self.seen.append(text)
        if text in self.verdicts:
            raise self.verdicts[text]
        answer = Answer([text], self.mute_ms)
        return self._later(text, answer) if text in self.waits else answer

    async def _later(self, text: bytes, answer: Answer) -> Answer:
        try:
            await self.waits[text].wait()
        finally:
            self.ended.append(text)
        return answer


class World:
    def __init__(
        self, *, complete: bool = True, idle_ms_max: int = 10_000, **limits_of: Any
    ) -> None:
        self.clock = ManualClock()
        self.dispatcher = Dispatcher()
        self.complete = complete
        settings = ConnectionSettings(listeners={"L": ListenerLimits()}, **limits_of)
        self.admission = ConnectionLimits(settings, self.clock)
        security: Any = SimpleNamespace(
            new_authentication=lambda: SimpleNamespace(complete=self.complete),
            identify=lambda authentication, ssl_object: None,
        )
        network = load_settings(None, {}, [f"connections.max.idle.ms={idle_ms_max}"]).network
        dispatcher: Any = self.dispatcher
        self.listener = Listener(
            "L", dispatcher, security, self.admission, self.clock, network, Memory(-1)
        )

    def connect(self, **options: Any) -> tuple[Connection, Transport]:
        connection, transport = Connection(self.listener), Transport(**options)
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport


def receive(connection: Connection, *requests: bytes) -> None:
    data = b"".join(map(frame, requests))
    while data:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        connection.buffer_updated(count)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# Order


async def test_answers_keep_the_order_of_requests() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    receive(connection, b"a", b"slow", b"b", b"c")
    await turns()
    assert (transport.written, world.dispatcher.seen) == (b"a", [b"a", b"slow"])
    assert connection.busy
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert transport.written == b"aslowbc"
    assert not connection.busy


async def test_others_get_a_turn_in_a_long_pipeline() -> None:
    world = World()
    connection, transport = world.connect()
    count = limits.CONNECTION_REQUESTS_PER_TURN_MAX * 2 + 1
    receive(connection, *[b"x"] * count)
    assert len(transport.written) < count
    await turns()
    assert len(transport.written) == count


@pytest.mark.parametrize(
    "verdict", [Close("why"), ProtocolError("what"), RuntimeError("a bug")], ids=repr
)
async def test_a_verdict_ends_the_connection(verdict: Exception) -> None:
    world = World()
    world.dispatcher.verdicts = {b"bad": verdict}
    connection, transport = world.connect()
    receive(connection, b"a", b"bad", b"never")
    assert (transport.written, transport.closed) == (b"a", True)
    assert b"never" not in world.dispatcher.seen


async def test_requests_before_a_broken_frame_are_answered() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    data = frame(b"a") + frame(b"slow") + b"\xff" * 10
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))
    assert (transport.written, transport.reading, transport.closed) == (b"a", False, False)
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert (transport.written, transport.closed) == (b"aslow", True)


async def test_nothing_begins_after_a_write_has_failed() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    write = transport.writelines

    def fail(parts: list[bytes]) -> None:
        write(parts)
        transport.closed = True  # as asyncio does; connection_lost comes later

    transport.writelines = fail  # type: ignore[method-assign]
    receive(connection, b"a", b"slow")
    assert world.dispatcher.seen == [b"a"]
    connection.connection_lost(ConnectionResetError())
    assert len(world.listener) == 0


# Backpressure


async def test_reading_stops_while_enough_requests_wait() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    receive(connection, b"slow", *[b"x"] * (limits.CONNECTION_REQUESTS_WAITING_MAX - 1))
    assert transport.reading
    receive(connection, b"x")
    assert not transport.reading
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert transport.reading


async def test_reading_stops_while_enough_bytes_wait() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    half = bytes(limits.CONNECTION_WAITING_BYTES_MAX // 2)
    receive(connection, b"slow", half)
    assert transport.reading
    receive(connection, half)
    assert not transport.reading
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert transport.reading
    assert world.listener.memory.requests.total == 0


async def test_requests_wait_while_answers_cannot_be_written() -> None:
    world = World()
    connection, transport = world.connect()
    connection.pause_writing()
    assert transport.reading  # to notice that the client closes
    receive(connection, b"a", b"b")
    assert (transport.written, transport.reading) == (b"", False)
    connection.resume_writing()
    assert (transport.written, transport.reading) == (b"ab", True)


async def test_a_muted_client_is_not_read_from() -> None:
    world = World()
    world.dispatcher.mute_ms = 1
    connection, transport = world.connect()
    receive(connection, b"a", b"b")
    assert (transport.written, transport.reading) == (b"a", False)

    async def unmuted() -> None:
        while transport.written != b"ab":  # noqa: ASYNC110 - a timer of the connection ends it
            await asyncio.sleep(0)

    await soon(unmuted())
    connection.connection_lost(None)
    assert len(world.listener) == 0


# Closing


async def test_what_a_client_said_before_it_closed_is_answered() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    receive(connection, b"slow", b"b")
    assert connection.eof_received()
    assert not transport.closed
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert (transport.written, transport.closed) == (b"slowb", True)


async def test_a_client_that_closes_while_nothing_is_to_do_is_gone() -> None:
    connection, _ = World().connect()
    assert not connection.eof_received()


async def test_over_tls_requests_are_handled_after_the_end() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect(tls=True)
    receive(connection, b"slow", b"b")
    assert not connection.eof_received()
    connection.connection_lost(None)
    assert len(world.listener) == 1, "it still counts"
    world.dispatcher.waits[b"slow"].set()
    await turns()
    assert world.dispatcher.seen == [b"slow", b"b"]
    assert transport.written == b""
    assert len(world.listener) == 0


async def test_a_connection_that_breaks_is_over_at_once() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, _ = world.connect()
    receive(connection, b"slow", b"b")
    task = connection.task
    assert task is not None
    connection.connection_lost(ConnectionResetError())  # before the task's first step
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert world.dispatcher.ended == [b"slow"]
    assert len(world.listener) == len(world.admission) == 0
    assert world.listener.memory.requests.total == 0


# The listener


async def test_connections_beyond_the_limit_are_closed() -> None:
    world = World(per_ip_max=1)
    first, _ = world.connect()
    second, refused = world.connect()
    assert refused.closed
    second.connection_lost(None)
    first.connection_lost(None)
    assert len(world.admission) == 0
    _, again = world.connect()
    assert not again.closed


def sweep_after(world: World, seconds: float) -> None:
    world.clock.advance(int(seconds * 1000))
    world.listener.sweep()


async def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    idle, idle_transport = world.connect()
    busy, busy_transport = world.connect()
    receive(idle, b"a")
    receive(busy, b"slow")
    sweep_after(world, 9)
    assert not idle_transport.closed
    sweep_after(world, 2)
    assert (idle_transport.closed, busy_transport.closed) == (True, False)
    busy.connection_lost(ConnectionResetError())
    idle.connection_lost(None)


async def test_connections_may_idle_for_ever() -> None:
    world = World(idle_ms_max=-1)
    _, transport = world.connect()
    sweep_after(world, 10**6)
    assert not transport.closed


async def test_unauthenticated_connections_time_out_soon() -> None:
    world = World(complete=False)
    connection, transport = world.connect()
    for _ in range(3):
        sweep_after(world, limits.HANDSHAKE_SECONDS_MAX / 3 - 1)
        connection.get_buffer(-1)[:1] = b"\0"  # a byte now and then does not help
        connection.buffer_updated(1)
    assert not transport.closed
    sweep_after(world, 4)
    assert transport.closed


async def test_reauthentication_keeps_the_connection() -> None:
    world = World()
    connection, transport = world.connect()
    connection.authentication.complete = False  # type: ignore[misc]
    receive(connection, b"a")
    sweep_after(world, 9)
    receive(connection, b"a")
    world.clock.advance(int(limits.HANDSHAKE_SECONDS_MAX * 1000) - 9_000)
    receive(connection, b"a")
    sweep_after(world, 5)
    assert not transport.closed


async def test_a_slow_reader_is_kept_and_one_that_does_not_read_is_not() -> None:
    world = World()
    slow, slow_transport = world.connect()
    dead, dead_transport = world.connect()
    for connection, transport in ((slow, slow_transport), (dead, dead_transport)):
        transport.unsent = 1000
        receive(connection, b"x" * 1000)
    for turn in range(20):
        receive(slow, b"")
        slow_transport.unsent -= 10
        sweep_after(world, limits.WRITE_STALL_SECONDS_MAX / 10)
        if turn < 5:
            assert not dead_transport.aborted
    assert dead_transport.aborted
    assert not slow_transport.aborted


async def test_a_listener_that_stops_waits_for_requests_in_work() -> None:
    world = World()
    world.dispatcher.waits = {b"slow": asyncio.Event()}
    connection, transport = world.connect()
    receive(connection, b"slow")
    task = connection.task
    assert task is not None
    loop = asyncio.get_running_loop()
    close = transport.close

    def close_and_tell() -> None:
        close()
        loop.call_soon(connection.connection_lost, None)

    transport.close = close_and_tell  # type: ignore[method-assign]
    await soon(world.listener.stop())
    assert task.done()
    assert len(world.listener) == 0
    _, late = world.connect()
    assert late.closed


async def test_a_listener_that_stops_does_not_wait_for_clients_that_do_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SHUTDOWN_FLUSH_SECONDS_MAX", 0.01)
    world = World()
    connection, transport = world.connect()
    transport.abort = lambda: connection.connection_lost(None)  # type: ignore[method-assign]
    await soon(world.listener.stop())
    assert len(world.listener) == 0


# Work without clients


async def test_background_work_goes_on_after_a_failure() -> None:
    calls: list[str] = []
    enough = asyncio.Event()

    def work(name: str) -> Callable[[], Any]:
        async def run() -> None:
            calls.append(name)
            if calls.count("good") > 3 and calls.count("bad") > 3:
                enough.set()
            if name == "bad":
                raise RuntimeError("a bug")

        return run

    background = Background()
    background.every(0, "good", work("good"))
    background.every(10**9, "bad", work("bad"), first_ms=0)
    background.every(0, "bad", work("bad"))
    await soon(enough.wait())
    await background.stop()
    count = len(calls)
    await turns()
    assert len(calls) == count


# Quotas


def test_the_quota_gate() -> None:
    clock, quotas = ManualClock(), ClientQuotas(11, 1, 11, 1)
    gate = QuotaGate(quotas, clock)
    context: Any = SimpleNamespace(principal="User:u", client_id="c", throttle_ms=0)
    assert gate.produced(context, 10**9) == 0
    assert gate.fetched(context, 10**9) == 0
    assert gate.fetch_bytes_max(context) == INT32_MAX
    gate.mutated(context, 10**6, strict=True)
    for key in ("producer_byte_rate", "consumer_byte_rate"):
        quotas.update({"client-id": "c"}, key, 100.0)
    assert gate.fetch_bytes_max(context) == 1000
    assert gate.produced(context, 1000) == 0
    assert gate.produced(context, 500) > 0
    # A throttled fetch does not count: it returned nothing.
    assert gate.fetched(context, 1500) > 0
    assert gate.fetched(context, 1000) == 0
    other: Any = SimpleNamespace(principal="User:u", client_id="d", throttle_ms=0)
    assert gate.produced(other, 10**9) == 0


def test_changes_of_topics_beyond_the_quota() -> None:
    clock, quotas = ManualClock(), ClientQuotas(11, 1, 2, 1)
    gate = QuotaGate(quotas, clock)
    quotas.update({"user": "u"}, "controller_mutation_rate", 1.0)
    old: Any = SimpleNamespace(principal="User:u", client_id="c", throttle_ms=0)
    gate.mutated(old, 10, strict=False)
    assert old.throttle_ms > 0
    new: Any = SimpleNamespace(principal="User:u", client_id="c", throttle_ms=0)
    with pytest.raises(KafkaError) as refused:
        gate.mutated(new, 1, strict=True)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert new.throttle_ms > 0
