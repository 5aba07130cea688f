"""Records of the metadata logs: frame version, type and version as varints, then the body.

Cluster metadata, the diskless coordinators and the metadata of remote segments
(``__remote_log_metadata``) use the same framing with separate type numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode_at, encode
from skylog.wire.messages import index
from skylog.wire.reader_source import unsigned_varint
from skylog.wire.registry import message_class
from skylog.wire.schema import Message, MessageType
from skylog.wire.writer_source import pack_unsigned_varint

_FRAME_VERSION: Final = 1
_NUMBER_MAX: Final = 32767


def encode_metadata(message: Message, version: int | None = None) -> bytes:
    """The value of a cluster metadata record; in the highest version by default."""
    return _encode(message, version, "metadata")


def decode_metadata(data: Buffer | None) -> Message | None:
    """The cluster metadata record in a value; None only for a null value.

    As in Kafka, an unknown type or version is an error: a node must not continue with only part of
    the cluster's state.
    """
    return _decode(data, index.METADATAS)


def encode_diskless(message: Message, version: int | None = None) -> bytes:
    """The value of a diskless coordinator's record."""
    return _encode(message, version, "diskless-record")


def decode_diskless(data: Buffer | None) -> Message | None:
    """The diskless coordinator's record in a value."""
    return _decode(data, index.DISKLESS_RECORDS)


def encode_remote_log(message: Message, version: int | None = None) -> bytes:
    """The value of a record of ``__remote_log_metadata``."""
    return _encode(message, version, "remote-log-record")


def decode_remote_log(data: Buffer | None) -> Message | None:
    """The record of ``__remote_log_metadata`` in a value."""
    return _decode(data, index.REMOTE_LOG_RECORDS)


def _encode(message: Message, version: int | None, kind: MessageType) -> bytes:
    if kind != message.TYPE:
        raise ProtocolError(f"{type(message).__name__} is not a {kind} record")
    if version is None:
        version = message.VERSIONS.high
    head = (_FRAME_VERSION, message.API_KEY, version)
    return b"".join(map(pack_unsigned_varint, head)) + encode(message, version)


def _decode(data: Buffer | None, table: Mapping[int, tuple[str, ...]]) -> Message | None:
    if data is None:
        return None
    frame, position = _number(data, 0)
    if frame != _FRAME_VERSION:
        raise ProtocolError(f"a metadata record of frame version {frame}")
    key, position = _number(data, position)
    version, position = _number(data, position)
    names = table.get(key)
    if names is None:
        raise ProtocolError(f"a metadata record of unknown type {key}")
    message, position = decode_at(message_class(names[0]), data, version, position)
    if position != len(data):
        raise ProtocolError(f"{len(data) - position} bytes after a {names[0]}")
    return message


def _number(data: Buffer, position: int) -> tuple[int, int]:
    try:
        value = data[position]
        position += 1
        if value > 127:
            value, position = unsigned_varint(data, position, value)
    except IndexError as error:
        raise ProtocolError("a metadata record that ends in its header") from error
    if value > _NUMBER_MAX:
        raise ProtocolError(f"{value} in the header of a metadata record")
    return value, position
