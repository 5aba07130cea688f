"""The local filler: copies committed batches into local logs in the background.

1. *Notification.* A commit through any broker queues its partition for a round.
2. *Round.* The plane is asked once for all partitions of the round; the bytes come from memory or
   the bucket, with offsets set, and are appended on a thread.
3. *Visibility.* Fetches that wait at the tail are woken by the append, not by the commit. If it
   takes too long, they are woken anyway and answered from objects.

Nothing depends on a copy. If a disk fails, a batch cannot be read or a copy is inconsistent, the
partition is served from objects, and copied again later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Final

from skylog.diskless.local import plan
from skylog.diskless.local.copy import LocalCopy, remove_directory
from skylog.diskless.local.partitions import LocalPartitions
from skylog.diskless.local.round import LocalCopies, Round
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks

_log = get_logger("diskless.local")

# How often every partition is checked: its log start may move without a commit.
REFRESH_SECONDS: Final = 5.0
_TICK_SECONDS: Final = 0.25


class LocalFiller:
    """All calls come from the event loop."""

    def __init__(self, local: LocalCopies, work: asyncio.Event) -> None:
        """``work`` is set when a partition is queued for a round."""
        self._local = local
        self._partitions = local.partitions
        self._work = work
        self._rounds: dict[asyncio.Task[None], Round] = {}

    @property
    def partitions(self) -> LocalPartitions:
        return self._partitions

    async def run(self) -> None:
        """Copy what is committed, until cancelled; metadata must have been read before."""
        partitions, clock = self._partitions, self._local.clock
        try:
            await self._local.threads.run(
                partial(self._remove_strays, {one.place.directory for one in partitions})
            )
            refresh_at = clock.monotonic() + REFRESH_SECONDS
            tick_at = 0.0
            while True:
                self._work.clear()
                now = clock.monotonic()
                if now >= refresh_at:
                    refresh_at = now + REFRESH_SECONDS
                    partitions.look_at_all()
                if now >= tick_at:
                    tick_at = now + _TICK_SECONDS
                    partitions.give_up_waiting()
                self._start_rounds()
                busy = bool(self._rounds) or partitions.waits
                await self._wait((tick_at if busy else refresh_at) - now)
        finally:
            await self._stop()

    async def close(self) -> None:
        """Close the files for the next start; ``run`` has ended."""
        copies = [one.copy for one in self._partitions if one.copy is not None]
        await self._local.threads.run(partial(_close_all, copies))

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await self._work.wait()

    def _start_rounds(self) -> None:
        tails = sum(one.tail for one in self._rounds.values())
        under_way = plan.Rounds(tails, len(self._rounds) - tails)
        ready = [(one.following, one) for one in self._partitions.ready()]
        for tail, ones in zip((True, False), plan.next_rounds(ready, under_way), strict=True):
            if ones:
                started = Round(self._local, ones, tail=tail)
                task = asyncio.ensure_future(started.run())
                self._rounds[task] = started
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._rounds[task]
        self._work.set()
        if not task.cancelled() and task.exception() is not None:
            _log.error("copying round failed", why=repr(task.exception()))

    async def _stop(self) -> None:
        await end_tasks(self._rounds)
        await self._local.threads.settled()
        for one in self._partitions:
            self._partitions.stop_following(one)

    def _remove_strays(self, hosted: set[str]) -> None:
        """Directories of partitions that this broker does not host; on a thread."""
        directory = self._partitions.directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in sorted(directory.iterdir()):
                if path.is_dir() and str(path) not in hosted:
                    remove_directory(self._local.files, str(path))
        except OSError as error:
            self._partitions.stats.disk_errors += 1
            _log.error("local copies cannot be checked", directory=directory, why=str(error))


def _close_all(copies: Sequence[LocalCopy]) -> None:
    for copy in copies:
        try:
            copy.close()
        except OSError as error:
            _log.warning("a local copy did not close", why=str(error))
