"""Validates what a follower has fetched before it is appended. Pure.

Only the header of each batch is parsed; the rest is covered by the checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, Batch, batch_size
from skylog.wire.buffers import Buffer


class FetchedBatches(NamedTuple):
    """Complete, adjacent batches in ``buffer``, which contains nothing else."""

    batches: list[Batch]
    buffer: memoryview


def check_fetched(records: Buffer, leader_epoch: int) -> FetchedBatches:
    """The complete batches at the start of ``records``; CORRUPT_MESSAGE if one is invalid.

    They end before a batch of a later epoch than the leader's: the leader's log may have been
    truncated and rewritten meanwhile.
    """
    view = memoryview(records)
    batches: list[Batch] = []
    position, end = 0, len(view)
    while end - position >= LOG_OVERHEAD:
        size = batch_size(view, position)
        if size < HEADER_BYTES:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a fetched batch claims {size} bytes")
        if size > end - position:
            break  # the leader may have truncated the last one
        batch = Batch(view[position : position + size])
        if batch.leader_epoch > leader_epoch:
            break
        if batch.magic != MAGIC or batch.last_offset_delta < 0 or not batch.crc_ok():
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"fetched {batch} is damaged")
        batches.append(batch)
        position += size
    return FetchedBatches(batches, view[:position])


def parts_within(fetched: FetchedBatches, bytes_max: int) -> Iterator[FetchedBatches]:
    """Divides the batches into parts that fit into a segment; usually one, each with a batch at
    least."""
    batches, buffer = fetched
    if len(buffer) <= bytes_max:
        yield fetched
        return
    first = start = position = 0
    for number, batch in enumerate(batches):
        if position - start + batch.size > bytes_max and number > first:
            yield FetchedBatches(batches[first:number], buffer[start:position])
            first, start = number, position
        position += batch.size
    yield FetchedBatches(batches[first:], buffer[start:])


def covers(batches: Sequence[Batch], offset: int) -> bool:
    """Whether the first batch begins before ``offset`` and contains it."""
    return bool(batches) and batches[0].base_offset < offset <= batches[0].last_offset
