"""High watermarks over LISTEN/NOTIFY: how a commit reaches the fetches parked at other brokers.

A notification is part of the commit's transaction. While the listening connection is down,
notifications are lost; so after each new connection every high watermark is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

import asyncpg

from skylog.diskless.plane import TopicPartition
from skylog.diskless.planes.listeners import Listeners
from skylog.diskless.planes.postgres.database import Database, Sleep
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger

log = get_logger("diskless.postgres")

CHANNEL: Final = "skylog_high_watermarks"
# Postgres takes payloads of less than 8000 bytes.
PAYLOAD_CHARACTERS_MAX: Final = 7900
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 5.0

Moved = tuple[TopicPartition, int]


def payloads(moved: Iterable[Moved]) -> Iterator[str]:
    """As few payloads as hold all of ``moved``."""
    words: list[str] = []
    length = 0
    for (topic_id, partition), high_watermark in moved:
        word = f"{topic_id}:{partition}:{high_watermark}"
        if length + len(word) >= PAYLOAD_CHARACTERS_MAX:
            yield " ".join(words)
            words, length = [], 0
        words.append(word)
        length += len(word) + 1
    if words:
        yield " ".join(words)


def parse(payload: str) -> Iterator[Moved]:
    """What ``payloads`` wrote; words that are something else are skipped."""
    for word in payload.split():
        try:
            topic_id, partition, high_watermark = word.split(":")
            yield (Uuid.parse(topic_id), int(partition)), int(high_watermark)
        except ValueError:
            log.warning("strange notification", word=word)


class HighWatermarkFeed:
    """Keeps one connection listening for as long as the plane is open."""

    def __init__(
        self, database: Database, listeners: Listeners, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._database = database
        self._listeners = listeners
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once the first connection listens."""
        connection, closed = await self._listen()
        self._task = asyncio.create_task(self._keep_listening(connection, closed))

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self) -> tuple[Any, asyncio.Event]:
        connection = await self._database.connect()
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _connection: closed.set())
        await connection.add_listener(CHANNEL, self._heard)
        return connection, closed

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        for partition, high_watermark in parse(payload):
            self._listeners.tell(partition, high_watermark)

    async def _keep_listening(self, connection: Any, closed: asyncio.Event) -> None:
        try:
            while True:
                await closed.wait()
                log.warning("listening connection lost")
                connection, closed = await self._reconnect()
        finally:
            connection.terminate()

    async def _reconnect(self) -> tuple[Any, asyncio.Event]:
        pause = PAUSE_SECONDS
        while True:
            try:
                return await self._listen_and_tell_all()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
                log.warning("cannot listen", error=repr(error))
                await self._sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    async def _listen_and_tell_all(self) -> tuple[Any, asyncio.Event]:
        connection, closed = await self._listen()
        try:
            rows = await connection.fetch("SELECT topic_id, partition, high_watermark FROM logs")
        except BaseException:
            connection.terminate()
            raise
        for topic_id, partition, high_watermark in rows:
            self._listeners.tell((topic_id, partition), high_watermark)
        return connection, closed
