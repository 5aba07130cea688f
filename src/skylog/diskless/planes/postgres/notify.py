"""High watermarks by LISTEN/NOTIFY: how a commit wakes waiting fetches on other brokers.

A notification is part of the commit's transaction. While the listening connection is down,
notifications are lost; so after each new connection every high watermark is reported once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

import asyncpg

from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import TopicPartition
from skylog.diskless.planes.postgres.database import Database, Sleep, prepare
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks

log = get_logger("diskless.postgres")

CHANNEL: Final = "skylog_high_watermarks"
# Postgres accepts payloads of less than 8000 bytes.
PAYLOAD_CHARACTERS_MAX: Final = 7900
FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
PING_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 5.0

Moved = tuple[TopicPartition, int]


def payloads(moved: Iterable[Moved]) -> Iterator[str]:
    """As few payloads as possible for all of ``moved``."""
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
    """Parses what ``payloads`` wrote; other words are skipped."""
    for word in payload.split():
        try:
            topic_id, partition, high_watermark = word.split(":")
            yield (Uuid.parse(topic_id), int(partition)), int(high_watermark)
        except ValueError:
            log.warning("unknown notification", word=word)


class HighWatermarkFeed:
    """Keeps one connection listening while the plane is open."""

    def __init__(
        self, database: Database, listeners: Listeners, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._database = database
        self._listeners = listeners
        self._sleep = sleep
        self._connection: Any = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once the first connection listens."""
        closed = await self._listen(tell_all=False)
        self._task = asyncio.create_task(self._keep_listening(closed))

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await end_tasks([task])
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _listen(self, *, tell_all: bool) -> asyncio.Event:
        """Connect and listen; returns an event that is set when the connection is lost."""
        connection = self._connection = await self._database.connect()
        closed = asyncio.Event()
        try:
            await prepare(connection)
            connection.add_termination_listener(lambda _connection: closed.set())
            await connection.add_listener(CHANNEL, self._heard)
            if tell_all:
                await self._tell_all(connection)
        except BaseException:
            connection.terminate()
            raise
        return closed

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        for partition, high_watermark in parse(payload):
            self._listeners.tell(partition, high_watermark)

    async def _keep_listening(self, closed: asyncio.Event) -> None:
        while True:
            await self._until_lost(closed)
            log.warning("listening connection lost")
            closed = await self._reconnect()

    async def _until_lost(self, closed: asyncio.Event) -> None:
        """A periodic query detects a peer that vanished silently."""
        while not closed.is_set():
            try:
                await asyncio.wait_for(closed.wait(), PING_SECONDS)
            except TimeoutError:
                try:
                    await self._connection.execute("SELECT 1")
                except FAILURES:
                    self._connection.terminate()
                    return

    async def _reconnect(self) -> asyncio.Event:
        pause = PAUSE_SECONDS
        while True:
            try:
                return await self._listen(tell_all=True)
            except FAILURES as error:
                log.warning("cannot listen", error=repr(error))
                await self._sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    async def _tell_all(self, connection: Any) -> None:
        rows = await connection.fetch("SELECT topic_id, partition, high_watermark FROM logs")
        for topic_id, partition, high_watermark in rows:
            self._listeners.tell((topic_id, partition), high_watermark)
