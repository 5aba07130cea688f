"""Records as text or JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import typer

from skylog.cli.output import json_bytes, printable
from skylog.cli.times import format_time
from skylog.client.records import ConsumerRecord

_NULL: Final = b"null"


class Format(StrEnum):
    """How records are written."""

    TEXT = "text"
    JSON = "json"


def _headers(record: ConsumerRecord) -> bytes:
    pairs = (name.encode() + b"=" + (_NULL if v is None else v) for name, v in record.headers)
    return b",".join(pairs)


FIELDS: Final[Mapping[str, Callable[[ConsumerRecord], bytes]]] = {
    "timestamp": lambda record: format_time(record.timestamp).encode(),
    "partition": lambda record: str(record.partition).encode(),
    "offset": lambda record: str(record.offset).encode(),
    "headers": _headers,
    "key": lambda record: _NULL if record.key is None else record.key,
    "value": lambda record: _NULL if record.value is None else record.value,
}


def parse_fields(text: str) -> list[str]:
    """Field names separated by commas; a usage error for unknown ones."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FIELDS:
            raise typer.BadParameter(
                f"{name!r} is not a field; allowed are {', '.join(FIELDS)}", param_hint="--print"
            )
    return names


class RecordWriter:
    """Writes records and counts them."""

    def __init__(
        self, form: Format, fields: list[str], separator: bytes, *, escape: bool = False
    ) -> None:
        self._json = form is Format.JSON
        self._fields = [FIELDS[name] for name in fields]
        self._separator = separator
        self._escape = escape
        self.count = 0

    def write(self, record: ConsumerRecord) -> None:
        self.count += 1
        if self._json:
            sys.stdout.buffer.write(json.dumps(as_json(record), ensure_ascii=False).encode())
        else:
            fields = (field(record) for field in self._fields)
            if self._escape:
                fields = (printable(data.decode(errors="replace")).encode() for data in fields)
            sys.stdout.buffer.write(self._separator.join(fields))
        sys.stdout.buffer.write(b"\n")

    def flush(self) -> None:
        sys.stdout.flush()


def as_json(record: ConsumerRecord) -> dict[str, Any]:
    """A record as an object; bytes that are not text are in base64, under another name."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "LogAppendTime" if record.timestamp_type else "CreateTime",
        **json_bytes("key", record.key),
        **json_bytes("value", record.value),
        "headers": [{"name": name, **json_bytes("value", v)} for name, v in record.headers],
    }
