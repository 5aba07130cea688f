"""Generates the source of a writer: one function that encodes one message in one version.

The counterpart of ``reader_source.py``; the function appends parts to a list::

    def write(o0, out, marks):
        w = out.append
        w(pack3(o0.max_wait_ms, o0.min_bytes))
        ...

``marks`` gets the index of every part that is a record batch: those are sent unchanged. A field
that the version does not have must have its default, unless it is *ignorable* in Kafka, so that no
value is silently dropped.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.layout import (
    FIXED,
    SHORT_ARRAY,
    STRING_BYTES_MAX,
    Source,
    absent_fields,
    plain_fields,
    tagged_fields,
)
from skylog.wire.schema import Field, Struct


def pack_unsigned_varint(value: int) -> bytes:
    """A varint; those of one to three bytes without a loop."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unsupported(name: str, version: int) -> ProtocolError:
    return ProtocolError(f"{name} has a value, but version {version} cannot carry it")


def pack_string_varint(value: int) -> bytes:
    """The length of a string that is not short, plus one; limited only by Kafka's maximum."""
    if value > STRING_BYTES_MAX + 1:
        raise ProtocolError(f"a string of {value - 1} bytes; {STRING_BYTES_MAX} are allowed")
    return pack_unsigned_varint(value)


# Kafka writes lengths as varints; nearly all of them take one byte.
SMALL_VARINTS: Final = tuple(bytes((n,)) for n in range(128))
HELPERS: Final[dict[str, Any]] = {
    "pack": struct.pack,
    "small": SMALL_VARINTS,
    "string_varint": pack_string_varint,
    "unsupported": unsupported,
    "varint": pack_unsigned_varint,
}


class WriterSource:
    """Generates the function's source for one class and version."""

    def __init__(self, version: int, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._source = Source()
        self._write = "w"
        # Fixed-size values that are still to be packed: format, expression.
        self._run: list[tuple[str, str]] = []

    def build(self, cls: type[Struct]) -> tuple[str, dict[str, Any]]:
        self._source.add("w = out.append")
        self._struct(cls, "o0", 0)
        return self._source.text("def write(o0, out, marks):"), {
            **HELPERS,
            **self._source.constants,
        }

    def _struct(self, cls: type[Struct], var: str, depth: int) -> None:
        source = self._source
        for field in absent_fields(cls, self._version):
            if not field.ignorable:
                source.add(f"if {self._differs(field, f'{var}.{field.name}')}:")
                source.add(f"    raise unsupported({field.name!r}, {self._version})")
        for field in plain_fields(cls, self._version, self._flexible):
            self._field(field, f"{var}.{field.name}", depth)
        if self._flexible:
            self._tags(tagged_fields(cls, self._version, True), var, depth)
        self._flush()

    def _differs(self, field: Field, value: str) -> str:
        """An expression that is true if a field does not have its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is ...:
            assert isinstance(field.type, type)  # noqa: S101 - for the type checker
            inner = " or ".join(self._differs(f, f"{value}.{f.name}") for f in field.type.FIELDS)
            null = f"{value} is None or " if field.nullable.high >= 0 else ""
            return f"({null}{inner})"
        if field.array:
            null = f"{value} is None or " if field.nullable.high >= 0 else ""
            return f"({null}len({value}) > 0)"
        return f"{value} != {self._source.literal(field.default)}"

    # Runs of fixed-size values ------------------------------------------------------------

    def _packed(self, run: list[tuple[str, str]]) -> str:
        layout = ">" + "".join(kind for kind, _ in run)
        pack = self._source.constant("pack", layout, struct.Struct(layout).pack)
        return f"{pack}({', '.join(value for kind, value in run if kind != 'x')})"

    def _flush(self) -> None:
        run, self._run = self._run, []
        if run:
            only_zero = len(run) == 1 and run[0][0] == "x"
            self._source.add(f"{self._write}({'small[0]' if only_zero else self._packed(run)})")

    def _length(self, flexible: bool, fixed: str = "i", varint: str = "varint") -> None:
        """Write the length in ``n`` together with the run before it."""
        if not flexible:
            self._run.append((fixed, "n"))
            self._flush()
            return
        run, self._run = self._run, []
        if run:
            short = self._packed([*run, ("B", "n")])
            long = f"{self._packed(run)} + {varint}(n)"
        else:
            short, long = "small[n]", f"{varint}(n)"
        self._source.add(f"{self._write}({short} if n < 128 else {long})")

    # Fields -------------------------------------------------------------------------------

    def _field(self, field: Field, value: str, depth: int) -> None:
        nullable = self._version in field.nullable
        if field.array:
            self._array(field, value, nullable, depth)
        elif isinstance(field.type, type):
            # A nullable struct is marked by a byte; in the tagged section by a varint.
            tagged = self._flexible and self._version in field.tagged
            null = (r"b'\0'" if tagged else r"b'\xff'") if nullable else ""
            self._nested(field.type, value, null, depth)
        elif field.type in FIXED:
            self._run.append((FIXED[field.type], value))
        else:
            flexible = self._flexible and not field.never_flexible
            self._sized(field.type, value, nullable, flexible)

    def _nested(self, cls: type[Struct], value: str, null: str, depth: int) -> None:
        source = self._source
        var = f"o{depth + 1}"
        source.add(f"{var} = {value}")
        if not null:
            self._struct(cls, var, depth + 1)
            return
        self._flush()
        source.add(f"if {var} is None: {self._write}({null})")
        source.add("else:")
        source.indent()
        self._run.append(("b", "1"))
        self._struct(cls, var, depth + 1)
        source.dedent()

    def _sized(self, kind: str, value: str, nullable: bool, flexible: bool) -> None:
        source = self._source
        if nullable:
            source.add(f"v = {value}")
            source.add(f"if v is None: b = b''; n = {0 if flexible else -1}")
            source.add("else:")
            source.indent()
            value = "v"
        source.add(f"b = {value}{'.encode()' if kind == 'string' else ''}")
        source.add(f"n = len(b){' + 1' if flexible else ''}")
        if nullable:
            source.dedent()
        if kind == "string":
            self._length(flexible, "h", "string_varint")
        else:
            self._length(flexible)
        if kind == "records":
            source.add("marks.append(len(out))")
        source.add(f"{self._write}(b)")

    def _array(self, field: Field, value: str, nullable: bool, depth: int) -> None:
        source = self._source
        each = depth + 1
        items = f"l{each}"
        extra = " + 1" if self._flexible else ""
        source.add(f"{items} = {value}")
        if nullable:
            source.add(f"if {items} is None: {items} = (); n = {0 if self._flexible else -1}")
            source.add(f"else: n = len({items}){extra}")
        else:
            source.add(f"n = len({items}){extra}")
        self._length(self._flexible)
        if isinstance(field.type, str) and field.type in FIXED and field.type != "uuid":
            self._numbers(FIXED[field.type], items)
            return
        var = f"o{each}"
        source.add(f"for {var} in {items}:")
        source.indent()
        if isinstance(field.type, type):
            self._struct(field.type, var, each)
        elif field.type == "uuid":
            self._run.append(("16s", var))
            self._flush()
        else:
            self._sized(field.type, var, False, self._flexible)
        source.add("pass")
        source.dedent()

    def _numbers(self, kind: str, items: str) -> None:
        formats = tuple(struct.Struct(f">{n}{kind}").pack for n in range(SHORT_ARRAY))
        short = self._source.constant("short", kind, formats)
        made = f'pack(f">{{len({items})}}{kind}", *{items})'
        self._source.add(f"n = len({items})")
        self._source.add(
            f"if n: {self._write}({short}[n](*{items}) if n < {SHORT_ARRAY} else {made})"
        )

    # Tagged fields ------------------------------------------------------------------------

    def _tags(self, fields: list[Field], var: str, depth: int) -> None:
        source = self._source
        if not fields:
            self._run.append(("x", ""))
            return
        self._flush()
        tests = [self._differs(f, f"{var}.{f.name}") for f in fields]
        source.add(f"if not ({' or '.join(tests)}): {self._write}(small[0])")
        source.add("else:")
        source.indent()
        outer, self._write = self._write, f"u{depth}.append"
        source.add(f"t{depth} = []")
        for field, test in zip(fields, tests, strict=True):
            source.add(f"if {test}:")
            source.indent()
            source.add(f"u{depth} = []")
            self._field(field, f"{var}.{field.name}", depth)
            self._flush()
            source.add(f"b = b''.join(u{depth})")
            tag = pack_unsigned_varint(field.tag or 0)
            source.add(f"t{depth}.append({tag!r} + varint(len(b)) + b)")
            source.dedent()
        self._write = outer
        source.add(f"{outer}(varint(len(t{depth})) + b''.join(t{depth}))")
        source.dedent()
