"""Validates a produced batch before it is appended to a log, as Kafka does.

Checks are in Kafka's order, because a batch with two faults must be refused for the same one:

1. framing: exactly one batch, magic 2, codec allowed in the request's version;
2. header: base offset 0, size, CRC, codec, offset range and count, no control batch, sequence;
3. records (walked, decompressed with a limit): structure, count, keys if the topic is
   compacted, timestamps;
4. the stored batch: unchanged, or with its timestamps corrected in place, or
   recompressed if the topic has another codec.

Three checks are stricter than Kafka's, to protect consumers: records of compressed batches must
fill their declared sizes, offset deltas must be 0, 1, 2, …, and records may not decompress to more
than a fixed limit. Real producers meet all three.

Nearly all batches are valid, uncompressed and stored unchanged. One call recognizes such a batch;
only the others go through the checks above one by one.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, NoReturn

from crc32c import crc32c

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    RECORD_ERRORS_MAX,
    RECORDS_DECOMPRESSED_BYTES_MAX,
    VALIDATION_AT_ONCE_BYTES_MAX,
)
from skylog.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    Batch,
    Compression,
)
from skylog.wire.buffers import Buffer
from skylog.wire.compression import compress, decompress, output_bytes_bound
from skylog.wire.records import LOG_APPEND_TIME_FLAG, join_batch
from skylog.wire.topic_rules import LOG_APPEND_TIME, TopicRules
from skylog.wire.walker import NATIVE, find_faults, is_plain, walk
from skylog.wire.walker_reference import ANY_EARLIEST, ANY_LATEST, RecordsError, Walk

# zstd came with Produce version 7.
ZSTD_VERSION_MIN: Final = 7

# The smallest size of a message of any format, and the position of its magic.
_LENGTH_MIN: Final = 14
_MAGIC_AT: Final = 16
# Codec, timestamp type, transactional, control, delete horizon: the defined attributes.
_ATTRIBUTES_DEFINED: Final = 0x7F
_DELETE_HORIZON_FLAG: Final = 0x40
_LENGTH: Final = Struct(">i")
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_CRC: Final = Struct(">I")
# The Python walker takes some fifty times as long.
_AT_ONCE_BYTES_MAX: Final = VALIDATION_AT_ONCE_BYTES_MAX // (1 if NATIVE else 64)


class Validated(NamedTuple):
    """A batch over a writable buffer, ready to be assigned its offset and epoch in place."""

    batch: Batch
    # The log-append time of the records, −1 if they keep their producer's timestamps.
    log_append_time: int


class ValidationError(KafkaError):
    """Individual records are invalid; Kafka sends a message with these errors only."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors  # (index, message)


class UnreadableError(KafkaError):
    """The records are not exactly one batch: refused before the log is consulted."""


def is_long(records: Buffer, rules: TopicRules) -> bool:
    """Whether ``validate`` would block the event loop; uses only what is cheap to know."""
    size = len(records)
    if size > _AT_ONCE_BYTES_MAX:
        return True
    if size < HEADER_BYTES:
        return False
    if size <= rules.plain_bytes_max and not records[ATTRIBUTES_AT] & CODEC_BITS:
        return False
    codec = records[ATTRIBUTES_AT] & CODEC_BITS
    target = rules.target_codec(codec)
    if not rules.full and target == codec:
        return False
    body = memoryview(records)[HEADER_BYTES:]
    bound = size if codec == Compression.NONE else output_bytes_bound(codec, body)
    # Compression is several times slower than anything else here.
    return bound > (_AT_ONCE_BYTES_MAX if target == codec else _AT_ONCE_BYTES_MAX // 16)


def validate(records: Buffer, rules: TopicRules, now_ms: int, version: int) -> Validated:
    """Validate the records of one partition of a Produce request of ``version``.

    The returned batch is the given one, not a copy, unless it had to be recompressed or the buffer
    is read-only.
    """
    plain = _plain(records, rules, now_ms)
    if plain is not None:
        return Validated(plain, NO_TIMESTAMP)
    try:
        batch = _only_batch(records, version)
    except KafkaError as error:
        raise UnreadableError(error.code, error.message) from error
    _check_header(batch, rules)
    codec = batch.codec
    target = rules.target_codec(codec)
    if rules.full or target != codec:
        data = _decompressed(batch, rules)
        max_timestamp = _check_records(batch, data, rules, now_ms)
        if target != codec:
            batch = _recompressed(batch, data, target, rules)
    else:
        max_timestamp = _check_header_timestamps(batch, rules, now_ms)
    stamped = rules.timestamp_type == LOG_APPEND_TIME
    _set_max_timestamp(batch, now_ms if stamped else max_timestamp, stamped=stamped)
    if batch.size > rules.segment_bytes:
        _refuse(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"a batch of {batch.size} bytes does not fit in a segment of {rules.segment_bytes} "
            f"bytes",
        )
    return Validated(batch, now_ms if stamped else NO_TIMESTAMP)


def _plain(records: Buffer, rules: TopicRules, now_ms: int) -> Batch | None:
    """The batch, if it is valid and stored unchanged; None: it may still be valid."""
    if type(records) is not memoryview or records.readonly:
        return None
    earliest, latest = rules.timestamps(now_ms)
    if not is_plain(records, rules.plain_bytes_max, earliest, latest, keyed=rules.compacted):
        return None
    batch = Batch(records)
    return batch if crc32c(records[21:]) == batch.crc else None


def _refuse(code: ErrorCode, why: str) -> NoReturn:
    raise KafkaError(code, why)


def _invalid(why: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_RECORD, why)


def _next_size(view: memoryview, at: int) -> int | None:
    """The size of the message at ``at``, of any format; None if it is incomplete."""
    remaining = len(view) - at
    if remaining < LOG_OVERHEAD:
        return None
    (length,) = _LENGTH.unpack_from(view, at + 8)
    if length < _LENGTH_MIN:
        _refuse(ErrorCode.CORRUPT_MESSAGE, f"a batch claims a length of {length} bytes")
    if remaining <= _MAGIC_AT:
        return None
    if view[at + _MAGIC_AT] > MAGIC:
        _refuse(ErrorCode.CORRUPT_MESSAGE, f"unknown message format {view[at + _MAGIC_AT]}")
    size: int = length + LOG_OVERHEAD
    return size if size <= remaining else None


def _only_batch(records: Buffer, version: int) -> Batch:
    """The one batch that a partition's records must be; a partial one after it is cut off."""
    view = memoryview(records)
    size = _next_size(view, 0)
    if size is None:
        _invalid(f"Produce version {version} needs a record batch for every partition")
    if view[_MAGIC_AT] != MAGIC:
        _invalid(f"Produce version {version} takes record batches of magic 2 only")
    if size < HEADER_BYTES:
        _refuse(ErrorCode.CORRUPT_MESSAGE, "a batch is shorter than its header")
    batch = Batch(view[:size] if not view.readonly else memoryview(bytearray(view[:size])))
    if version < ZSTD_VERSION_MIN and batch.codec == Compression.ZSTD:
        _refuse(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce version {version} does not know zstd",
        )
    if _next_size(view, size) is not None:
        _invalid(f"Produce version {version} takes exactly one record batch for each partition")
    return batch


def _check_header(batch: Batch, rules: TopicRules) -> None:
    if batch.base_offset != 0:
        _invalid(f"the base offset of a produced batch must be 0, not {batch.base_offset}")
    _check_size(batch.size, rules)
    if not batch.crc_ok():
        _refuse(ErrorCode.CORRUPT_MESSAGE, f"the batch does not match its checksum {batch.crc}")
    if batch.codec > Compression.ZSTD:
        # Kafka fails on an unknown codec with an unknown error, and clients see that.
        _refuse(ErrorCode.UNKNOWN_SERVER_ERROR, f"no codec has the number {batch.codec}")
    if batch.last_offset_delta < 0:
        _invalid(f"the batch has an invalid offset range [0, {batch.last_offset_delta}]")
    if batch.record_count <= 0:
        _invalid(f"the batch declares {batch.record_count} records")
    if batch.record_count != batch.last_offset_delta + 1:
        _invalid(
            f"the batch's offset range [0, {batch.last_offset_delta}] does not match"
            f" its count of {batch.record_count} records"
        )
    if batch.is_control:
        _invalid("clients may not write control records")
    if batch.has_producer and batch.base_sequence < 0:
        _invalid(f"producer {batch.producer_id} sent a batch with sequence {batch.base_sequence}")


def _check_size(size: int, rules: TopicRules) -> None:
    if size > rules.message_bytes_max:
        _refuse(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, more than the {rules.message_bytes_max} allowed",
        )


def _decompressed(batch: Batch, rules: TopicRules) -> Buffer:
    cap = max(RECORDS_DECOMPRESSED_BYTES_MAX, rules.message_bytes_max)
    try:
        return decompress(batch.codec, batch.records(), cap)
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            # The checksum was valid, so a resend would not help: like Kafka, not retriable.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from error
        raise


def _check_records(batch: Batch, data: Buffer, rules: TopicRules, now_ms: int) -> int:
    """Check every record; returns the largest timestamp, −1 if there is none."""
    earliest, latest = rules.timestamps(now_ms)
    if batch.is_log_append_time:
        # Then the records' own timestamps do not count.
        seen = walk(data, batch.record_count, batch.base_timestamp)
    else:
        seen = walk(data, batch.record_count, batch.base_timestamp, earliest, latest)
    if seen.error:
        _invalid(str(RecordsError(seen.error, seen.error_index)))
    if batch.is_log_append_time:
        _check_log_append_time(batch, data, rules, now_ms)
        return max(int(batch.max_timestamp), NO_TIMESTAMP)
    _check_faults(batch, data, rules, now_ms, seen)
    return max(seen.max_timestamp, NO_TIMESTAMP)


def _check_faults(batch: Batch, data: Buffer, rules: TopicRules, now_ms: int, seen: Walk) -> None:
    if not seen.outside and not (rules.compacted and seen.keyless):
        return
    timestamps = rules.timestamps(now_ms)
    faults = find_faults(
        data,
        batch.record_count,
        batch.base_timestamp,
        timestamps,
        keyed=rules.compacted,
        faults_max=RECORD_ERRORS_MAX,
    )
    errors = [
        (fault.record_index, _NO_KEY if fault.keyless else _wrong_time(fault.timestamp, timestamps))
        for fault in faults
    ]
    _refuse_records(errors, wrong_time=any(not fault.keyless for fault in faults))


_NO_KEY: Final = "a compacted topic takes no record without a key"


def _wrong_time(timestamp: int, timestamps: tuple[int, int]) -> str:
    return f"timestamp {timestamp} is not within [{timestamps[0]}, {timestamps[1]}]"


def _check_log_append_time(batch: Batch, data: Buffer, rules: TopicRules, now_ms: int) -> None:
    """A producer's batch with log-append time: all its records have the batch's largest
    timestamp."""
    earliest, latest = rules.timestamps(now_ms)
    timestamp = batch.max_timestamp
    if rules.timestamp_type == LOG_APPEND_TIME or timestamp == NO_TIMESTAMP:
        why = "a producer may not send records in log-append time"
    elif not earliest <= timestamp <= latest:
        why = _wrong_time(timestamp, (earliest, latest))
    else:
        why = ""
    keyless = set()
    if rules.compacted:
        faults = find_faults(
            data,
            batch.record_count,
            batch.base_timestamp,
            (ANY_EARLIEST, ANY_LATEST),
            keyed=True,
            faults_max=RECORD_ERRORS_MAX,
        )
        keyless = {fault.record_index for fault in faults}
    if why:
        named = range(min(batch.record_count, RECORD_ERRORS_MAX))
        errors = [(index, _NO_KEY if index in keyless else why) for index in named]
        _refuse_records(errors, wrong_time=len(keyless) < batch.record_count)
    elif keyless:
        _refuse_records([(index, _NO_KEY) for index in sorted(keyless)], wrong_time=False)


def _refuse_records(errors: list[tuple[int, str]], *, wrong_time: bool) -> NoReturn:
    if wrong_time:
        raise ValidationError(
            ErrorCode.INVALID_TIMESTAMP, "records were rejected for their timestamps", errors
        )
    raise ValidationError(
        ErrorCode.INVALID_RECORD, f"{len(errors)} records were rejected: {errors[:3]}", errors
    )


def _check_header_timestamps(batch: Batch, rules: TopicRules, now_ms: int) -> int:
    """Without decoding the records, the batch's own largest timestamp is checked for them."""
    timestamp = int(batch.max_timestamp)
    timestamps = rules.timestamps(now_ms)
    if timestamp != NO_TIMESTAMP and not timestamps[0] <= timestamp <= timestamps[1]:
        _refuse(ErrorCode.INVALID_TIMESTAMP, _wrong_time(timestamp, timestamps))
    return timestamp


def _recompressed(batch: Batch, data: Buffer, target: int, rules: TopicRules) -> Batch:
    """The same records in the topic's codec; their bytes are unchanged, so their deltas are
    still valid."""
    attributes = batch.attributes & _ATTRIBUTES_DEFINED & ~0x07 & ~_DELETE_HORIZON_FLAG | target
    after_crc = _ATTRIBUTES.pack(attributes) + bytes(memoryview(batch.buffer)[23:HEADER_BYTES])
    body = compress(target, data, rules.level(target))
    _check_size(HEADER_BYTES + len(body), rules)
    joined = join_batch(batch.base_offset, batch.leader_epoch, after_crc, body)
    return Batch(memoryview(bytearray(joined)))


def _set_max_timestamp(batch: Batch, timestamp: int, *, stamped: bool) -> None:
    """Correct the header; the CRC is recomputed only if the header was wrong."""
    if batch.is_log_append_time == stamped and batch.max_timestamp == timestamp:
        return
    attributes = batch.attributes & _ATTRIBUTES_DEFINED & ~LOG_APPEND_TIME_FLAG
    batch.attributes = attributes | LOG_APPEND_TIME_FLAG * stamped
    batch.max_timestamp = timestamp
    view = memoryview(batch.buffer)
    _ATTRIBUTES.pack_into(view, 21, batch.attributes)
    _TIMESTAMP.pack_into(view, 35, timestamp)
    batch.crc = crc32c(view[21:])
    _CRC.pack_into(view, 17, batch.crc)
