"""Readers and writers, compiled on first use per (class, version).

The only place that uses ``exec``, and only on source generated from our own classes: it never
contains data from the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.layout import has_records
from skylog.wire.reader_source import ReaderSource
from skylog.wire.schema import Message
from skylog.wire.writer_source import WriterSource

# (data, position) -> (message, next position)
Reader = Callable[[Any, int], tuple[Any, int]]
# (message, parts, indexes of the record batches among them)
Writer = Callable[[Any, list[Buffer], list[int]], None]

# With each reader: whether its data must be a memoryview, because its record batches are slices.
READERS: Final[dict[tuple[type[Message], int], tuple[Reader, bool]]] = {}
WRITERS: Final[dict[tuple[type[Message], int], Writer]] = {}


def reader(cls: type[Message], version: int) -> tuple[Reader, bool]:
    """The reader of a version, compiled on demand; ProtocolError for an unknown version."""
    _check(cls, version)
    view = has_records(cls)
    text, names = ReaderSource(version, version in cls.FLEXIBLE, view).build(cls)
    compiled = _run(cls, version, text, names)["read"], view
    READERS[cls, version] = compiled
    return compiled


def writer(cls: type[Message], version: int) -> Writer:
    """The writer of a version, compiled on demand; ProtocolError for an unknown version."""
    _check(cls, version)
    text, names = WriterSource(version, version in cls.FLEXIBLE).build(cls)
    compiled: Writer = _run(cls, version, text, names)["write"]
    WRITERS[cls, version] = compiled
    return compiled


def _check(cls: type[Message], version: int) -> None:
    if version not in cls.VERSIONS:
        raise ProtocolError(f"{cls.__name__} has no version {version}")


def _run(cls: type[Message], version: int, text: str, names: dict[str, Any]) -> dict[str, Any]:
    exec(compile(text, f"<{cls.__name__} version {version}>", "exec"), names)
    return names
