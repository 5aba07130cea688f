"""Builds a coordinator from its cache, or from snapshot and log if the cache is in any doubt."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.schema import UnusableDatabase
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.sqlite import SqliteState, remove_database
from skylog.diskless.coordinator.state import Applied, StateStore
from skylog.kernel.errors import StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.logging import get_logger
from skylog.wire.batch import Batch
from skylog.wire.metadata_records import decode_diskless
from skylog.wire.records import decode_records
from skylog.wire.schema import Message

_log = get_logger("diskless.coordinator")


class StateFactory(Protocol):
    """The storage of a coordinator's cache. Blocks; used on the coordinator's thread."""

    def open(self) -> StateStore:
        """The existing cache, or an empty one."""
        ...

    def drop(self) -> None: ...


class SqliteFactory:
    """A file. If it is damaged, foreign or of another version, an empty one replaces it.

    All of it is read and checked when it is first opened; later only this process has used it.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path = path
        self._identity = identity
        self._checked = False

    def open(self) -> StateStore:
        check, self._checked = not self._checked, True
        try:
            return SqliteState(self._path, self._identity, check=check)
        # SQLite quotes damaged bytes in its messages, which are then not valid text.
        except (UnusableDatabase, sqlite3.Error, UnicodeDecodeError) as error:
            _log.warning("coordinator cache dropped", path=str(self._path), why=str(error))
            self.drop()
            return SqliteState(self._path, self._identity)

    def drop(self) -> None:
        remove_database(self._path)


class MemoryFactory:
    """Nothing outlasts the process."""

    def open(self) -> StateStore:
        return MemoryState()

    def drop(self) -> None:
        """Nothing is kept."""


class CommittedLog(Protocol):
    """The committed part of a coordinator's log."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def read(self, offset: int) -> AsyncIterator[list[Batch]]: ...


class Loader:
    """Loads one coordinator, once."""

    def __init__(
        self,
        factory: StateFactory,
        snapshots: Snapshots,
        log: CommittedLog,
        executor: Executor,
        create: Callable[[StateStore], CoordinatorMachine],
    ) -> None:
        self._factory = factory
        self._snapshots = snapshots
        self._log = log
        self._executor = executor
        self._create = create

    async def load(self) -> CoordinatorMachine:
        """Applies everything up to the log's end, which must be committed."""
        await self._executor.run(self._snapshots.remove_unfinished)
        machine = self._create(await self._executor.run(self._factory.open))
        try:
            if await self._fits(machine.state.applied):
                await self._replay(machine)
                return machine
            _log.info("rebuilding coordinator", coordinator=machine.coordinator_id)
        except Exception as error:  # noqa: BLE001 - any damage: rebuilt from the log
            _log.warning("coordinator cache unusable", why=repr(error))
        return await self._rebuild(machine)

    async def _fits(self, applied: Applied) -> bool:
        """Whether the cache belongs to this log, and the log continues at its end."""
        end_offset = applied.end_offset
        if not self._log.start_offset <= end_offset <= self._log.end_offset:
            return False
        if applied.last_base_offset < self._log.start_offset:
            return True
        async for batches in self._log.read(applied.last_base_offset):
            last = batches[0]
            return (last.base_offset, last.crc, last.next_offset) == (
                applied.last_base_offset,
                applied.last_crc,
                end_offset,
            )
        return False

    async def _rebuild(self, machine: CoordinatorMachine) -> CoordinatorMachine:
        for number in [*reversed(await self._executor.run(self._snapshots.ids)), None]:
            end_offset = number.offset if number else 0
            if not self._log.start_offset <= end_offset <= self._log.end_offset:
                continue
            machine = await self._executor.run(partial(self._empty, machine))
            try:
                if number is not None:
                    load = partial(self._snapshots.load, number)
                    await self._executor.run(partial(load_snapshot, machine, load, number.offset))
            except StorageError as error:
                _log.error("coordinator snapshot unusable", why=str(error))
                continue
            await self._replay(machine)
            return machine
        raise StorageError(
            f"coordinator {machine.coordinator_id}: no complete snapshot reaches the log's start,"
            f" {self._log.start_offset}"
        )

    def _empty(self, machine: CoordinatorMachine) -> CoordinatorMachine:
        machine.state.close()
        self._factory.drop()
        return self._create(self._factory.open())

    async def _replay(self, machine: CoordinatorMachine) -> None:
        async for batches in self._log.read(machine.state.applied.end_offset):
            await self._executor.run(partial(replay, machine, batches))


def load_snapshot(
    machine: CoordinatorMachine,
    load: Callable[[Callable[[list[Message], int], None]], None],
    end_offset: int,
) -> None:
    """All records of a snapshot, which replaces the log up to ``end_offset``."""
    with machine.state.transaction():
        load(lambda records, timestamp_ms: machine.restore(records, end_offset, timestamp_ms))


def replay(machine: CoordinatorMachine, batches: Sequence[Batch]) -> None:
    """Committed batches of the log, in one transaction."""
    with machine.state.transaction():
        for batch in batches:
            if batch.base_offset != machine.state.applied.end_offset:
                raise StorageError(
                    f"after offset {machine.state.applied.end_offset} comes {batch.base_offset}"
                )
            values = [decode_diskless(record.value) for record in decode_records(batch)]
            records = [record for record in values if record is not None]
            applied = Applied(batch.next_offset, batch.max_timestamp, batch.base_offset, batch.crc)
            machine.apply(records, applied)
    machine.committed()
