"""An Iceberg table in a catalog.

The state is a property of the table, set in the commit that adds the corresponding files: neither
compaction nor expiry of snapshots can separate them. Bad rows are in another table, which is
committed first; its commit lists the files of the good rows, so that a run that finds it ahead
completes the chunk.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table

from skylog.kernel.errors import ConfigError, SkylogError
from skylog.spark.jobs.chunks import Offsets, encode_offsets
from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.table.columns import BAD, Columns
from skylog.spark.jobs.table.state import State
from skylog.spark.jobs.table.target import Before, Files, Place

CATALOG: Final = "skylog"
_CATALOG_FILE: Final = "catalog.db"
_STATE: Final = "skylog.state"
_INTENT: Final = "skylog.intent"
_OFFSETS: Final = "skylog.offsets"
_COMMITS_TRIED: Final = 5
# Old metadata files would stay for ever; conflicts are handled by us.
_PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "0",
}


class TableInUse(SkylogError):  # noqa: N818 - reads well without Error
    """Another run has advanced the table."""


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """``name`` in PyIceberg's configuration; without one, a SQLite file beside the data."""

    name: str | None = None
    properties: Mapping[str, str] | None = None

    def open(self, to: str | None) -> Catalog:
        if self.name is None and not self.properties:
            return _beside(to)
        properties = dict(self.properties or {})
        if to is not None:
            properties["warehouse"] = Folder.at(to).url
        try:
            return load_catalog(self.name, **properties)
        except Exception as error:
            raise ConfigError(f"--catalog {self.name or ''}: {error}") from error


def _beside(to: str | None) -> Catalog:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - loads SQLAlchemy

    if to is None:
        raise ConfigError("--to or --catalog must say where the table is")
    folder = Folder.of(to)
    if not folder.url.startswith("file://"):
        raise ConfigError(f"--to {to} is not a directory: name the catalog with --catalog")
    path = folder.url.removeprefix("file://")
    return SqlCatalog(CATALOG, uri=f"sqlite:///{path}/{_CATALOG_FILE}", warehouse=folder.url)


class IcebergTarget:
    """``<namespace>.<name>`` and ``<namespace>.<name>_bad``."""

    def __init__(self, catalog: Catalog, name: str, before: Before) -> None:
        self._catalog = catalog
        self._name = name
        self._before = before
        self._run = secrets.token_hex(8)
        self._alone = False
        self._lost: Offsets | None = None

    @contextmanager
    def opened(self, initial: State) -> Iterator[State]:
        table = self._find(self._name) or self._create(initial)
        with Folder.at(table.location()).alone() as self._alone:
            yield self._load()

    def _find(self, name: str) -> Table | None:
        try:
            return self._table(name)
        except NoSuchTableError:
            return None

    def _table(self, name: str) -> Table:
        return self._catalog.load_table(name)

    @property
    def _bad_name(self) -> str:
        return f"{self._name}_bad"

    def _load(self) -> State:
        state = _state_of(self._table(self._name))
        if state is None:
            raise ConfigError(f"table {self._name} exists, but was not created by this job")
        intent = json.loads(self._table(self._bad_name).properties.get(_INTENT, "{}"))
        if intent.get("chunk") != state.chunk:
            return state
        after = State.decode(intent["state"], _INTENT)
        try:
            self._add(self._name, state, after, intent["files"])
        except FileNotFoundError:
            # Leftovers were removed: the good rows are written again, the bad ones exist.
            self._lost = after.offsets
            return state
        return after

    def _create(self, initial: State) -> Table:
        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        self._catalog.create_table_if_not_exists(self._bad_name, BAD, properties=_PROPERTIES)
        self._before("create")
        return self._catalog.create_table_if_not_exists(
            self._name,
            initial.columns.schema,
            properties={**_PROPERTIES, _STATE: initial.encode()},
        )

    def evolve(self, state: State, columns: Columns) -> State:
        state = replace(state, columns=columns)
        with self._table(self._name).transaction() as change:
            with change.update_schema() as schema:
                schema.union_by_name(columns.schema)
            change.set_properties({_STATE: state.encode()})
        return state

    def place(self, chunk: int) -> Place:
        good, bad = (self._chunk_folder(name, chunk) for name in (self._name, self._bad_name))
        self._sweep(self._name, chunk)
        if self._lost is None:
            self._sweep(self._bad_name, chunk)
        for folder in (good, bad):
            folder.remove()
        return Place(good, bad)

    def _data(self, table: str) -> Folder:
        return Folder.at(self._table(table).location()).below("data")

    def _chunk_folder(self, table: str, chunk: int) -> Folder:
        return self._data(table).below(f"{_chunk_name(chunk)}-{self._run}")

    def _sweep(self, table: str, chunk: int) -> None:
        """Remove what killed runs left: the next chunk has nothing in the table yet."""
        data = self._data(table)
        for name in data.names() if self._alone else ():
            if name.startswith(_chunk_name(chunk)):
                data.below(name).remove()

    def bad_until(self) -> Offsets | None:
        return self._lost

    def commit(self, before: State, after: State, files: Files) -> None:
        good = self._paths(self._name, before.chunk, files.good)
        if files.bad and self._lost is None:
            self._before("bad")
            bad = self._paths(self._bad_name, before.chunk, files.bad)
            self._add_bad(before, after, good, bad)
        self._before("good")
        self._add(self._name, before, after, good)
        if self._lost is not None:
            self._chunk_folder(self._bad_name, before.chunk).remove()
            self._lost = None
        self._before("end")

    def _paths(self, table: str, chunk: int, names: Sequence[str]) -> list[str]:
        folder = self._chunk_folder(table, chunk)
        return [f"{folder.url}/{name}" for name in names]

    def _add_bad(self, before: State, after: State, good: list[str], bad: list[str]) -> None:
        intent = {"chunk": before.chunk, "state": after.encode(), "files": good}
        table = self._table(self._bad_name)
        with table.transaction() as change:
            change.add_files(bad, _snapshot(after), check_duplicate_files=False)
            change.set_properties({_INTENT: json.dumps(intent)})

    def _add(self, name: str, before: State, after: State, files: list[str]) -> None:
        """Add files, if the table is still in the expected state; other changes to it do not
        matter."""
        for tries_left in reversed(range(_COMMITS_TRIED)):
            table = self._table(name)
            found = _state_of(table)
            if found is None or found.chunk != before.chunk:
                raise TableInUse(f"table {name} was written by another run of this job meanwhile")
            try:
                with table.transaction() as change:
                    change.add_files(files, _snapshot(after), check_duplicate_files=False)
                    change.set_properties({_STATE: after.encode()})
                return
            except CommitFailedException:
                if not tries_left:
                    raise


def _chunk_name(chunk: int) -> str:
    return f"chunk-{chunk:010d}"


def _state_of(table: Table) -> State | None:
    found = table.properties.get(_STATE)
    return None if found is None else State.decode(found, f"table {table.name()}")


def _snapshot(after: State) -> dict[str, str]:
    """For readers of the table's history."""
    return {_OFFSETS: json.dumps(encode_offsets(after.offsets))}


def check(columns: Columns) -> None:
    """ConfigError if Iceberg cannot have such columns."""
    from pyiceberg.io.pyarrow import (  # noqa: PLC0415 - slow to load
        UnsupportedPyArrowTypeException,
        _pyarrow_to_schema_without_ids,
    )

    try:
        _pyarrow_to_schema_without_ids(columns.schema)
    except (TypeError, ValueError, UnsupportedPyArrowTypeException) as error:
        raise ConfigError(f"--schema: Iceberg does not support it: {error}") from None
