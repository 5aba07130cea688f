"""A broker's files of a coordinator, in addition to its log, whether it leads or follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from skylog.diskless.coordinator.loading import CommittedLog, Loader, SqliteFactory, StateFactory
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.state import StateStore
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.executor import Executor, ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.files import Files

_DATABASE: Final = "state.sqlite"


@dataclass(frozen=True, slots=True)
class Replica:
    """The cache and the snapshots of one coordinator, in their own directory.

    Only ``thread`` uses the cache; ``background`` reads and syncs the log, and stores snapshots.
    """

    coordinator_id: int
    directory: Path
    factory: StateFactory
    snapshots: Snapshots
    thread: Executor
    background: Executor

    async def prepare(self) -> None:
        await self.thread.run(
            partial(self.directory.mkdir, mode=0o700, parents=True, exist_ok=True)
        )

    async def load(self, log: CommittedLog, rules: PlaneRules) -> CoordinatorMachine:
        """The machine as of the log's end."""

        def create(state: StateStore) -> CoordinatorMachine:
            return CoordinatorMachine(self.coordinator_id, state, rules)

        return await Loader(self.factory, self.snapshots, log, self.thread, create).load()

    def close(self) -> None:
        if isinstance(self.thread, ThreadExecutor):
            self.thread.close()


class ReplicaStore:
    """Where a broker keeps its replicas of coordinators."""

    def __init__(
        self,
        directory: Path,
        files: Files,
        background: Executor,
        new_thread: Callable[[str], Executor] = lambda name: ThreadExecutor(1, name),
        new_factory: Callable[[Path, str], StateFactory] = SqliteFactory,
    ) -> None:
        self.background = background
        self._directory = directory
        self._files = files
        self._new_thread = new_thread
        self._new_factory = new_factory
        # A new leader continues with the cache that it had as a follower.
        self._factories: dict[Path, StateFactory] = {}

    def open(self, coordinator_id: int, topic_id: Uuid, role: str) -> Replica:
        """For one term as leader or follower, on its own thread."""
        identity = f"{topic_id}-{coordinator_id}"
        directory = self._directory / identity
        if directory not in self._factories:
            self._factories[directory] = self._new_factory(directory / _DATABASE, identity)
        return Replica(
            coordinator_id,
            directory,
            self._factories[directory],
            Snapshots(self._files, directory),
            self._new_thread(f"diskless-{role}-{coordinator_id}"),
            self.background,
        )
