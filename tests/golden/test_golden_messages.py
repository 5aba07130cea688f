"""Internal records, byte for byte as Kafka's own Java classes write them.

``messages.jsonl`` is made by ``tools/golden_messages.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.ids import Uuid
from skylog.wire.codec import decode_at, encode
from skylog.wire.coordinator_records import (
    decode_group_record,
    decode_transaction_record,
    encode_key,
    encode_value,
)
from skylog.wire.messages.index import COORDINATOR_KEYS, METADATAS
from skylog.wire.metadata_records import decode_metadata, encode_metadata
from skylog.wire.registry import message_class
from skylog.wire.schema import Field, Message, Struct

OWN_TAGS_FROM = 10_000
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "messages.jsonl").read_text("utf-8").splitlines()
]


def build(cls: type[Struct], values: dict[str, Any]) -> Any:
    out = cls()
    for field in cls.FIELDS:
        if field.name not in values:
            assert (field.tag or 0) >= OWN_TAGS_FROM
            continue  # a tagged field of ours, which Kafka does not know
        value = values[field.name]
        if value is not None:
            many = field.array
            value = [one(v, field) for v in value] if many else one(value, field)
        setattr(out, field.name, value)
    return out


def one(value: Any, field: Field) -> Any:
    if isinstance(field.type, type):
        return build(field.type, value)
    if field.type == "uuid":
        return Uuid(bytes.fromhex(value))
    return bytes.fromhex(value) if field.type in ("bytes", "records") else value


def rows(kind: str) -> list[tuple[Message, int, bytes]]:
    out = []
    for row in ROWS:
        cls = message_class(row["name"])
        if kind == cls.TYPE:
            out.append((build(cls, row["values"]), row["version"], bytes.fromhex(row["bytes"])))
    return out


def test_metadata_records() -> None:
    seen = set()
    for message, version, written in rows("metadata"):
        assert encode_metadata(message, version) == written
        assert decode_metadata(written) == message
        seen.add(message.API_KEY)
    assert seen == set(METADATAS)


def test_coordinator_keys() -> None:
    seen = set()
    for message, _, written in rows("coordinator-key"):
        assert encode_key(message) == written
        transactions = type(message).__name__ == "TransactionLogKey"
        decoder = decode_transaction_record if transactions else decode_group_record
        assert decoder(written, None) == (message, None)
        seen.add(message.API_KEY)
    assert seen == set(COORDINATOR_KEYS)


def test_coordinator_values() -> None:
    keys = {
        type(message).__name__.removesuffix("Key"): written
        for message, _, written in rows("coordinator-key")
    }
    for message, version, written in rows("coordinator-value"):
        assert encode_value(message, version) == written
        name = type(message).__name__.removesuffix("Value")
        decoder = decode_transaction_record if name == "TransactionLog" else decode_group_record
        record = decoder(keys[name], written)
        assert record is not None
        assert record[1] == message


@pytest.mark.parametrize("name", ["LeaderChangeMessage", "VotersRecord", "QuorumStateData"])
def test_quorum_messages_are_included(name: str) -> None:
    assert name in {row["name"] for row in ROWS}


def test_plain_messages() -> None:
    for message, version, written in rows("data"):
        assert encode(message, version) == written
        assert decode_at(type(message), written, version, 0) == (message, len(written))
