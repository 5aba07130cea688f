"""The saved state of a job that writes to a topic, in a file named by the run's id.

A stopped run continues if it is started again with the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.folder import Folder

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class RunFile:
    """``<folder>/<job>-<id>.json``."""

    folder: Folder
    name: str

    @classmethod
    def of(cls, folder: str, job: str, run_id: str) -> RunFile:
        if _ID.fullmatch(run_id) is None:
            raise ConfigError(
                f"--run-id is {run_id!r}; allowed are up to 64 letters, digits, dots, - and _"
            )
        return cls(Folder.of(folder), f"{job}-{run_id}.json")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude other runs of this id, if possible."""
        with self.folder.alone(f"{self.name}.lock"):
            yield

    @property
    def url(self) -> str:
        return f"{self.folder.url}/{self.name}"

    def read(self) -> dict[str, Any] | None:
        try:
            found = self.folder.read_json(self.name)
        except ValueError as error:
            raise ConfigError(f"{self.url} is not the file of a run: {error}") from None
        if found is None:
            return None
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise ConfigError(f"{self.url} is not the file of a run of this release")
        return found

    def write(self, content: Mapping[str, Any]) -> None:
        self.folder.write_json(self.name, {"version": _VERSION, **content})


def check_same(found: Mapping[str, Any], wanted: Mapping[str, Any], url: str) -> None:
    """A run continues with its original arguments; ConfigError names those that differ."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ConfigError(
                f"the run in {url} began with {name} {found.get(name)!r}, not {value!r}; give a new"
                " run another --run-id"
            )
