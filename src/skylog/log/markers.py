"""The marker that ends a transaction, and the control batch that holds it."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import Final

from skylog.kernel.errors import KafkaError
from skylog.log.producers import Marker, TransactionEnd
from skylog.wire.batch import HEADER_BYTES, Batch
from skylog.wire.control_records import transaction_marker
from skylog.wire.records import decode_records, encode_batch

# A marker as brokers write it: a key and a value between fields of constant length.
_RECORD: Final = Struct(">5s2xhs2xis")
_FRAME: Final = (b"\x20\x00\x00\x00\x08", b"\x0c", b"\x00")
MARKER_BYTES: Final = HEADER_BYTES + _RECORD.size
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


def marker_batch(end: TransactionEnd, now_ms: int) -> Batch:
    """The record that ends a transaction in each of its partitions."""
    return Batch(bytearray(_encoded(end, now_ms)))


@lru_cache(maxsize=16)  # all partitions of a transaction get the same one
def _encoded(end: TransactionEnd, now_ms: int) -> bytes:
    record = transaction_marker(end.marker.commits, end.marker.coordinator_epoch)
    encoded = encode_batch(
        [record],
        timestamp=now_ms,
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        control=True,
        transactional=True,
    )
    return bytes(encoded)


def marker_of(batch: Batch) -> Marker | None:
    """None for a control batch of another kind."""
    if batch.size == MARKER_BYTES and batch.codec == 0:
        before, kind, between, coordinator_epoch, after = _RECORD.unpack_from(
            batch.buffer, HEADER_BYTES
        )
        if (before, between, after) == _FRAME:
            return _marker(kind, coordinator_epoch)
    return _decoded(batch)


def _decoded(batch: Batch) -> Marker | None:
    try:
        records = decode_records(batch)
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (KafkaError, IndexError, error):
        return None
    return _marker(kind, coordinator_epoch)


def _marker(kind: int, coordinator_epoch: int) -> Marker | None:
    return Marker(coordinator_epoch, kind == _COMMIT) if kind in (_ABORT, _COMMIT) else None
