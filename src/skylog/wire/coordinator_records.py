"""Records of ``__consumer_offsets`` and ``__transaction_state``: keys by type, values by version.

A key is preceded by its type, a value by its version, both of two bytes. The two topics number
their types independently, hence a decoder for each.
"""

from __future__ import annotations

import struct
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode, encode
from skylog.wire.messages import index
from skylog.wire.registry import message_class
from skylog.wire.schema import Message

_NUMBER: Final = struct.Struct(">h")
# Keys have one version each, so their type replaces it.
_KEY_VERSION: Final = 0
_TRANSACTION_PREFIX: Final = "TransactionLog"


def encode_key(message: Message) -> bytes:
    """A record's key: its type, then the message."""
    if message.TYPE != "coordinator-key":
        raise ProtocolError(f"{type(message).__name__} is not a coordinator's record key")
    return _NUMBER.pack(message.API_KEY) + encode(message, _KEY_VERSION)


def encode_value(message: Message, version: int) -> bytes:
    """A record's value: its version, then the message."""
    if message.TYPE != "coordinator-value":
        raise ProtocolError(f"{type(message).__name__} is not a coordinator's record value")
    return _NUMBER.pack(version) + encode(message, version)


def decode_group_record(
    key: Buffer | None, value: Buffer | None
) -> tuple[Message, Message | None] | None:
    """A record of ``__consumer_offsets``; None for a type of a later Kafka version."""
    return _decode(key, value, transactions=False)


def decode_transaction_record(
    key: Buffer | None, value: Buffer | None
) -> tuple[Message, Message | None] | None:
    """A record of ``__transaction_state``; None for an unknown type."""
    return _decode(key, value, transactions=True)


def _decode(
    key: Buffer | None, value: Buffer | None, *, transactions: bool
) -> tuple[Message, Message | None] | None:
    kind = _number(key, "key")
    key_class = _named(index.COORDINATOR_KEYS, kind, transactions)
    value_class = _named(index.COORDINATOR_VALUES, kind, transactions)
    if key is None or key_class is None or value_class is None:
        return None
    key_message = decode(key_class, key, _KEY_VERSION, _NUMBER.size)
    if value is None:
        return key_message, None
    version = _number(value, "value")
    return key_message, decode(value_class, value, version, _NUMBER.size)


def _named(
    table: dict[int, tuple[str, ...]], kind: int, transactions: bool
) -> type[Message] | None:
    for name in table.get(kind, ()):
        if name.startswith(_TRANSACTION_PREFIX) == transactions:
            return message_class(name)
    return None


def _number(data: Buffer | None, what: str) -> int:
    if data is None or len(data) < _NUMBER.size:
        raise ProtocolError(f"a coordinator record's {what} without a number")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
