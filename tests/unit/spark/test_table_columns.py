"""Columns are added and widened, and never lost or mixed up."""

from __future__ import annotations

import io
import json
import uuid
from datetime import date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.table.avro import AvroDecoder, AvroError, AvroSchema
from skylog.spark.jobs.table.columns import RECORD, Columns, source_of
from skylog.spark.jobs.table.state import State


def field(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind)


def names(columns: Columns) -> dict[str, str]:
    return {source_of(one): one.name for one in columns.fields}


def test_names_that_are_taken_get_others_for_good() -> None:
    first, _ = Columns().merge([field("_key", pa.string()), field("a.b", pa.int64())])
    assert names(first) == {"_key": "_key_", "a.b": "a_b"}
    second, _ = first.merge(
        [field("a_b", pa.string()), field("A_B", pa.string()), field("a.b", pa.int64())]
    )
    assert names(second) == {"_key": "_key_", "a.b": "a_b", "a_b": "a_b_", "A_B": "A_B__"}
    again = Columns.decode(second.encode())
    assert names(again) == names(second)
    assert again.schema.names == [*RECORD.names, "_key_", "a_b", "a_b_", "A_B__"]
    assert again.sources.names == ["_key", "a.b", "a_b", "A_B"]


@pytest.mark.parametrize(
    ("kept", "found", "merged"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int64()),
        ),
        (
            pa.struct([("a", pa.int32())]),
            pa.struct([("b", pa.string()), ("a", pa.int64())]),
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
    ],
)
def test_types_widen(kept: pa.DataType, found: pa.DataType, merged: pa.DataType) -> None:
    columns, _ = Columns().merge([field("x", kept)])
    columns, conflicts = columns.merge([field("x", found)])
    assert not conflicts
    assert columns.fields[0].type == merged


def test_types_that_change_otherwise_are_told() -> None:
    columns, _ = Columns().merge([field("x", pa.struct([("a", pa.list_(pa.int64()))]))])
    more = pa.struct([("a", pa.list_(pa.string())), ("b", pa.int32())])
    columns, conflicts = columns.merge([field("x", more)])
    assert conflicts == ["x.a[] is string, the table has int64"]
    # New columns beside it are added all the same.
    assert columns.fields[0].type.field("b").type == pa.int32()


def test_states_are_read_back() -> None:
    columns, _ = Columns().merge([field("_key", pa.string())])
    state = State("t", "id", "json", columns, 3, {0: 5, 10: 7}).after({0: 9})
    again = State.decode(state.encode(), "it")
    assert again == state
    assert (again.chunk, again.offsets) == (4, {0: 9, 10: 7})
    for wrong in ("nonsense", "[]", '{"version": 9}', "{}"):
        with pytest.raises(ConfigError, match="it is not a state of this release"):
            State.decode(wrong, "it")


AVRO = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "sum",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "huge", "type": {"type": "bytes", "logicalType": "decimal", "precision": 60}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "before", "type": "State"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "hour", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "parent", "type": ["null", "Order"]},
        {"name": "either", "type": ["null", "int", "string"]},
        {"name": "maybe", "type": ["string", "null"]},
        {"name": "nothing", "type": {"type": "record", "name": "Nothing", "fields": []}},
        {"name": "null", "type": "null"},
    ],
}  # fmt: skip


def test_avro_schemas_make_columns() -> None:
    schema = AvroSchema.parse(json.dumps(AVRO), "it")
    types = {one.name: one.type for one in schema.fields}
    assert types == {
        "id": pa.string(),
        "sum": pa.decimal128(9, 2),
        "huge": pa.string(),
        "state": pa.string(),
        "before": pa.string(),
        "hash": pa.binary(4),
        "day": pa.date32(),
        "hour": pa.time64("us"),
        "local": pa.timestamp("us"),
        "parent": pa.string(),
        "either": pa.string(),
        "maybe": pa.string(),
        "nothing": pa.string(),
        "null": pa.string(),
    }
    assert AvroSchema.parse('"long"', "it").fields == (pa.field("value", pa.int64()),)
    for wrong in ("nonsense", '{"type": "nope"}', "{}", "5"):
        with pytest.raises(ConfigError, match="it is not a valid Avro schema"):
            AvroSchema.parse(wrong, "it")


def test_avro_values_fit_their_columns() -> None:
    order = {
        "id": uuid.UUID(int=5),
        "sum": Decimal("1.25"),
        "huge": Decimal(10) ** 50,
        "state": "NEW",
        "before": "OLD",
        "hash": b"abcd",
        "day": date(2026, 1, 2),
        "hour": time(1, 2, 3),
        "local": datetime(2026, 1, 2, 3, 4, 5),
        "parent": None,
        "either": 5,
        "maybe": None,
        "nothing": {},
        "null": None,
    }
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), {**order, "parent": order})
    schema = AvroSchema.parse(json.dumps(AVRO), "it")
    decoder = AvroDecoder(schema)
    row = decoder.decode(stream.getvalue())
    for one in schema.fields:
        pa.array([row[one.name]], one.type)
    assert (row["id"], row["sum"], row["either"]) == (str(uuid.UUID(int=5)), Decimal("1.25"), "5")
    assert json.loads(row["parent"])["state"] == "NEW"
    assert json.loads(row["parent"])["hash"] == "abcd"
    for cut in range(len(stream.getvalue())):
        with pytest.raises(AvroError):
            decoder.decode(stream.getvalue()[:cut])
