"""Arrow columns into record batches (magic 2), grouped by topic and partition.

Columns are those of Spark's Kafka sink: ``key`` and ``value`` (binary or string), ``topic``,
``partition`` (int), ``headers`` (array of struct of key and value), and ``timestamp``. Others are
ignored. Everything that a broker would refuse is refused here, before anything is sent: the rows
of one write then become visible together or not at all, as far as one client can see to it.

Pure: topics, time and the seed of rows without a key are arguments.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skylog.bulk.rows import Int32s, Int64s, OpenRows, open_rows
from skylog.bulk.rows_columns import BadRows, columns_of, partition_column, topic_column
from skylog.bulk.rows_reference import Rows, TopicState, Written
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.batch import HEADER_BYTES, Compression
from skylog.wire.compression import compress
from skylog.wire.records import join_batch

BATCH_BYTES_DEFAULT: Final = 512 * 1024
_AFTER_CRC: Final = Struct(">hiqqqhii")
_ANY_MS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """What a writer must know about a topic."""

    name: str
    partitions: int
    topic_id: Uuid = ZERO_UUID
    diskless: bool = True
    message_bytes_max: int = 1_048_588
    keyed: bool = False  # compacted: every record needs a key
    # How far timestamps may be in the past and in the future.
    before_ms_max: int = _ANY_MS
    after_ms_max: int = _ANY_MS
    codec: Compression | None = None  # the topic's codec; None leaves it to the writer


@dataclass(frozen=True, slots=True)
class RowBatch:
    """The records of one batch, compressed; the sender adds the header."""

    topic: str
    topic_id: Uuid
    partition: int
    count: int
    codec: Compression
    base_timestamp: int
    max_timestamp: int
    body: bytes | bytearray

    @property
    def size(self) -> int:
        return HEADER_BYTES + len(self.body)

    def joined(self, producer_id: int = -1, epoch: int = -1, sequence: int = -1) -> bytes:
        """The whole batch."""
        after_crc = _AFTER_CRC.pack(
            self.codec,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            epoch,
            sequence,
            self.count,
        )
        return join_batch(0, -1, after_crc, self.body)


class RowEncoder:
    """Encodes what one task writes. Rows without a key rotate through the partitions from
    ``seed`` on."""

    def __init__(
        self,
        *,
        topic: str | None = None,
        codec: Compression = Compression.NONE,
        batch_bytes: int = BATCH_BYTES_DEFAULT,
        seed: int = 0,
    ) -> None:
        """``topic`` is for all rows, whatever their column says."""
        self._topic = topic
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._seed = seed
        self._states: dict[str, TopicState] = {}

    def topics(self, batch: pa.RecordBatch) -> list[str]:
        """The topics that rows go to; BadRows for a row that has none."""
        return [self._topic] if self._topic is not None else topic_column(batch)[0]

    def encode(
        self, batch: pa.RecordBatch, targets: Mapping[str, TopicTarget], now_ms: int
    ) -> list[RowBatch]:
        """Record batches, those of a partition in the order of its rows."""
        if not batch.num_rows:
            return []
        rows = columns_of(batch, now_ms)
        names, topic_of = ([self._topic], None) if self._topic else topic_column(batch)
        chosen = [targets[name] for name in names]
        _check(rows, chosen, topic_of, now_ms)
        opened = open_rows(rows)
        states = [self._state(target) for target in chosen]
        wanted = partition_column(batch)
        bad, partitions = opened.partition(topic_of, states, wanted, self._batch_bytes)
        if bad >= 0:
            target = chosen[0 if topic_of is None else topic_of[bad]]
            raise BadRows(
                f"a row asks for partition {wanted[bad].as_py() if wanted is not None else '?'} of"
                f" topic {target.name}, which has {target.partitions} partitions"
            )
        out: list[RowBatch] = []
        for topic, partition, order in _groups(topic_of, partitions):
            out.extend(self._batches(opened, chosen[topic], partition, order))
        return out

    def _state(self, target: TopicTarget) -> TopicState:
        state = self._states.get(target.name)
        if state is None or state.count != target.partitions:
            first = (self._seed + zlib.crc32(target.name.encode())) % target.partitions
            state = self._states[target.name] = TopicState(target.partitions, first)
        return state

    def _batches(
        self, opened: OpenRows, target: TopicTarget, partition: int, order: Int64s
    ) -> Iterator[RowBatch]:
        room = max(min(self._batch_bytes, target.message_bytes_max) - HEADER_BYTES, 1)
        start, stop = 0, len(order)
        while start < stop:
            written = opened.write(order, start, stop, room)
            batch = self._batch(written, target, partition, written.next - start)
            if batch.size > target.message_bytes_max:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a record for topic {target.name} makes a batch of {batch.size} bytes;"
                    f" the topic's max.message.bytes is {target.message_bytes_max}",
                )
            yield batch
            start = written.next

    def _batch(self, written: Written, target: TopicTarget, partition: int, count: int) -> RowBatch:
        codec = self._codec if target.codec is None else target.codec
        body: bytes | bytearray = written.records
        if codec is not Compression.NONE:
            body = compress(codec, written.records)
            # A compressed batch that is not smaller must not exceed the topic's limit either.
            if len(body) >= len(written.records) and target.codec is None:
                codec, body = Compression.NONE, written.records
        return RowBatch(
            target.name,
            target.topic_id,
            partition,
            count,
            codec,
            written.base_timestamp,
            written.max_timestamp,
            body,
        )


def _groups(topic_of: Int32s | None, partitions: Int32s) -> Iterator[tuple[int, int, Int64s]]:
    """(topic, partition, its rows in order), for each that has any."""
    topics: Any = 0 if topic_of is None else topic_of.astype(np.int64)
    groups = (topics << 32) + partitions.astype(np.int64)
    order = np.argsort(groups, kind="stable").astype(np.int64)
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(order)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        group = int(ordered[start])
        yield group >> 32, group & 0xFFFF_FFFF, np.ascontiguousarray(order[start:end])


def _check(
    rows: Rows, targets: Sequence[TopicTarget], topic_of: Int32s | None, now_ms: int
) -> None:
    """Refuse rows that the topics' rules refuse."""
    for index, target in enumerate(targets):
        stamps = rows.timestamps if topic_of is None else rows.timestamps[topic_of == index]
        earliest = max(now_ms - target.before_ms_max, 0)
        latest = now_ms + target.after_ms_max
        if len(stamps) and not earliest <= int(stamps.min()) <= int(stamps.max()) <= latest:
            bad = next(int(one) for one in stamps if not earliest <= one <= latest)
            raise BadRows(
                f"a row for topic {target.name} has timestamp {bad} ms; the topic's settings"
                f" message.timestamp.before.max.ms and message.timestamp.after.max.ms allow"
                f" {earliest} to {latest}"
            )
        if target.keyed and _lacks_key(rows, topic_of, index):
            raise BadRows(f"a row for topic {target.name} has no key, and the topic is compacted")


def _lacks_key(rows: Rows, topic_of: Int32s | None, index: int) -> bool:
    if rows.key is None:
        return True
    if not rows.key.null_count:
        return False
    nulls = rows.key.is_null().to_numpy(zero_copy_only=False)
    return bool(nulls.any() if topic_of is None else nulls[topic_of == index].any())
