"""Generates the source of a reader: one function that decodes one message in one version.

Nested structs are inlined, adjacent fixed-size fields are unpacked together with the length that
follows them, and attributes are set on a bare instance, so the common path makes few calls. The
shape of the function::

    def read(data, p):          # p: position, end: length of data
        end = len(data)
        o0 = new(FetchRequest)
        o0.max_wait_ms, o0.min_bytes, n = unpack3(data, p)
        p += 9
        ...
        return o0, p

Reads past the end raise ``struct.error`` or ``IndexError``, which ``codec.py`` turns into
ProtocolError; lengths that a slice would silently cut (strings, bytes, counts) are compared with
``end``.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import WIRE_EMPTY_ELEMENTS_MAX, WIRE_REQUEST_ELEMENTS_MAX
from skylog.wire.buffers import Buffer
from skylog.wire.layout import (
    FIXED,
    SHORT_ARRAY,
    STRING_BYTES_MAX,
    Source,
    absent_fields,
    bytes_min,
    element_bytes_min,
    plain_fields,
    tagged_fields,
)
from skylog.wire.schema import Field, Struct


def unsigned_varint(data: Buffer, position: int, first: int) -> tuple[int, int]:
    """Continue after the first byte of a multi-byte varint: (value, next position)."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ProtocolError("a varint of more than 32 bits")


def skip_tags(data: Buffer, position: int, count: int) -> int:
    """Skip a tagged section in which this version knows no fields."""
    end = len(data)
    if count > 127:
        count, position = unsigned_varint(data, position, count)
    for _ in range(count):
        tag = data[position]
        position += 1
        if tag > 127:
            tag, position = unsigned_varint(data, position, tag)
        size = data[position]
        position += 1
        if size > 127:
            size, position = unsigned_varint(data, position, size)
        position += size
        if position > end:
            raise bad_size("tagged fields", size)
    return position


def bad_size(name: str, size: int) -> ProtocolError:
    return ProtocolError(f"{name}: invalid size {size}")


def too_many() -> ProtocolError:
    return ProtocolError(f"a request of more than {WIRE_REQUEST_ELEMENTS_MAX} elements")


HELPERS: Final[dict[str, Any]] = {
    "Uuid": Uuid,
    "bad_size": bad_size,
    "new": object.__new__,
    "skip_tags": skip_tags,
    "too_many": too_many,
    "unpack_from": struct.unpack_from,
    "unsigned_varint": unsigned_varint,
}


class ReaderSource:
    """Generates the function's source for one class and version."""

    def __init__(self, version: int, flexible: bool, view: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._view = view  # the data is a memoryview: it contains record batches
        self._source = Source()
        # A request's elements are counted: each costs the broker work, and its sender only a few
        # bytes.
        self._counted = False
        # Fixed-size fields that are still to be unpacked: format, target.
        self._run: list[tuple[str, str]] = []

    def build(self, cls: type[Struct]) -> tuple[str, dict[str, Any]]:
        self._source.add("end = len(data)")
        self._counted = getattr(cls, "TYPE", "") == "request"
        if self._counted:
            self._source.add("count = 0")
        self._struct(cls, "o0", 0)
        self._source.add("return o0, p")
        return self._source.text("def read(data, p):"), {**HELPERS, **self._source.constants}

    def _struct(self, cls: type[Struct], var: str, depth: int) -> None:
        source = self._source
        source.add(f"{var} = new({source.constant('class_', cls, cls)})")
        for field in absent_fields(cls, self._version):
            self._default(field, f"{var}.{field.name}", depth)
        for field in plain_fields(cls, self._version, self._flexible):
            self._field(field, f"{var}.{field.name}", depth)
        if self._flexible:
            self._tags(tagged_fields(cls, self._version, True), var, depth)
        self._flush()

    def _default(self, field: Field, target: str, depth: int) -> None:
        source = self._source
        if field.default is ...:
            self._default_struct(field.type, target, depth + 1)
        elif field.array and field.default is not None:
            source.add(f"{target} = []")
        else:
            source.add(f"{target} = {source.literal(field.default)}")

    def _default_struct(self, cls: Any, target: str, depth: int) -> None:
        source = self._source
        var = f"d{depth}"
        source.add(f"{target} = {var} = new({source.constant('class_', cls, cls)})")
        for field in cls.FIELDS:
            self._default(field, f"{var}.{field.name}", depth)

    # Runs of fixed-size fields ------------------------------------------------------------

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        source = self._source
        layout = ">" + "".join(kind for kind, _ in run)
        if layout == ">B":
            source.add(f"{run[0][1]} = data[p]")
        else:
            unpack = source.constant("unpack", layout, struct.Struct(layout).unpack_from)
            # An id is unpacked into a variable first, because it has to be converted to a Uuid.
            targets = [f"u{i}" if kind == "16s" else name for i, (kind, name) in enumerate(run)]
            left = ", ".join(targets) + ("," if len(run) == 1 else "")
            source.add(f"{left} = {unpack}(data, p)")
        source.add(f"p += {struct.calcsize(layout)}")
        for position, (kind, target) in enumerate(run):
            if kind == "16s":
                source.add(f"{target} = Uuid(u{position})")

    def _length(self, flexible: bool, fixed: str = "i", check: str = "") -> None:
        """Read a length into ``n``, together with the run before it; compact lengths count from
        1."""
        self._run.append(("B" if flexible else fixed, "n"))
        self._flush()
        if flexible:
            self._source.add("if n > 127:")
            self._source.add("    n, p = unsigned_varint(data, p, n)")
            if check:
                self._source.add(f"    {check}")

    # Fields -------------------------------------------------------------------------------

    def _field(self, field: Field, target: str, depth: int) -> None:
        nullable = self._version in field.nullable
        if field.array:
            self._array(field, target, nullable, depth)
        elif isinstance(field.type, type):
            # A nullable struct is marked by a byte; in the tagged section by a varint.
            tagged = self._flexible and self._version in field.tagged
            null = ("n == 0" if tagged else "n < 0") if nullable else ""
            self._nested(field.type, target, null, depth)
        elif field.type in FIXED:
            self._run.append((FIXED[field.type], target))
        else:
            flexible = self._flexible and not field.never_flexible
            self._sized(field.type, target, nullable, flexible, field.name)

    def _nested(self, cls: type[Struct], target: str, null: str, depth: int) -> None:
        var = f"o{depth + 1}"
        source = self._source
        if not null:
            self._flush()
            self._struct(cls, var, depth + 1)
            source.add(f"{target} = {var}")
            return
        self._run.append(("b", "n"))
        self._flush()
        source.add(f"if {null}:")
        source.add(f"    {target} = None")
        source.add("else:")
        source.indent()
        self._struct(cls, var, depth + 1)
        source.add(f"{target} = {var}")
        source.dedent()

    def _sized(self, kind: str, target: str, nullable: bool, flexible: bool, name: str) -> None:
        """A string, bytes or records: a length, then as many bytes."""
        source = self._source
        limit = f"if n > {STRING_BYTES_MAX + 1}: raise bad_size({name!r}, n - 1)"
        if kind == "string":
            self._length(flexible, "h", limit)
        else:
            self._length(flexible)
        if nullable:
            source.add(f"if n {'== 0' if flexible else '< 0'}: {target} = None")
            source.add("else:")
            source.indent()
        source.add(f"q = p + n{' - 1' if flexible else ''}")
        low = "" if nullable else "p <= "
        source.add(f"if not {low}q <= end: raise bad_size({name!r}, q - p)")
        source.add(f"{target} = {self._slice(kind)}")
        source.add("p = q")
        if nullable:
            source.dedent()

    def _slice(self, kind: str) -> str:
        if kind == "string":
            return 'str(data[p:q], "utf-8")' if self._view else "data[p:q].decode()"
        return "bytes(data[p:q])" if self._view and kind == "bytes" else "data[p:q]"

    def _array(self, field: Field, target: str, nullable: bool, depth: int) -> None:
        source = self._source
        flexible = self._flexible
        self._length(flexible)
        if flexible:
            source.add("n -= 1")
        if nullable:
            source.add(f"if n < 0: {target} = None")
            source.add("else:")
            source.indent()
        self._elements(field, target, depth)
        if nullable:
            source.dedent()

    def _elements(self, field: Field, target: str, depth: int) -> None:
        source = self._source
        name = field.name
        if isinstance(field.type, type):
            size = bytes_min(field.type, self._version, self._flexible)
        else:
            size = element_bytes_min(field.type, self._flexible)
        bound = f"n * {size} <= end - p" if size else f"n <= {WIRE_EMPTY_ELEMENTS_MAX}"
        source.add(f"if n < 0 or not {bound}: raise bad_size({name!r}, n)")
        if self._counted:
            source.add("count += n")
            source.add(f"if count > {WIRE_REQUEST_ELEMENTS_MAX}: raise too_many()")
        if isinstance(field.type, str) and field.type in FIXED and field.type != "uuid":
            self._numbers(FIXED[field.type], target, size)
            return
        each = depth + 1
        source.add(f"{target} = l{each} = []")
        source.add(f"a{each} = l{each}.append")
        source.add("for _ in range(n):")
        source.indent()
        var = f"o{each}"
        if isinstance(field.type, type):
            self._struct(field.type, var, each)
        elif field.type == "uuid":
            self._run.append(("16s", var))
            self._flush()
        else:
            self._sized(field.type, var, False, self._flexible, name)
        source.add(f"a{each}({var})")
        source.dedent()

    def _numbers(self, kind: str, target: str, size: int) -> None:
        """An array of numbers: short ones, such as lists of replicas, with a precomputed format."""
        source = self._source
        formats = tuple(struct.Struct(f">{n}{kind}").unpack_from for n in range(SHORT_ARRAY))
        short = source.constant("short", kind, formats)
        source.add(f"if n < {SHORT_ARRAY}: {target} = list({short}[n](data, p))")
        source.add(f'else: {target} = list(unpack_from(f">{{n}}{kind}", data, p))')
        source.add(f"p += n * {size}")

    # Tagged fields ------------------------------------------------------------------------

    def _tags(self, fields: list[Field], var: str, depth: int) -> None:
        source = self._source
        self._run.append(("B", "n"))
        self._flush()
        if not fields:
            source.add("if n: p = skip_tags(data, p, n)")
            return
        for field in fields:
            self._default(field, f"{var}.{field.name}", depth)
        source.add("if n:")
        source.indent()
        source.add("if n > 127: n, p = unsigned_varint(data, p, n)")
        source.add('if n > end - p: raise bad_size("tagged fields", n)')
        source.add("for _ in range(n):")
        source.indent()
        for number in ("t", "n"):
            source.add(f"{number} = data[p]")
            source.add("p += 1")
            source.add(f"if {number} > 127: {number}, p = unsigned_varint(data, p, {number})")
        source.add(f"e{depth} = p + n")
        source.add(f'if e{depth} > end: raise bad_size("tagged fields", n)')
        for position, field in enumerate(fields):
            source.add(f"{'elif' if position else 'if'} t == {field.tag}:")
            source.indent()
            self._field(field, f"{var}.{field.name}", depth)
            self._flush()
            source.add(f"if p != e{depth}: raise bad_size({field.name!r}, e{depth} - p)")
            source.dedent()
        source.add(f"else: p = e{depth}")
        source.dedent()
        source.dedent()
