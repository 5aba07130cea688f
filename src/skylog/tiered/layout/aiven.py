"""Pure: the objects of a remote segment as Aiven's plugin names them, and its custom metadata.

Three objects: ``log``, ``indexes`` (all of them, one behind the other) and ``rsm-manifest``. The
custom metadata travels in the records of the segment, as a section of tagged fields: the size of
the objects, and where they are if the prefix or the names ever change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.objects.keys import BadKey, ObjectKey
from skylog.tiered.layout.chunks import BadManifest
from skylog.tiered.segments import RemoteSegment
from skylog.wire.reader_source import unsigned_varint
from skylog.wire.writer_source import pack_unsigned_varint

LOG: Final = "log"
INDEXES: Final = "indexes"
MANIFEST: Final = "rsm-manifest"
SUFFIXES: Final = (LOG, INDEXES, MANIFEST)
CHUNK_SIZE_DEFAULT: Final = 4 * 1024 * 1024
_CUSTOM_BYTES_MAX: Final = 64 * 1024


class CustomField(IntEnum):
    """The number is the field's tag."""

    REMOTE_SIZE = 0
    OBJECT_PREFIX = 1
    OBJECT_KEY = 2


@dataclass(frozen=True, slots=True)
class CustomMetadata:
    """What the records of a segment say of its objects; None where they say nothing."""

    remote_size: int | None = None
    object_prefix: str | None = None
    object_key: str | None = None


def main_path(segment: RemoteSegment) -> str:
    """The key of each of the segment's objects, without suffix."""
    topic_id, index = segment.partition
    return f"{segment.topic}-{topic_id}/{index}/{segment.start_offset:020}-{segment.id}"


def object_key(segment: RemoteSegment, suffix: str, custom: CustomMetadata) -> ObjectKey:
    """Where an object is. The manifest is always where it is computed to be, as in the plugin."""
    path = main_path(segment)
    if suffix != MANIFEST and custom.object_key is not None:
        path = custom.object_key
    try:
        return ObjectKey.parse(f"{path}.{suffix}")
    except BadKey as error:
        raise BadManifest(f"custom metadata: {error}") from None


def encode_custom(
    segment: RemoteSegment, fields: Collection[CustomField], remote_size: int, prefix: str
) -> bytes | None:
    """The fields of a new segment; None if there are none."""
    values = {
        CustomField.REMOTE_SIZE: pack_unsigned_varint(remote_size << 1),
        CustomField.OBJECT_PREFIX: _packed(prefix),
        CustomField.OBJECT_KEY: _packed(main_path(segment)),
    }
    wanted = sorted(fields)
    if not wanted:
        return None
    parts = [pack_unsigned_varint(len(wanted))]
    for tag in wanted:
        parts += (pack_unsigned_varint(tag), pack_unsigned_varint(len(values[tag])), values[tag])
    return b"".join(parts)


def decode_custom(data: bytes | None) -> CustomMetadata:
    """Unknown tags are read over; BadManifest for what is no section of tagged fields."""
    if not data:
        return CustomMetadata()
    if len(data) > _CUSTOM_BYTES_MAX:
        raise BadManifest(f"custom metadata of {len(data)} bytes")
    found: dict[int, bytes] = {}
    try:
        count, position = _varint(data, 0)
        for _ in range(min(count, len(data))):
            tag, position = _varint(data, position)
            size, position = _varint(data, position)
            if size > len(data) - position:
                raise BadManifest("custom metadata that ends early")
            found[tag] = data[position : position + size]
            position += size
        return CustomMetadata(
            _number(found.get(CustomField.REMOTE_SIZE)),
            _text(found.get(CustomField.OBJECT_PREFIX)),
            _text(found.get(CustomField.OBJECT_KEY)),
        )
    except (IndexError, ValueError, ProtocolError) as error:
        raise BadManifest(f"custom metadata: {error}") from None


def _packed(text: str) -> bytes:
    data = text.encode()
    return pack_unsigned_varint(len(data) + 1) + data


def _varint(data: bytes, position: int) -> tuple[int, int]:
    first = data[position]
    if first < 128:
        return first, position + 1
    return unsigned_varint(data, position + 1, first)


def _number(data: bytes | None) -> int | None:
    if data is None:
        return None
    value = 0
    for shift, byte in enumerate(data[:10]):
        value |= (byte & 127) << shift * 7
    return value >> 1 ^ -(value & 1)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    size, position = _varint(data, 0)
    if size != len(data) - position + 1:
        raise BadManifest("a text of another length in custom metadata")
    return data[position:].decode()
