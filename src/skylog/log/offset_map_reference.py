"""The offset map and the record filter of compaction in Python, for use without the C module.

The memory of a map is bounded by counting the size of an entry; see offset_map.py for the rest.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer
from skylog.wire.records import varint
from skylog.wire.walker import locate
from skylog.wire.walker_reference import Location, read_varint

# A digest, an offset and their dictionary entry.
_ENTRY_BYTES: Final = 192


class Reason(IntEnum):
    """Why a walk over batches ended."""

    NEEDS_BYTES = 0
    NEEDS_CALLER = 1
    MAP_FULL = 2
    BROKEN = 3
    NO_ROOM = 4


class Progress(NamedTuple):
    """The result of a walk over batches: how far it got, and what it wrote."""

    latest_offset: int
    consumed: int
    reason: Reason
    written: int = 0
    rows: int = 0


class Rule(NamedTuple):
    """The conditions for keeping records besides the map."""

    latest_offset: int  # later records are kept
    now_ms: int
    new_horizon: int  # for tombstones that have none yet


class Filtered(NamedTuple):
    """What is left of a batch; ``records`` is None if all of them stay unchanged."""

    kept: int
    sets_horizon: bool
    max_timestamp: int
    records: Buffer | None


# last offset, max timestamp, size and record count of a batch that was written
Row = tuple[int, int, int, int]


class PythonOffsetMap:
    """The offset of the newest record of each key, by a digest of the key."""

    def __init__(self, bytes_max: int, load_factor: float, records_max: int, seed: bytes) -> None:
        self._seed = seed
        self._entries_max = max(min(int(bytes_max / _ENTRY_BYTES * load_factor), records_max), 1)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def _digest(self, data: Buffer, record: Location) -> bytes:
        key = data[record.key_at : record.key_at + record.key_size]
        return blake2b(key, digest_size=16, key=self._seed).digest()

    def note(self, data: Buffer, count: int, base_offset: int, start_offset: int) -> bool:
        """Add a batch's records; False if there is no room for them all."""
        offsets = self._offsets
        for record in _located(data, count, 0):
            offset = base_offset + record.offset_delta
            if record.key_size < 0 or offset < start_offset:
                continue
            digest = self._digest(data, record)
            if digest not in offsets and len(offsets) >= self._entries_max:
                return False
            offsets[digest] = offset
        return True

    def note_batches(self, data: Buffer, start_offset: int) -> Progress:
        """Leave every batch to the caller."""
        return Progress(-1, 0, Reason.NEEDS_CALLER if data else Reason.NEEDS_BYTES)

    def filter(self, rule: Rule, batch: Batch, data: Buffer, *, keep_all: bool) -> Filtered:
        """Drop records that are not the newest of their key, and expired tombstones."""
        records = _located(data, batch.record_count, batch.base_timestamp)
        kept = [r for r in records if keep_all or self._is_kept(rule, batch, data, r)]
        no_horizon = batch.delete_horizon_ms is None
        anew = no_horizon and any(keep_all or r.value_size < 0 for r in kept)
        latest = max((r.timestamp for r in kept), default=-(2**63))
        if not kept or (len(kept) == len(records) and not anew):
            return Filtered(len(kept), anew, latest, None)
        ends = {a.record_at: b.record_at for a, b in pairwise(records)}
        out = bytearray()
        for record in kept:
            raw = data[record.record_at : ends.get(record.record_at, len(data))]
            out += _told_from(raw, record.timestamp - rule.new_horizon) if anew else raw
        return Filtered(len(kept), anew, latest, out)

    def _is_kept(self, rule: Rule, batch: Batch, data: Buffer, record: Location) -> bool:
        offset = batch.base_offset + record.offset_delta
        if offset > rule.latest_offset:
            return True
        if record.key_size < 0:
            return False
        horizon = batch.delete_horizon_ms
        if record.value_size < 0 and horizon is not None and rule.now_ms >= horizon:
            return False
        return bool(offset >= self._offsets.get(self._digest(data, record), -1))

    def filter_batches(
        self, rule: Rule, listed: array[int], data: Buffer
    ) -> tuple[Progress, bytes, list[Row]]:
        """Leave every batch to the caller."""
        return self.note_batches(data, 0), b"", []


def _located(data: Buffer, count: int, base_timestamp: int) -> list[Location]:
    try:
        return locate(data, count, base_timestamp)
    except ValueError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _told_from(raw: Buffer, timestamp_delta: int) -> bytes:
    """A record with another timestamp delta, wrapped to 64 bits."""
    _, body = read_varint(raw, 0, len(raw))
    _, rest = read_varint(raw, body + 1, len(raw), bytes_max=10)
    wrapped = (timestamp_delta + 2**63) % 2**64 - 2**63
    told = bytes(raw[body : body + 1]) + varint(wrapped) + bytes(raw[rest:])
    return varint(len(told)) + told
