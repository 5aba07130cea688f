"""Rows into partitions and records in Python: the specification of rows.c, and what runs where C is
not built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skylog.client.partitioner import partition_of_key
from skylog.wire.records import varint

Header = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length, checked and of one type each; None is a column of nulls."""

    key: pa.BinaryArray | None
    value: pa.BinaryArray | None
    headers: pa.ListArray | None  # of structs of key and value, both binary
    timestamps: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.timestamps)


@dataclass(slots=True)
class TopicState:
    """A topic's partitions, and where its rows without a key go at present."""

    count: int
    stuck: int
    bytes: int = 0  # of rows that went there


class Written(NamedTuple):
    """Records of one batch; ``next`` is the first row that is not among them."""

    next: int
    records: bytearray
    base_timestamp: int
    max_timestamp: int


class PythonRows:
    """The columns as lists."""

    def __init__(self, rows: Rows) -> None:
        nulls: list[Any] = [None] * len(rows)
        self._keys: list[bytes | None] = nulls if rows.key is None else rows.key.to_pylist()
        self._values: list[bytes | None] = nulls if rows.value is None else rows.value.to_pylist()
        self._headers = nulls if rows.headers is None else rows.headers.to_pylist()
        self._timestamps: list[int] = rows.timestamps.tolist()

    def partition(
        self,
        topic_of: np.ndarray[Any, np.dtype[np.int32]] | None,
        topics: Sequence[TopicState],
        wanted: pa.Int32Array | None,
        stick_bytes: int,
    ) -> tuple[int, np.ndarray[Any, np.dtype[np.int32]]]:
        """(first row that asks for a partition its topic has not, or −1; a partition per row)."""
        asked = [None] * len(self._keys) if wanted is None else wanted.to_pylist()
        out = np.zeros(len(self._keys), np.int32)
        for row, key in enumerate(self._keys):
            topic = topics[0 if topic_of is None else int(topic_of[row])]
            choice = asked[row]
            if choice is not None:
                if not 0 <= choice < topic.count:
                    return row, out
                out[row] = choice
            elif key is not None:
                out[row] = partition_of_key(key, topic.count)
            else:
                out[row] = self._stick(topic, len(self._body(row, 0, 0)), stick_bytes)
        return -1, out

    @staticmethod
    def _stick(topic: TopicState, size: int, stick_bytes: int) -> int:
        """Rows without a key stay with a partition until it got so many bytes."""
        chosen = topic.stuck
        topic.bytes += size
        if topic.bytes >= stick_bytes:
            topic.bytes, topic.stuck = 0, (chosen + 1) % topic.count
        return chosen

    def write(
        self,
        order: np.ndarray[Any, np.dtype[np.int64]],
        start: int,
        stop: int,
        bytes_max: int,
    ) -> Written:
        """Rows of ``order`` from ``start`` on, as many as fit into ``bytes_max``, one at least."""
        base = latest = self._timestamps[order[start]]
        records = bytearray()
        at = start
        while at < stop:
            row = int(order[at])
            body = self._body(row, _wrapped(self._timestamps[row] - base), at - start)
            record = varint(len(body)) + body
            if at > start and len(records) + len(record) > bytes_max:
                break
            records += record
            latest = max(latest, self._timestamps[row])
            at += 1
        return Written(at, records, base, latest)

    def _body(self, row: int, time_delta: int, index: int) -> bytes:
        body = b"\0" + varint(time_delta) + varint(index)
        body += _string(self._keys[row]) + _string(self._values[row])
        headers = self._headers[row] or []
        body += varint(len(headers))
        for header in headers:
            body += _string(header["key"]) + _string(header["value"])
        return body


def _string(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _wrapped(difference: int) -> int:
    """Wrapped to 64 bits: added to the base, it gives the timestamp."""
    return (difference + 2**63) % 2**64 - 2**63
