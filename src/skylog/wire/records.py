"""Encodes and decodes single records, for the few places that need them.

Brokers store and send batches without decoding them; this is used by coordinators, the quorum,
lookups by time and tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import RECORDS_DECOMPRESSED_BYTES_MAX
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, Batch, Compression
from skylog.wire.buffers import Buffer
from skylog.wire.compression import compress, decompress
from skylog.wire.walker import find_timestamp, locate
from skylog.wire.walker_reference import ANY_EARLIEST, Location, RecordsError, skip_bytes

Header = tuple[str, bytes | None]
KeyValue = tuple[Buffer | None, Buffer | None]

LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20

_PREFIX: Final = Struct(">qiib")
_AFTER_CRC: Final = Struct(">hiqqqhii")
_CRC: Final = Struct(">I")
_NULL: Final = b"\x01"  # the varint of size −1


class Record(NamedTuple):
    """One record with its offset; key and value are copies."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def varint(value: int) -> bytes:
    """Encode a number in zigzag form, seven bits to the byte."""
    value = (value << 1) ^ (value >> 63)
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_batch(  # noqa: PLR0913 - the fields of a batch header
    records: Sequence[KeyValue],
    *,
    timestamp: int,
    base_offset: int = 0,
    codec: int = Compression.NONE,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    control: bool = False,
    transactional: bool = False,
    timestamps: Sequence[int] | None = None,
    headers: Sequence[Sequence[Header]] | None = None,
) -> bytes:
    """One batch of ``(key, value)`` pairs, all with ``timestamp`` unless ``timestamps`` is given.

    ``headers`` are per record. Empty ``records`` give a batch without records, as compaction
    leaves.
    """
    base = timestamps[0] if timestamps else timestamp
    body = bytearray()
    for index, (key, value) in enumerate(records):
        delta = timestamps[index] - base if timestamps else 0
        _append_record(body, index, delta, (key, value), headers[index] if headers else ())
    attributes = codec | TRANSACTIONAL_FLAG * transactional | CONTROL_FLAG * control
    after_crc = _AFTER_CRC.pack(
        attributes,
        max(len(records) - 1, 0),
        base,
        max(timestamps) if timestamps else timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return join_batch(base_offset, leader_epoch, after_crc, compress(codec, body, level))


def join_batch(base_offset: int, leader_epoch: int, after_crc: bytes, body: Buffer) -> bytes:
    """Build a batch from its parts, with its length and checksum."""
    prefix = _PREFIX.pack(base_offset, HEADER_BYTES - LOG_OVERHEAD + len(body), leader_epoch, MAGIC)
    crc = _CRC.pack(crc32c(body, crc32c(after_crc)))
    return b"".join((prefix, crc, after_crc, body))


def replace_records(
    batch: Batch,
    body: Buffer,
    *,
    attributes: int,
    timestamps: tuple[int, int],
    record_count: int,
) -> bytes:
    """The batch with another body; offsets, sequences and producer are unchanged."""
    after_crc = _AFTER_CRC.pack(
        attributes,
        batch.last_offset_delta,
        *timestamps,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
    return join_batch(batch.base_offset, batch.leader_epoch, after_crc, body)


def _append_record(
    body: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    pair: KeyValue,
    headers: Sequence[Header],
) -> None:
    record = bytearray(b"\0")  # attributes: none are defined
    record += varint(timestamp_delta)
    record += varint(offset_delta)
    _append_bytes(record, pair[0])
    _append_bytes(record, pair[1])
    record += varint(len(headers))
    for name, value in headers:
        _append_bytes(record, name.encode())
        _append_bytes(record, value)
    body += varint(len(record))
    body += record


def _append_bytes(record: bytearray, data: Buffer | None) -> None:
    if data is None:
        record += _NULL
    else:
        record += varint(len(data))
        record += data


def decode_records(
    batch: Batch, output_bytes_max: int = RECORDS_DECOMPRESSED_BYTES_MAX
) -> list[Record]:
    """All records of a batch; CORRUPT_MESSAGE if they are not what the batch declares."""
    data = decompress(batch.codec, batch.records(), output_bytes_max)
    try:
        locations = locate(data, batch.record_count, batch.base_timestamp)
        return [_record(batch, data, location) for location in locations]
    except ValueError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _record(batch: Batch, data: Buffer, location: Location) -> Record:
    return Record(
        batch.base_offset + location.offset_delta,
        batch.max_timestamp if batch.is_log_append_time else location.timestamp,
        _slice(data, location.key_at, location.key_size),
        _slice(data, location.value_at, location.value_size),
        _headers(data, location.headers_at, location.header_count),
    )


def _slice(data: Buffer, at: int, size: int) -> bytes | None:
    return None if size < 0 else bytes(data[at : at + size])


def _headers(data: Buffer, at: int, count: int) -> tuple[Header, ...]:
    headers: list[Header] = []
    end = len(data)
    for _ in range(count):
        name_at, name_size, at = skip_bytes(data, at, end)
        value_at, value_size, at = skip_bytes(data, at, end)
        # Header names should be text; one that is not must not hide the record.
        name = bytes(data[name_at : name_at + name_size]).decode(errors="replace")
        headers.append((name, _slice(data, value_at, value_size)))
    return tuple(headers)


def find_record(
    batch: Batch,
    target: int,
    offset_min: int = 0,
    output_bytes_max: int = RECORDS_DECOMPRESSED_BYTES_MAX,
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at or after ``target`` ms, from ``offset_min`` on."""
    if batch.max_timestamp < target:
        return None
    # With log-append time all records have the batch's timestamp, so the first one matches.
    wanted = ANY_EARLIEST if batch.is_log_append_time else target
    delta_min = max(offset_min - batch.base_offset, 0)
    if delta_min > batch.last_offset_delta:
        return None
    data = decompress(batch.codec, batch.records(), output_bytes_max)
    try:
        place = find_timestamp(data, batch.record_count, batch.base_timestamp, wanted, delta_min)
    except RecordsError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if place is None:
        return None
    timestamp = batch.max_timestamp if batch.is_log_append_time else place[1]
    return batch.base_offset + place[0], timestamp
