"""Avro values: the columns of a schema, and rows of them.

Types that Arrow lacks become JSON text: unions of several types, recursive records, decimals of
more than 38 digits.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import pyarrow as pa

from skylog.kernel.errors import ConfigError

# A schema that is not a record has one field.
VALUE: Final = "value"
DECIMAL_DIGITS_MAX: Final = 38
_PRIMITIVE: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time64("us"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("string", "uuid"): pa.string(),
}


class AvroError(ValueError):
    """A value does not match its schema."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema as it was written; its columns."""

    text: str
    fields: tuple[pa.Field, ...]

    @classmethod
    def parse(cls, text: str, where: str) -> AvroSchema:
        """ConfigError if it is invalid."""
        try:
            parsed = fastavro.parse_schema(json.loads(text))
            return cls(text, tuple(_Types().fields(parsed)))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f"{where} is not a valid Avro schema: {error}") from None
        except fastavro.schema.SchemaParseException as error:
            raise ConfigError(f"{where} is not a valid Avro schema: {error}") from None


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema["type"] in ("record", "error")


class _Types:
    """Arrow types of a schema; remembers named types, and those it is within."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._within: set[str] = set()

    def fields(self, schema: Any) -> list[pa.Field]:
        if _is_record(schema):
            self._meet(schema)
            self._within.add(schema["name"])
            return [pa.field(field["name"], self.type(field["type"])) for field in schema["fields"]]
        return [pa.field(VALUE, self.type(schema))]

    def _meet(self, schema: Any) -> None:
        self._named[schema["name"]] = schema

    def type(self, schema: Any) -> Any:
        if isinstance(schema, list):
            others = [branch for branch in schema if branch not in ("null", {"type": "null"})]
            for branch in others:
                self.type(branch)  # it may define names used later
            return self.type(others[0]) if len(others) == 1 else pa.string()
        if isinstance(schema, str):
            if schema in _PRIMITIVE:
                return _PRIMITIVE[schema]
            known = self._named.get(schema)
            return pa.string() if known is None or schema in self._within else self.type(known)
        return self._complex(schema)

    def _complex(self, schema: Any) -> Any:
        kind = schema["type"]
        logical = schema.get("logicalType")
        if (kind, logical) in _LOGICAL:
            return _LOGICAL[kind, logical]
        if logical == "decimal" and kind in ("bytes", "fixed"):
            if schema["precision"] > DECIMAL_DIGITS_MAX:
                return pa.string()
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        if kind == "array":
            return pa.list_(self.type(schema["items"]))
        if kind == "map":
            return pa.map_(pa.string(), self.type(schema["values"]))
        if kind in ("enum", "fixed"):
            self._meet(schema)
            return pa.string() if kind == "enum" else pa.binary(schema["size"])
        if _is_record(schema):
            return self._record(schema)
        return self.type(kind)

    def _record(self, schema: Any) -> Any:
        self._meet(schema)
        self._within.add(schema["name"])
        fields = [pa.field(field["name"], self.type(field["type"])) for field in schema["fields"]]
        self._within.discard(schema["name"])
        return pa.struct(fields) if fields else pa.string()


class AvroDecoder:
    """Decodes values of one schema; created where it is used."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema.text))
        self._types = {field.name: field.type for field in schema.fields}
        self._is_record = _is_record(self._schema)

    def decode(self, data: bytes) -> Mapping[str, Any]:
        """The fields of a value, ready for Arrow; AvroError says why it cannot be decoded."""
        stream = io.BytesIO(data)
        try:
            found: Any = fastavro.schemaless_reader(stream, self._schema, None)
            row = found if self._is_record else {VALUE: found}
            shaped = {name: _shape(row[name], kind) for name, kind in self._types.items()}
        except Exception as error:  # noqa: BLE001 - invalid data can raise anything
            raise AvroError(f"not of this Avro schema: {error or type(error).__name__}") from None
        left = len(data) - stream.tell()
        if left:
            raise AvroError(f"{left} bytes follow the end of the Avro value")
        return shaped


def _shape(value: Any, kind: Any) -> Any:
    """The form that Arrow takes for a value of a type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _shape(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_shape(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(key, _shape(item, kind.item_type)) for key, item in value.items()]
    if pa.types.is_string(kind) and not isinstance(value, str):
        return str(value) if isinstance(value, uuid.UUID) else json.dumps(value, default=_text)
    return value


def _text(value: Any) -> Any:
    """For JSON: bytes as in Avro's own JSON encoding, everything else as printed."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
