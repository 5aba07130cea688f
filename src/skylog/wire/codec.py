"""Decodes and encodes messages, in any version that Kafka 4.3 knows.

Whatever the bytes are, the only error is ProtocolError, and memory is allocated in proportion to
the bytes received, not to the counts and lengths that they claim.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

from skylog.kernel.errors import ProtocolError
from skylog.kernel.limits import WIRE_RECORDS_JOINED_BYTES_MAX
from skylog.wire.buffers import Buffer, Chain
from skylog.wire.compile import READERS, WRITERS, reader, writer
from skylog.wire.schema import Message

MessageT = TypeVar("MessageT", bound=Message)
# What the compiled functions raise for truncated data or values of a wrong type.
_DECODING = (struct.error, IndexError, ValueError)
_ENCODING = (struct.error, AttributeError, TypeError, ValueError, OverflowError)


def decode_at(cls: type[MessageT], data: Buffer, version: int, offset: int) -> tuple[MessageT, int]:
    """The message at an offset, and the position after it. Records are slices, not copies."""
    read, view = READERS.get((cls, version)) or reader(cls, version)
    if view:
        if type(data) is not memoryview:
            data = memoryview(data)
    elif type(data) is not bytes:
        data = bytes(data)
    try:
        return read(data, offset)
    except _DECODING as error:
        raise ProtocolError(f"{cls.__name__} version {version}: {error}") from error


def decode(cls: type[MessageT], data: Buffer, version: int, offset: int = 0) -> MessageT:
    """The message at an offset; trailing bytes are ignored, as Kafka does in requests."""
    return decode_at(cls, data, version, offset)[0]


def encode(message: Message, version: int) -> bytes:
    """The message as one bytes object."""
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """The message in parts: records are separate parts and not copied, unless tiny."""
    parts, marks = _parts(message, version)
    if not marks:
        return [b"".join(parts)]
    out: list[Buffer] = []
    start = 0
    for mark in marks:
        records = parts[mark]
        if len(records) > WIRE_RECORDS_JOINED_BYTES_MAX:
            out += (b"".join(parts[start:mark]), *_pieces(records))
            start = mark + 1
        elif isinstance(records, Chain):
            parts[mark] = b"".join(records.parts)
    if start < len(parts):
        out.append(b"".join(parts[start:]))
    return out


def _pieces(records: Buffer | Chain) -> Sequence[Buffer]:
    return records.parts if isinstance(records, Chain) else (records,)


def _parts(message: Message, version: int) -> tuple[list[Buffer], list[int]]:
    cls = type(message)
    write = WRITERS.get((cls, version)) or writer(cls, version)
    parts: list[Buffer] = []
    marks: list[int] = []
    try:
        write(message, parts, marks)
    except _ENCODING as error:
        raise ProtocolError(f"{cls.__name__} version {version}: {error}") from error
    return parts, marks
