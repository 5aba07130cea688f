"""Reading the marker that ends a transaction out of its control batch."""

from __future__ import annotations

from struct import Struct, error
from typing import Final

from skylog.kernel.errors import KafkaError
from skylog.log.producers import Marker
from skylog.wire.batch import Batch
from skylog.wire.records import decode_records

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


def marker_of(batch: Batch) -> Marker | None:
    """None for a control batch of another kind."""
    try:
        records = decode_records(batch)
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (KafkaError, IndexError, error):
        return None
    return Marker(coordinator_epoch, kind == _COMMIT) if kind in (_ABORT, _COMMIT) else None
