"""What compaction leaves of a batch, by the rules of Kafka's cleaner.

The newest record of each key stays. A tombstone stays until ``delete.retention.ms`` after the first
pass that met it: that pass writes this time into its batch. A batch keeps its offsets and sequence
numbers whatever is left of it. It stays even without records if these are needed: as the last batch
of a producer, or at the end of a segment.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import RECORDS_DECOMPRESSED_BYTES_MAX
from skylog.log.aborted import CleanedTransactions
from skylog.log.offset_map import OffsetMap, Reason, Row, Rule
from skylog.wire.batch import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    Batch,
    Compression,
    batch_size,
)
from skylog.wire.buffers import Buffer
from skylog.wire.compression import compress, decompress
from skylog.wire.records import (
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    replace_records,
)

_KEPT_WHEN_EMPTY = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


def corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)


def records_of(batch: Batch) -> Buffer:
    return decompress(batch.codec, batch.records(), RECORDS_DECOMPRESSED_BYTES_MAX)


def whole_batch(chunk: memoryview, at: int) -> Batch | None:
    """The batch at ``at``; None if it is incomplete."""
    if len(chunk) - at < HEADER_BYTES:
        return None
    size = batch_size(chunk, at)
    if size < HEADER_BYTES:
        raise corrupt(f"a batch claims {size} bytes")
    if at + size > len(chunk):
        return None
    batch = Batch(chunk[at : at + size])
    if batch.magic != MAGIC or batch.last_offset_delta < 0 or batch.record_count < 0:
        raise corrupt(f"{batch} has another format")
    return batch


class BatchFilter:
    """Filters the batches of a log, in their order."""

    def __init__(
        self,
        offsets: OffsetMap,
        rule: Rule,
        transactions: CleanedTransactions,
        kept_ends: Iterable[int],
        marker_epochs: Mapping[int, int],
    ) -> None:
        """Batches that end at ``kept_ends`` stay, with or without records.

        So do markers with the epochs in ``marker_epochs``, of producers without records.
        """
        self._offsets = offsets
        self._rule = rule
        self._transactions = transactions
        self._kept_ends = frozenset(kept_ends)
        self._listed = array("q", sorted(self._kept_ends))
        self._marker_epochs = marker_epochs

    def chunk(self, chunk: memoryview) -> tuple[int, list[Buffer], list[Row]]:
        """How many bytes of whole batches were read, their filtered bytes, and a row for each."""
        at = 0
        out: list[Buffer] = []
        rows: list[Row] = []
        while at < len(chunk):
            step, written, found = self._offsets.filter_batches(
                self._rule, self._listed, chunk[at:]
            )
            at += step.consumed
            if written:
                out.append(written)
                rows += found
            if step.reason is Reason.BROKEN:
                raise corrupt(f"no valid batch after offset {step.latest_offset}")
            if step.reason is Reason.NEEDS_BYTES:
                break
            if step.reason is Reason.NEEDS_CALLER:
                batch = whole_batch(chunk, at)
                if batch is None:
                    break
                self._one(batch, out, rows)
                at += batch.size
        return at, out, rows

    def _one(self, batch: Batch, out: list[Buffer], rows: list[Row]) -> None:
        left = self._left_of(batch)
        if left is not None:
            header = Batch(left)
            out.append(left)
            rows.append(
                (header.last_offset, header.max_timestamp, header.size, header.record_count)
            )

    def _left_of(self, batch: Batch) -> Buffer | None:
        if batch.is_control:
            return self._left_of_marker(batch)
        if self._transactions.is_aborted(batch):
            return self._emptied(batch)
        return self._filtered(batch, keep_all=False)

    def _left_of_marker(self, batch: Batch) -> Buffer | None:
        free = self._transactions.is_marker_free(batch)
        horizon = batch.delete_horizon_ms
        if not batch.record_count or (
            free and horizon is not None and horizon <= self._rule.now_ms
        ):
            return self._emptied(batch)
        if free and horizon is None:
            return self._filtered(batch, keep_all=True)
        return batch.buffer

    def _filtered(self, batch: Batch, *, keep_all: bool) -> Buffer | None:
        found = self._offsets.filter(self._rule, batch, records_of(batch), keep_all=keep_all)
        if not found.kept:
            return self._emptied(batch)
        if found.records is None:
            return batch.buffer
        if not batch.crc_ok():
            raise corrupt(f"{batch} is damaged")
        latest = batch.max_timestamp if batch.is_log_append_time else found.max_timestamp
        base_timestamp, attributes = batch.base_timestamp, batch.attributes
        if found.sets_horizon:
            base_timestamp = self._rule.new_horizon
            attributes |= DELETE_HORIZON_BIT
        return replace_records(
            batch,
            compress(batch.codec, found.records),
            attributes=attributes,
            timestamps=(base_timestamp, latest),
            record_count=found.kept,
        )

    def _emptied(self, batch: Batch) -> Buffer | None:
        """A batch without records, if it must stay."""
        last_of_producer = (
            batch.is_control and self._marker_epochs.get(batch.producer_id) == batch.producer_epoch
        )
        if batch.last_offset not in self._kept_ends and not last_of_producer:
            return None
        return batch.buffer if not batch.record_count else without_records(batch)


def without_records(batch: Batch) -> bytes:
    """A batch without records: offsets, sequences, producer and time."""
    return replace_records(
        batch,
        b"",
        attributes=batch.attributes & _KEPT_WHEN_EMPTY | Compression.NONE,
        timestamps=(NO_TIMESTAMP, batch.max_timestamp),
        record_count=0,
    )
