"""Transactions on a pool of connections, and what a failed one means.

- 40001 and 40P01 (serialization, deadlock): rolled back by the server, so retried a few times;
- a lost connection or a timeout: a change may or may not have been committed, so the error is
  ambiguous; a read changed nothing and can simply be repeated;
- no connection available: nothing was sent, so nothing was done;
- everything else: the server rolled back, or (ValueError) the statement could not be sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import asyncpg

from skylog.diskless.planes.postgres.schema import migrate
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.secret import Secret

log = get_logger("diskless.postgres")

T = TypeVar("T")
Work = Callable[[Any], Awaitable[T]]
Sleep = Callable[[float], Awaitable[None]]

TRIES: Final = 3
PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 1.0
CONNECT_SECONDS: Final = 5.0
ACQUIRE_SECONDS: Final = 30.0
COMMAND_SECONDS: Final = 30.0

_UNDONE: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)


async def prepare(connection: Any) -> None:
    """Converts topic ids to and from ``Uuid``."""
    await connection.set_type_codec(
        "uuid", schema="pg_catalog", encoder=bytes, decoder=Uuid, format="binary"
    )


class Database:
    """A pool; ``read`` and ``change`` run one transaction each."""

    def __init__(self, address: Secret, connections_max: int, sleep: Sleep = asyncio.sleep) -> None:
        self._address = address
        self._connections_max = connections_max
        self._sleep = sleep
        self._pool: Any = None

    async def open(self) -> None:
        """Connect and migrate the schema; after a failure ``close`` must still be called."""
        try:
            self._pool = await asyncpg.create_pool(
                self._address.reveal(),
                min_size=1,
                max_size=self._connections_max,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                init=prepare,
                server_settings={"application_name": "skylog"},
            )
            async with self._pool.acquire() as connection:
                versions = await migrate(connection)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
            # The error of an invalid connection string contains it, including the password.
            hidden = isinstance(error, ValueError)
            why = "the connection string is invalid" if hidden else str(error)
            raise StorageError(
                f"cannot use the Postgres control plane: {type(error).__name__}: {why}"
            ) from (None if hidden else error)
        if versions:
            log.info("database schema applied", versions=versions)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                await asyncio.wait_for(pool.close(), CONNECT_SECONDS)
            except TimeoutError:
                pool.terminate()

    async def connect(self) -> Any:
        """A separate connection, outside the pool, not yet prepared."""
        return await asyncpg.connect(
            self._address.reveal(),
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings={"application_name": "skylog-listen"},
        )

    async def read(self, work: Work[T]) -> T:
        """Run a query that changes nothing; a lost connection is a definite, retriable error."""
        return await self._run(work, changes=False)

    async def change(self, work: Work[T]) -> T:
        """Run a transaction; ``work`` runs again if it was rolled back."""
        return await self._run(work, changes=True)

    async def _run(self, work: Work[T], *, changes: bool) -> T:
        pause = PAUSE_SECONDS
        for last in (*[False] * (TRIES - 1), True):
            connection = await self._acquire()
            try:
                return await self._transaction(connection, work)
            except _UNDONE as error:
                if last:
                    raise _failed(error) from error
            except (asyncpg.PostgresError, ValueError, *_LOST) as error:
                if isinstance(error, _LOST) and not isinstance(error, ValueError):
                    raise _lost(error, ambiguous=changes) from error
                log.error("statement failed", error=repr(error))
                raise _failed(error) from error
            finally:
                await self._release(connection)
            await self._sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)
        raise AssertionError("the last try returns or raises")

    async def _acquire(self) -> Any:
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        except (asyncpg.PostgresError, *_LOST) as error:
            raise _lost(error, ambiguous=False) from error

    @staticmethod
    async def _transaction(connection: Any, work: Work[T]) -> T:
        async with connection.transaction(isolation="read_committed"):
            return await work(connection)

    async def _release(self, connection: Any) -> None:
        """Return a connection; the pool drops a broken one."""
        try:
            if self._pool is not None:
                await self._pool.release(connection)
        except (asyncpg.PostgresError, *_LOST) as error:
            log.debug("connection dropped", error=repr(error))


def _failed(error: Exception) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"control plane: {type(error).__name__}")


def _lost(error: Exception, *, ambiguous: bool) -> KafkaError:
    log.warning("no answer from the database", error=repr(error), ambiguous=ambiguous)
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"control plane: {type(error).__name__}",
        ambiguous=ambiguous,
    )
