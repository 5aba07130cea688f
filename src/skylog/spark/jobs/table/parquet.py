"""A table of plain Parquet files in a directory or bucket.

A chunk's files are written to a temporary place. Then an intent is written that lists them and
contains the new state, they are moved to where readers look, the state is written, and the intent
is removed. A run that finds an intent completes it; files without one are written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from skylog.spark.jobs.chunks import Offsets
from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.table.columns import Columns
from skylog.spark.jobs.table.state import State
from skylog.spark.jobs.table.target import Before, Files, Place

# Readers of directories skip names with these prefixes.
_ASIDE: Final = "_skylog"
_STATE: Final = "state.json"
_INTENT: Final = "intent.json"
_STAGING: Final = "staging"


class ParquetTarget:
    """``<to>/<name>/*.parquet`` and ``<to>/<name>_bad/*.parquet``."""

    def __init__(self, to: str, name: str, before: Before) -> None:
        root = Folder.of(to)
        self._good = root.below(name)
        self._bad = root.below(f"{name}_bad")
        self._aside = self._good.below(_ASIDE)
        self._before = before

    @contextmanager
    def opened(self, initial: State) -> Iterator[State]:
        with self._aside.alone():
            intent = self._aside.read_json(_INTENT)
            if intent is not None:
                self._complete(State.decode(intent["state"], _INTENT), Files(**intent["files"]))
            found = self._aside.read(_STATE)
            if found is None:
                self._put(initial)
                yield initial
            else:
                yield State.decode(found, f"{self._aside.url}/{_STATE}")

    def evolve(self, state: State, columns: Columns) -> State:
        state = replace(state, columns=columns)
        self._put(state)
        return state

    def _put(self, state: State) -> None:
        self._aside.write(_STATE, [state.encode().encode()])

    def place(self, chunk: int) -> Place:
        staging = self._aside.below(_STAGING)
        staging.remove()
        return Place(staging.below("good"), staging.below("bad"))

    def bad_until(self) -> Offsets | None:
        return None

    def commit(self, before: State, after: State, files: Files) -> None:
        self._before("intent")
        listed = {"good": list(files.good), "bad": list(files.bad)}
        intent = json.dumps({"state": after.encode(), "files": listed})
        self._aside.write(_INTENT, [intent.encode()])
        self._complete(after, files)

    def _complete(self, state: State, files: Files) -> None:
        staging = self._aside.below(_STAGING)
        for name in files.bad:
            self._before("move bad")
            staging.below("bad").move(name, self._bad)
        for name in files.good:
            self._before("move good")
            staging.below("good").move(name, self._good)
        self._before("state")
        self._put(state)
        self._before("end")
        self._aside.remove(_INTENT)
