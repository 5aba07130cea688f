"""The marker that ends a transaction, and the control batch that holds it."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import Final

from skylog.kernel.errors import KafkaError
from skylog.log.producers import Marker, TransactionEnd
from skylog.wire.batch import Batch
from skylog.wire.control_records import transaction_marker
from skylog.wire.records import decode_records, encode_batch

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


def marker_batch(end: TransactionEnd, now_ms: int) -> Batch:
    """What stands at the end of a transaction in each of its partitions."""
    return Batch(bytearray(_encoded(end, now_ms)))


@lru_cache(maxsize=16)  # of one request, mostly: all partitions of a transaction get the same
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
    try:
        records = decode_records(batch)
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (KafkaError, IndexError, error):
        return None
    return Marker(coordinator_epoch, kind == _COMMIT) if kind in (_ABORT, _COMMIT) else None
