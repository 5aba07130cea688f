"""The parts of the Postgres plane that need no server: retries, errors, scripts, payloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import CommitResult
from skylog.diskless.planes.postgres import PostgresPlane, answers, notify
from skylog.diskless.planes.postgres.database import TRIES, Database
from skylog.diskless.planes.postgres.notify import PAYLOAD_CHARACTERS_MAX, parse, payloads
from skylog.diskless.planes.postgres.schema import Script, pending, scripts
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.secret import Secret
from tests.contract.postgres_server import Broker

# --- Errors and retries ---------------------------------------------------------------------------


class FakeTransaction:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...


class FakeConnection:
    def transaction(self, isolation: str) -> FakeTransaction:
        assert isolation == "read_committed"
        return FakeTransaction()


class FakePool:
    """Counts acquired and released connections."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.lent = 0

    async def acquire(self, timeout: float) -> FakeConnection:  # noqa: ASYNC109
        assert timeout > 0
        if self.failure is not None:
            raise self.failure
        self.lent += 1
        return FakeConnection()

    async def release(self, _connection: FakeConnection) -> None:
        self.lent -= 1


class Trial:
    """A database whose transactions fail by script."""

    def __init__(self, *failures: Exception, pool: FakePool | None = None) -> None:
        self.failures = list(failures)
        self.pauses: list[float] = []
        self.pool = pool or FakePool()
        self.database = Database(Secret("postgresql://nowhere"), 1, self.pause)
        self.database._pool = self.pool
        self.runs = 0

    async def pause(self, seconds: float) -> None:
        assert self.pool.lent == 0
        self.pauses.append(seconds)

    async def work(self, _connection: Any) -> str:
        self.runs += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"

    async def error(self, call: Callable[..., Any]) -> KafkaError:
        with pytest.raises(KafkaError) as caught:
            await call(self.work)
        assert self.pool.lent == 0
        return caught.value


UNDONE = [asyncpg.SerializationError("40001"), asyncpg.DeadlockDetectedError("40P01")]
LOST = [
    asyncpg.ConnectionDoesNotExistError("gone"),
    asyncpg.AdminShutdownError("57P01"),
    asyncpg.InterfaceError("connection is closed"),
    ConnectionResetError(),
    TimeoutError(),
]
REFUSED = [
    asyncpg.DiskFullError("53100"),
    asyncpg.UniqueViolationError("23505"),
    ValueError("too large for an int32"),
]


@pytest.mark.parametrize("failure", UNDONE, ids=repr)
async def test_what_the_server_undid_is_tried_again(failure: Exception) -> None:
    trial = Trial(failure, failure)
    assert await trial.database.change(trial.work) == "done"
    assert (trial.runs, trial.pauses) == (3, [0.05, 0.1])


@pytest.mark.parametrize("failure", UNDONE, ids=repr)
async def test_the_last_try_fails_definitely(failure: Exception) -> None:
    trial = Trial(*[failure] * TRIES)
    error = await trial.error(trial.database.change)
    assert (error.code, error.ambiguous) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    assert trial.runs == TRIES


@pytest.mark.parametrize("failure", LOST, ids=repr)
async def test_a_lost_connection_is_ambiguous_and_never_tried_again(failure: Exception) -> None:
    trial = Trial(failure)
    error = await trial.error(trial.database.change)
    assert error.ambiguous
    assert trial.runs == 1


@pytest.mark.parametrize("failure", LOST, ids=repr)
async def test_a_read_changed_nothing(failure: Exception) -> None:
    error = await (trial := Trial(failure)).error(trial.database.read)
    assert (error.retriable, error.ambiguous) == (True, False)


@pytest.mark.parametrize("failure", REFUSED, ids=repr)
async def test_a_failed_statement_is_definite(failure: Exception) -> None:
    trial = Trial(failure)
    error = await trial.error(trial.database.change)
    assert (error.code, error.ambiguous) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    assert trial.runs == 1


@pytest.mark.parametrize("failure", [*LOST, asyncpg.TooManyConnectionsError("53300")], ids=repr)
async def test_without_a_connection_nothing_was_done(failure: Exception) -> None:
    trial = Trial(pool=FakePool(failure))
    error = await trial.error(trial.database.change)
    assert (error.retriable, error.ambiguous, trial.runs) == (True, False, 0)


async def test_errors_of_ours_pass() -> None:
    trial = Trial(KafkaError(ErrorCode.INVALID_REQUEST))
    assert (await trial.error(trial.database.change)).code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "address", ["postgresql://user:canary@127.0.0.1:1/x", "canary://x", "postgresql://a:canary@:x/"]
)
async def test_a_failed_start_does_not_tell_the_password(address: str) -> None:
    plane = PostgresPlane(Secret(address), ManualClock(), brokers=Broker())
    with pytest.raises(StorageError) as caught:
        await plane.start()
    assert "canary" not in str(caught.value)
    await plane.close()


# --- Listening ------------------------------------------------------------------------------------


class SilentConnection:
    """A connection whose peer may have vanished."""

    def __init__(self, vanished: bool) -> None:
        self.vanished = vanished
        self.terminated = asyncio.Event()

    async def set_type_codec(self, *_: object, **__: object) -> None: ...

    async def add_listener(self, *_: object) -> None: ...

    def add_termination_listener(self, _listener: object) -> None: ...

    async def execute(self, _statement: str) -> None:
        if self.vanished:
            raise TimeoutError

    async def fetch(self, _statement: str) -> list[Any]:
        return [(Uuid(16), 3, 77)]

    def terminate(self) -> None:
        self.terminated.set()


async def test_a_peer_that_vanished_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new connection first returns every high watermark."""
    monkeypatch.setattr(notify, "PING_SECONDS", 0)
    connections = [SilentConnection(True), SilentConnection(False)]
    opened = iter(connections)

    class Addressed:
        async def connect(self) -> SilentConnection:
            return next(opened)

    heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    listeners = Listeners()
    listeners.add(lambda *news: heard.done() or heard.set_result(news))
    feed = notify.HighWatermarkFeed(Addressed(), listeners)  # type: ignore[arg-type]
    await feed.start()
    assert await heard == ((Uuid(16), 3), 77)
    assert connections[0].terminated.is_set()
    await feed.close()
    assert connections[1].terminated.is_set()


# --- Scripts --------------------------------------------------------------------------------------


def test_scripts_are_numbered_without_gaps() -> None:
    numbers = [script.version for script in scripts()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers[-1] <= 10  # further ones are reserved


SCRIPTS = [Script(1, "one", "a"), Script(2, "two", "b"), Script(3, "three", "c")]


def test_only_what_is_missing_is_applied() -> None:
    assert pending(SCRIPTS, {}) == SCRIPTS
    assert pending(SCRIPTS, {1: SCRIPTS[0].digest, 2: SCRIPTS[1].digest}) == SCRIPTS[2:]


def test_a_newer_database_is_refused() -> None:
    with pytest.raises(StorageError, match="schema version 4"):
        pending(SCRIPTS, {4: "x"})


def test_a_changed_script_is_refused() -> None:
    with pytest.raises(StorageError, match="script 2"):
        pending(SCRIPTS, {1: SCRIPTS[0].digest, 2: "x"})


# --- Payloads and answers -------------------------------------------------------------------------

moves = st.tuples(
    st.tuples(st.builds(Uuid, st.binary(min_size=16, max_size=16)), st.integers(0, 2**31 - 1)),
    st.integers(0, 2**63 - 1),
)


@given(st.lists(moves, max_size=400))
def test_payloads_hold_everything_and_fit(moved: list[Any]) -> None:
    texts = list(payloads(moved))
    assert all(0 < len(text) <= PAYLOAD_CHARACTERS_MAX for text in texts)
    assert [move for text in texts for move in parse(text)] == moved


def test_invalid_payloads_are_skipped() -> None:
    good = f"{Uuid(16)}:1:2"
    strange = ["", "x", ":::", "::", f"{Uuid(16)}:x:2", f"{Uuid(16)}:1", "€:1:2", good]
    assert list(parse(" ".join(strange))) == [((Uuid(16), 1), 2)]


@given(
    st.lists(
        st.builds(
            CommitResult,
            st.sampled_from(ErrorCode),
            *[st.integers(-1, 2**63 - 1)] * 3,
            st.booleans(),
            st.none(),
        )
    )
)
def test_answers_come_back(results: list[CommitResult]) -> None:
    assert answers.unpack(answers.pack(results)) == results
