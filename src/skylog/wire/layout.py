"""The wire layout of fields by version, shared by the reader and writer generators."""

from __future__ import annotations

import struct
from typing import Any, Final

from skylog.kernel.errors import invariant
from skylog.wire.schema import Field, Struct

# Struct format characters of the types with a fixed size.
FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
STRING_BYTES_MAX: Final = 32767
# Shorter arrays of numbers, such as lists of replicas, have precomputed formats.
SHORT_ARRAY: Final = 9
# Kafka nests structs at most four deep; a deeper schema is wrong.
STRUCT_DEPTH_MAX: Final = 10


def children(cls: type[Struct]) -> list[type[Struct]]:
    return [f.type for f in cls.FIELDS if isinstance(f.type, type)]


def has_records(cls: type[Struct]) -> bool:
    """Whether a message contains record batches, which are never copied."""
    own = any(f.type == "records" for f in cls.FIELDS)
    return own or any(has_records(child) for child in children(cls))


def plain_fields(cls: type[Struct], version: int, flexible: bool) -> list[Field]:
    """The fields of the body, in order."""
    return [
        f for f in cls.FIELDS if version in f.versions and not (flexible and version in f.tagged)
    ]


def tagged_fields(cls: type[Struct], version: int, flexible: bool) -> list[Field]:
    """The fields of the tagged section, in the order in which they are written."""
    found = [f for f in cls.FIELDS if flexible and version in f.versions and version in f.tagged]
    return sorted(found, key=lambda f: f.tag or 0)


def absent_fields(cls: type[Struct], version: int) -> list[Field]:
    return [f for f in cls.FIELDS if version not in f.versions]


def bytes_min(cls: type[Struct], version: int, flexible: bool, depth: int = 0) -> int:
    """The minimum size of an instance on the wire."""
    invariant(depth < STRUCT_DEPTH_MAX, f"{cls.__name__} nests too deep")
    fields = plain_fields(cls, version, flexible)
    return int(flexible) + sum(_field_bytes_min(f, version, flexible, depth) for f in fields)


def _field_bytes_min(field: Field, version: int, flexible: bool, depth: int) -> int:
    if field.array:
        return 1 if flexible else 4
    if isinstance(field.type, type):
        if version in field.nullable:
            return 1
        return bytes_min(field.type, version, flexible, depth + 1)
    return element_bytes_min(field.type, flexible and not field.never_flexible)


def element_bytes_min(kind: str, flexible: bool) -> int:
    if kind in FIXED:
        return struct.calcsize(">" + FIXED[kind])
    if flexible:
        return 1
    return 2 if kind == "string" else 4


class Source:
    """Lines of a function under construction, and the constants that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._names: dict[Any, str] = {}
        self._indent = 1

    def add(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def indent(self) -> None:
        self._indent += 1

    def dedent(self) -> None:
        self._indent -= 1

    def constant(self, prefix: str, key: Any, value: Any) -> str:
        """The name of a constant in the function; one name for equal keys."""
        name = self._names.get((prefix, key))
        if name is None:
            name = f"{prefix}{len(self._names)}"
            self._names[prefix, key] = name
            self.constants[name] = value
        return name

    def literal(self, value: Any) -> str:
        """A default as an expression."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        return self.constant("default", value, value)

    def text(self, head: str) -> str:
        return "\n".join([head, *self.lines, ""])
