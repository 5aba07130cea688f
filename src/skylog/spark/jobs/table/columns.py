"""The columns of a table: those that every record has, and those decoded from its value.

Pure. Columns are only added and widened, as Iceberg allows; a field whose type changes otherwise
does not fit.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TIMESTAMP: Final = pa.timestamp("us", "UTC")
# The columns of every record; a value's fields cannot have these names.
RECORD: Final = pa.schema(
    [
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", _TIMESTAMP),
        ("_key", pa.binary()),
        ("_headers", _HEADERS),
        ("_tombstone", pa.bool_()),
    ]
)
BAD: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIMESTAMP),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("error", pa.string()),
    ]
)
_SOURCE: Final = b"source"


@dataclass(frozen=True, slots=True)
class Columns:
    """The decoded columns. Each has the name of its field in the value, if that differs."""

    fields: tuple[pa.Field, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The table's, as in its files."""
        return pa.schema([*RECORD, *(field.remove_metadata() for field in self.fields)])

    @property
    def sources(self) -> pa.Schema:
        """The value's fields, in the order of the columns."""
        return pa.schema([pa.field(source_of(field), field.type) for field in self.fields])

    def merge(self, found: Iterable[pa.Field]) -> tuple[Columns, list[str]]:
        """Columns for these fields as well, and descriptions of those that do not fit."""
        columns = {source_of(field): field for field in self.fields}
        taken = {name.lower() for name in (*RECORD.names, *(f.name for f in self.fields))}
        conflicts: list[str] = []
        for field in found:
            kept = columns.get(field.name)
            if kept is None:
                name = _free(field.name, taken)
                taken.add(name.lower())
                kept = _column(name, field)
            columns[field.name] = kept.with_type(
                merge_types(kept.type, field.type, field.name, conflicts)
            )
        return Columns(tuple(columns.values())), conflicts

    def encode(self) -> str:
        return base64.b64encode(pa.schema(self.fields).serialize()).decode()

    @classmethod
    def decode(cls, text: str) -> Columns:
        return cls(tuple(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))))


def source_of(field: pa.Field) -> str:
    """The name of a column's field in the value."""
    found = (field.metadata or {}).get(_SOURCE)
    return str(field.name if found is None else found.decode())


def _column(name: str, field: pa.Field) -> pa.Field:
    renamed = {_SOURCE: field.name.encode()} if name != field.name else None
    return pa.field(name, field.type, nullable=True, metadata=renamed)


def _free(name: str, taken: set[str]) -> str:
    """A name that no other column has, ignoring case; without dots, which would be paths."""
    name = name.replace(".", "_") or "_"
    while name.lower() in taken:
        name += "_"
    return name


def merge_types(kept: Any, found: Any, path: str, conflicts: list[str]) -> Any:
    """A type for the values of both, by Iceberg's promotions; otherwise the kept one."""
    types = pa.types
    if types.is_struct(kept) and types.is_struct(found):
        return _merge_structs(kept, found, path, conflicts)
    if types.is_list(kept) and types.is_list(found):
        return pa.list_(merge_types(kept.value_type, found.value_type, f"{path}[]", conflicts))
    if types.is_map(kept) and types.is_map(found) and kept.key_type == found.key_type:
        item = merge_types(kept.item_type, found.item_type, f"{path}{{}}", conflicts)
        return pa.map_(kept.key_type, item)
    if kept.equals(found):
        return kept
    for narrow, wide in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64())):
        if {kept, found} == {narrow, wide}:
            return wide
    if types.is_decimal128(kept) and types.is_decimal128(found) and kept.scale == found.scale:
        return kept if kept.precision >= found.precision else found
    conflicts.append(f"{path} is {found}, the table has {kept}")
    return kept


def _merge_structs(kept: Any, found: Any, path: str, conflicts: list[str]) -> Any:
    fields: dict[str, Any] = {}
    # The kept ones, too: JSON may have a field twice.
    for field in (*kept, *found):
        known = fields.get(field.name, field)
        kind = merge_types(known.type, field.type, f"{path}.{field.name}", conflicts)
        fields[field.name] = pa.field(field.name, kind)
    return pa.struct(list(fields.values()))
