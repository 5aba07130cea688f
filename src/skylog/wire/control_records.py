"""Control records, which brokers and the quorum write to logs.

The key is a version and a type of two bytes each. The value is a message of that type; only
transaction markers are preceded by their version, the others start with a version field.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode, encode
from skylog.wire.messages.end_txn_marker import EndTxnMarker
from skylog.wire.messages.k_raft_version_record import KRaftVersionRecord
from skylog.wire.messages.leader_change_message import LeaderChangeMessage
from skylog.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from skylog.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from skylog.wire.messages.voters_record import VotersRecord
from skylog.wire.schema import Message


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_CLASSES: Final[dict[int, type[Message]]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0
_VERSION: Final = struct.Struct(">h")


def control_record(kind: int, message: Message, version: int = 0) -> tuple[bytes, bytes]:
    """The key and the value of a control record."""
    if _CLASSES.get(kind) is not type(message):
        raise ProtocolError(f"{type(message).__name__} is not a control record of type {kind}")
    value = encode(message, version)
    if isinstance(message, EndTxnMarker):
        value = _VERSION.pack(version) + value
    return _KEY.pack(_KEY_VERSION, kind), value


def transaction_marker(commit: bool, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """The marker that ends a transaction in a partition."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return control_record(kind, EndTxnMarker(coordinator_epoch=coordinator_epoch))


def control_type(key: Buffer | None) -> int:
    """The type in a control record's key, which may be unknown."""
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("a control record without a type")
    version, kind = _KEY.unpack_from(key)
    if version < _KEY_VERSION:
        raise ProtocolError(f"a control record's key of version {version}")
    return int(kind)


def parse_control(key: Buffer | None, value: Buffer | None) -> tuple[int, Message | None]:
    """(type, message); no message for a type of a later Kafka version.

    A version above ours is parsed as our highest: later versions only append fields.
    """
    kind = control_type(key)
    cls = _CLASSES.get(kind)
    if cls is None:
        return kind, None
    if value is None or len(value) < _VERSION.size:
        raise ProtocolError(f"a control record of type {kind} without a value")
    version = min(_VERSION.unpack_from(value)[0], cls.VERSIONS.high)
    return kind, decode(cls, value, version, _VERSION.size if cls is EndTxnMarker else 0)
