"""Verifies that bytes of an object are the batches of their coordinates. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from skylog.bulk.decode import CREATE_TIME, EncodedBatch
from skylog.bulk.schema import LOG_APPEND_TIME
from skylog.client.bulk import BatchLocation, Split
from skylog.client.records import whole_batches
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import MAGIC, Batch
from skylog.wire.buffers import Buffer


def batches_in_object(split: Split, location: BatchLocation, data: Buffer) -> list[EncodedBatch]:
    """The batches of a coordinate: adjacent ones may share it.

    CORRUPT_MESSAGE if the bytes are not what they should be.
    """
    if len(data) != location.byte_size:
        raise _corrupt(split, location, f"{len(data)} bytes instead of {location.byte_size}")
    appended = location.timestamp_type == LOG_APPEND_TIME
    timestamp = location.log_append_timestamp if appended else CREATE_TIME
    found: list[EncodedBatch] = []
    offset, size = location.base_offset, 0
    try:
        for batch in whole_batches(data):
            _check(batch)
            last = offset + batch.last_offset_delta
            found.append(EncodedBatch(batch.buffer, offset, last, timestamp, location.object_key))
            offset, size = last + 1, size + batch.size
    except KafkaError as error:
        raise _corrupt(split, location, error.message or str(error)) from error
    if size != len(data):
        raise _corrupt(split, location, f"whole batches in {size} of {len(data)} bytes")
    if offset != location.last_offset + 1:
        why = f"offsets up to {offset - 1}, not {location.last_offset}"
        raise _corrupt(split, location, why)
    return found


def batches_in_segment(split: Split, location: BatchLocation, data: Buffer) -> list[EncodedBatch]:
    """The batches with the offsets of a location in a tiered segment, whole.

    CORRUPT_MESSAGE unless they are sound and have all of them, in order and without gaps.
    """
    if len(data) != location.byte_size:
        raise _corrupt(split, location, f"{len(data)} bytes instead of {location.byte_size}")
    found: list[EncodedBatch] = []
    following = -1
    try:
        for batch in whole_batches(data):
            _check(batch)
            if following not in (-1, batch.base_offset):
                break
            following = batch.next_offset
            if following <= location.base_offset:
                continue
            if not found and batch.base_offset > location.base_offset:
                break
            found.append(_served(batch, location.object_key))
            if following > location.last_offset:
                return found
    except KafkaError as error:
        raise _corrupt(split, location, error.message or str(error)) from error
    reached = found[-1].last_offset if found else location.base_offset - 1
    why = f"offsets up to {reached}, not {location.last_offset}"
    raise _corrupt(split, location, why)


def batches_from_broker(split: Split, data: Buffer, position: int) -> Iterator[EncodedBatch]:
    """The complete batches of a fetch response with offsets from ``position`` on."""
    for batch in whole_batches(data):
        if batch.next_offset <= position:
            continue
        try:
            _check(batch)
        except KafkaError as error:
            raise KafkaError(
                error.code,
                f"topic {split.topic} partition {split.partition} offset {batch.base_offset},"
                f" from the broker: {error.message}",
            ) from error
        yield _served(batch)


def _served(batch: Batch, source: str = "") -> EncodedBatch:
    """A batch with its offsets and time in it, as consumers get it."""
    timestamp = batch.max_timestamp if batch.is_log_append_time else CREATE_TIME
    return EncodedBatch(batch.buffer, batch.base_offset, batch.last_offset, timestamp, source)


def _check(batch: Batch) -> None:
    if batch.magic != MAGIC:
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format {batch.magic}")
    if batch.last_offset_delta < 0 or not batch.crc_ok():
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a wrong checksum")


def _corrupt(split: Split, location: BatchLocation, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"topic {split.topic} partition {split.partition} offset {location.base_offset}"
        f" in {location.object_key} at {location.byte_offset}: {why}",
    )
