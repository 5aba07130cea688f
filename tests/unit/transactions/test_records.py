"""The records of ``__transaction_state``: Kafka's bytes, and older and later versions."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.transactions.records import ExpiredRecord, TransactionRecord, TransactionRecordCodec
from skylog.transactions.state import State, Transaction

CODEC = TransactionRecordCodec()
FULL = Transaction(
    "an-id",
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=State.PREPARE_COMMIT,
    partitions=frozenset({("b", 1), ("a", 2), ("a", 0)}),
    started_ms=100,
    updated_ms=200,
    previous_producer_id=6,
    next_producer_id=8,
    client_version=2,
)


def test_all_of_it_comes_back() -> None:
    record = TransactionRecord(FULL)
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_the_bytes_are_kafkas() -> None:
    # As written by Kafka 4.3.1's TransactionLog, partitions in order.
    key, value = CODEC.encode(TransactionRecord(FULL))
    assert key == bytes.fromhex("0000 0005 616e2d6964".replace(" ", ""))
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert value[2:10] == (7).to_bytes(8, "big")
    assert value[10:12] == (3).to_bytes(2, "big")
    assert value[12:16] == (60_000).to_bytes(4, "big")
    assert value[16] == 2
    partitions = bytes.fromhex("030261030000000000000002000262020000000100")
    assert value[17 : 17 + len(partitions)] == partitions


def test_an_empty_id_has_no_partitions() -> None:
    _, value = CODEC.encode(TransactionRecord(Transaction("an-id", 7, 0), format=0))
    assert value is not None
    assert value[17:21] == b"\xff\xff\xff\xff"


def test_the_old_format_has_one_producer_id() -> None:
    decoded = CODEC.decode(*CODEC.encode(TransactionRecord(FULL, format=0)))
    assert isinstance(decoded, TransactionRecord)
    assert decoded.transaction.producer_id == 7
    assert decoded.transaction.previous_producer_id == -1
    assert decoded.transaction.client_version == 0


def test_a_tombstone() -> None:
    assert CODEC.decode(*CODEC.encode(ExpiredRecord("an-id"))) == ExpiredRecord("an-id")


def test_what_is_not_known_is_passed_over() -> None:
    key, value = CODEC.encode(TransactionRecord(FULL))
    assert value is not None
    assert CODEC.decode(b"\x00\x09" + key[2:], value) is None
    assert CODEC.decode(key, b"\x00\x02" + value[2:]) is None
    assert CODEC.decode(None, value) is None


def test_damage_is_told() -> None:
    key, value = CODEC.encode(TransactionRecord(FULL))
    assert value is not None
    with pytest.raises(ProtocolError):
        CODEC.decode(key, b"\x00")
    with pytest.raises(ProtocolError):
        CODEC.decode(b"\x00", value)
    with pytest.raises(ProtocolError, match="state 99"):
        CODEC.decode(key, value[:16] + b"\x63" + value[17:])
