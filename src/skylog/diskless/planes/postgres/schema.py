"""Migrates a database to the newest schema: numbered scripts, each applied once, under a lock."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import Any, Final, NamedTuple

from skylog.kernel.errors import StorageError

_NAME: Final = re.compile(r"V(\d+)__(\w+)\.sql")
# Brokers that start together wait for each other at this advisory lock.
_LOCK: Final = 0x736B796C6F67

_HISTORY: Final = """
CREATE TABLE IF NOT EXISTS schema_history (
    version integer PRIMARY KEY, name text NOT NULL, digest text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


class Script(NamedTuple):
    version: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def scripts() -> list[Script]:
    """The scripts of this package, in order."""
    found = []
    for entry in files(__package__).joinpath("sql").iterdir():
        match = _NAME.fullmatch(entry.name)
        if match:
            found.append(Script(int(match[1]), match[2], entry.read_text()))
    return sorted(found)


def pending(known: list[Script], applied: dict[int, str]) -> list[Script]:
    """Pure: the scripts left to apply; refuses a database of another skylog."""
    newest = known[-1].version
    if applied and max(applied) > newest:
        raise StorageError(
            f"the database has schema version {max(applied)}, this skylog knows {newest}: "
            "use a newer skylog"
        )
    for script in known:
        digest = applied.get(script.version)
        if digest is not None and digest != script.digest:
            raise StorageError(
                f"schema script {script.version} ({script.name}) in the database differs: "
                "use a separate database for each cluster"
            )
    return [script for script in known if script.version not in applied]


async def migrate(connection: Any) -> list[int]:
    """Apply missing scripts, all or nothing; returns the versions applied."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_HISTORY)
        rows = await connection.fetch("SELECT version, digest FROM schema_history")
        todo = pending(scripts(), {row["version"]: row["digest"] for row in rows})
        for script in todo:
            await connection.execute(script.text)
            await connection.execute(
                "INSERT INTO schema_history (version, name, digest) VALUES ($1, $2, $3)",
                *(script.version, script.name, script.digest),
            )
    return [script.version for script in todo]
