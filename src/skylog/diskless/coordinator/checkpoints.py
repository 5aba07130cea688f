"""Checkpoints a coordinator's database in the background, without blocking its turns."""

from __future__ import annotations

import asyncio
import sqlite3

from skylog.diskless.coordinator.state import StateStore
from skylog.kernel.executor import Executor
from skylog.kernel.limits import DISKLESS_CHECKPOINT_PAGES_MAX, DISKLESS_TURNS_PER_CHECKPOINT
from skylog.kernel.logging import get_logger

_log = get_logger("diskless.coordinator")


class Checkpoints:
    """One at a time, after a number of turns with changes."""

    def __init__(self, coordinator_id: int, executor: Executor) -> None:
        self._coordinator_id = coordinator_id
        self._executor = executor
        self._turns = 0
        self._task: asyncio.Task[None] | None = None
        # The write-ahead log is long: it is reset only if there is no write during a checkpoint.
        self._needs_quiet = False

    def turn_is_over(self, state: StateStore, *, changed: bool) -> None:
        self._turns += changed
        if self._turns < DISKLESS_TURNS_PER_CHECKPOINT:
            return
        if self._task is None or self._task.done():
            self._turns = 0
            self._task = asyncio.get_running_loop().create_task(self._beside_turns(state))

    async def between_turns(self, state: StateStore, executor: Executor) -> None:
        """Checkpoint while no turn runs, if necessary."""
        if self._needs_quiet:
            self._needs_quiet = False
            await self._checkpoint(state, executor)

    async def settled(self) -> None:
        """Wait until the checkpoint has closed the database."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _beside_turns(self, state: StateStore) -> None:
        pages = await self._checkpoint(state, self._executor)
        self._needs_quiet = pages >= DISKLESS_CHECKPOINT_PAGES_MAX

    async def _checkpoint(self, state: StateStore, executor: Executor) -> int:
        try:
            return await executor.run(state.checkpoint)
        except (OSError, sqlite3.Error) as error:  # a lasting error also shows in turns
            _log.warning("checkpoint failed", coordinator=self._coordinator_id, why=str(error))
            return 0
