"""The common interface of Parquet files and Iceberg tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from skylog.spark.jobs.chunks import Offsets
from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.table.columns import Columns
from skylog.spark.jobs.table.state import State

# Called with the name of each step before it is done.
Before = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files of a chunk are written."""

    good: Folder
    bad: Folder


@dataclass(frozen=True, slots=True)
class Files:
    """The names of a chunk's files."""

    good: Sequence[str] = ()
    bad: Sequence[str] = ()


class Target(Protocol):
    """A table and the table of its bad rows.

    ``opened`` completes what an earlier run was about to commit. ``commit`` adds a chunk's files
    and the new state to the table; if it is killed at any point, the next run completes it.
    """

    def opened(self, initial: State) -> AbstractContextManager[State]:
        """The table's state, the initial one if it is new; excludes other runs if possible."""
        ...

    def evolve(self, state: State, columns: Columns) -> State:
        """Add and widen columns, before a chunk that has them."""
        ...

    def place(self, chunk: int) -> Place:
        """An empty place for a chunk's files."""
        ...

    def bad_until(self) -> Offsets | None:
        """Where the next chunk must end, if its bad rows are already in their table."""
        ...

    def commit(self, before: State, after: State, files: Files) -> None: ...
