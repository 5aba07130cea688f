"""A warm standby of a coordinator, on a broker that only follows its log.

It is the same cache that a leader has, fed from this broker's replica of the log up to its own high
watermark. If the broker becomes leader, little is left to apply. Until then it may answer finds,
slightly behind.

=========  ===================================================================================
state      goes to
=========  ===================================================================================
opening    following: the cache fits the log · fetching: the log begins after the cache
fetching   opening: the leader's snapshot is here
following  opening: the log was truncated or the cache failed · fetching: the log was pruned
=========  ===================================================================================

Failures are retried. ``stop`` ends it, and releases the files for the leader's runtime.
"""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from functools import partial
from typing import Final

from skylog.diskless.coordinator.links import Links
from skylog.diskless.coordinator.loading import replay
from skylog.diskless.coordinator.log import FollowedLog, MetadataPartition
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.replica import Replica
from skylog.diskless.coordinator.requests import FindBatches
from skylog.diskless.coordinator.snapshots import KEPT
from skylog.diskless.plane import FindResult
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.logging import get_logger

_log = get_logger("diskless.standby")
_RETRY_SECONDS: Final = 1.0


class Standby:
    """All calls come from the event loop."""

    def __init__(
        self,
        replica: Replica,
        partition: MetadataPartition,
        rules: PlaneRules,
        links: Links | None,
    ) -> None:
        """``links`` fetch the leader's snapshots; None if there are no other replicas."""
        self.coordinator_id = replica.coordinator_id
        self.snapshots = replica.snapshots
        self._replica = replica
        self._partition = partition
        self._log = FollowedLog(partition.log, replica.background)
        self._rules = rules
        self._links = links
        self._machine: CoordinatorMachine | None = None
        self._wakeup = asyncio.Event()
        self._ended = False
        # The log start up to which a snapshot is known to reach.
        self._covered = 0

    @property
    def applied_offset(self) -> int:
        return -1 if self._machine is None else self._machine.state.applied.end_offset

    def stop(self) -> None:
        """``run`` ends soon after."""
        self._ended = True
        self._wakeup.set()

    async def run(self) -> None:
        unsubscribe = self._partition.on_commit(lambda _: self._wakeup.set())
        try:
            while not self._ended:
                try:
                    await self._follow()
                except Exception as error:  # noqa: BLE001 - rebuilt from the log
                    _log.warning(
                        "standby starts over",
                        coordinator=self.coordinator_id,
                        why=str(error) or repr(error),
                    )
                    await self._rest()
        finally:
            unsubscribe()

    async def find(self, request: FindBatches) -> list[FindResult]:
        """What is known here to be committed; newer offsets are not treated as out of range."""
        machine = self._machine
        if machine is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        try:
            found: list[FindResult] = await self._replica.thread.run(partial(machine.find, request))
        except sqlite3.Error as error:  # it was just closed
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        return [
            replace(result, error=ErrorCode.NONE)
            if result.error is ErrorCode.OFFSET_OUT_OF_RANGE and one.offset > result.high_watermark
            else result
            for one, result in zip(request.requests, found, strict=True)
        ]

    async def _follow(self) -> None:
        run = self._replica.thread.run
        await self._known()
        await self._cover()
        if self._ended:
            return
        machine = await self._replica.load(self._log, self._rules)
        self._machine = machine
        doubtful = False
        try:
            while not self._ended:
                self._wakeup.clear()
                await self._catch_up(machine)
                await self._cover()
                if not self._ended:
                    await self._wakeup.wait()
        except (StorageError, sqlite3.Error):
            doubtful = True
            raise
        finally:
            self._machine = None
            await run(machine.state.close)
            if doubtful:
                await run(self._replica.factory.drop)

    async def _known(self) -> None:
        """Wait until this replica knows that what the cache contains is committed."""

        def applied() -> int:
            state = self._replica.factory.open()
            try:
                return state.applied.end_offset
            finally:
                state.close()

        end_offset = await self._replica.thread.run(applied)
        while self._log.end_offset < end_offset <= self._log.stored_end_offset:
            if self._ended:
                return
            self._wakeup.clear()
            await self._wakeup.wait()

    async def _catch_up(self, machine: CoordinatorMachine) -> None:
        applied = machine.state.applied.end_offset
        if applied > self._log.stored_end_offset:
            raise StorageError(f"the log was truncated to {self._log.stored_end_offset}")
        if applied < self._log.start_offset:
            raise StorageError(f"the log now begins at {self._log.start_offset}")
        async for batches in self._log.read(applied):
            await self._replica.thread.run(partial(replay, machine, batches))
            if self._ended:
                return

    async def _cover(self) -> None:
        """Keep a snapshot at which the log continues: without one a lost cache cannot be
        rebuilt."""
        start = self._log.start_offset
        links, run = self._links, self._replica.background.run
        if start <= self._covered or links is None:
            return
        numbers = await run(self.snapshots.ids)
        if not numbers or numbers[-1].offset < start:
            await links.fetch_snapshot(self.coordinator_id, self.snapshots)
            numbers = await run(self.snapshots.ids)
            for old in numbers[:-KEPT]:
                await run(partial(self.snapshots.remove, old))
        if numbers and numbers[-1].offset >= start:
            self._covered = start

    async def _rest(self) -> None:
        if not self._ended:
            self._wakeup.clear()
            try:
                async with asyncio.timeout(_RETRY_SECONDS):
                    await self._wakeup.wait()
            except TimeoutError:
                return
