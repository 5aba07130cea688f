"""The formats of values: bytes, JSON or Avro. The driver's side, and what it sends to tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.table.avro import AvroDecoder, AvroError, AvroSchema
from skylog.spark.jobs.table.columns import Columns, source_of
from skylog.spark.jobs.table.registry import Registry
from skylog.spark.jobs.table.writer import Decoded, Decoder

# The columns read of each record.
READ: Final = ("key", "value", "partition", "offset", "timestamp", "headers")
_MAGIC: Final = 0
_FRAME: Final = 5
# The exceptions of Arrow for values that a column cannot hold.
_UNFIT: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)


class Format(Protocol):
    """How a topic's values become columns."""

    @property
    def name(self) -> str:
        """Never changes for a table."""
        ...

    def known(self) -> list[pa.Field]:
        """Fields that are known before anything is read."""
        ...

    def look(self, frame: DataFrame) -> list[pa.Field]:
        """The fields of a chunk, if it must be scanned before it is decoded."""
        ...

    def learn(self, numbers: Iterable[int], columns: Columns) -> Columns:
        """Look up schemas that tasks did not know; returns the columns extended by theirs."""
        ...

    def prepare(self, frame: DataFrame, columns: Columns) -> DataFrame:
        """The transformation by Spark before tasks decode and write."""
        ...

    def decoder(self, columns: Columns) -> Decoder: ...


class _Plain:
    """A format whose fields are known before anything is read."""

    def look(self, frame: DataFrame) -> list[pa.Field]:
        return []

    def learn(self, numbers: Iterable[int], columns: Columns) -> Columns:
        return columns

    def prepare(self, frame: DataFrame, columns: Columns) -> DataFrame:
        return frame


# Raw ---------------------------------------------------------------------------------------------


class RawFormat(_Plain):
    """Values unchanged."""

    name = "raw"

    def known(self) -> list[pa.Field]:
        return [pa.field("value", pa.binary())]

    def decoder(self, columns: Columns) -> Decoder:
        return _RawDecoder()


@dataclass(frozen=True, slots=True)
class _RawDecoder:
    def unknown(self, batch: pa.RecordBatch) -> set[int]:
        return set()

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        return Decoded([batch.column("value")], pa.nulls(len(batch), pa.string()))


# JSON --------------------------------------------------------------------------------------------

# The value is put in a list between two marks, so that nothing can follow it.
_WRAPPED: Final = """concat('{"row":[', cast(value as string), '],"end":true}')"""
_PARSED: Final = "parsed"
_CORRUPT: Final = "corrupt"
_FITS: Final = (
    f"{_PARSED}.end and {_PARSED}.{_CORRUPT} is null and size({_PARSED}.row) = 1"
    f" and get({_PARSED}.row, 0) is not null"
)
_ERROR: Final = f"""case
  when value is null or ({_FITS} and is_valid_utf8(cast(value as string))) then null
  when not is_valid_utf8(cast(value as string)) then 'is not UTF-8'
  when try_parse_json(cast(value as string)) is null then 'is not JSON'
  else 'is not an object that fits the columns of the table' end"""


class JsonFormat(_Plain):
    """JSON objects. Without a schema, each chunk is scanned for new fields."""

    name = "json"

    def __init__(self, spark: SparkSession, schema: str | None) -> None:
        self._spark = spark
        self._given = None if schema is None else _json_fields(schema)

    def known(self) -> list[pa.Field]:
        return self._given or []

    def look(self, frame: DataFrame) -> list[pa.Field]:
        if self._given is not None:
            return []
        values = frame.where("value is not null and is_valid_utf8(cast(value as string))")
        found = (
            self._spark.read.option("dropFieldIfAllNull", "true")
            .option("mode", "DROPMALFORMED")
            .json(values.selectExpr("cast(value as string)"))
            .schema
        )
        return [_undotted(one) for one in to_arrow_schema(found, timezone="UTC")]

    def prepare(self, frame: DataFrame, columns: Columns) -> DataFrame:
        row = StructType([*from_arrow_schema(columns.sources).fields])
        schema = StructType(
            [
                StructField("row", ArrayType(row)),
                StructField("end", BooleanType()),
                StructField(_CORRUPT, StringType()),
            ]
        )
        options = {"columnNameOfCorruptRecord": _CORRUPT}
        return (
            frame.withColumn(_PARSED, F.from_json(F.expr(_WRAPPED), schema, options))
            .withColumn("error", F.expr(_ERROR))
            .withColumn("row", F.expr(f"get({_PARSED}.row, 0)"))
            .withColumn("tombstone", F.expr("value is null"))
            .withColumn("value", F.expr("case when error is not null then value end"))
            .drop(_PARSED)
        )

    def decoder(self, columns: Columns) -> Decoder:
        return _JsonDecoder()


@dataclass(frozen=True, slots=True)
class _JsonDecoder:
    """Spark has already parsed the values."""

    def unknown(self, batch: pa.RecordBatch) -> set[int]:
        return set()

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        return Decoded(batch.column("row").flatten(), batch.column("error"))


def _json_fields(text: str) -> list[pa.Field]:
    """Fields of a schema in Spark's notation, ``a bigint, b array<string>``, or its JSON."""
    try:
        is_json = text.lstrip().startswith("{")
        parsed = StructType.fromJson(json.loads(text)) if is_json else StructType.fromDDL(text)
        if not isinstance(parsed, StructType):
            raise ConfigError(f"--schema is {parsed.simpleString()}; it must have named columns")
        found = list(to_arrow_schema(parsed, timezone="UTC"))
    except (PySparkException, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"--schema is not a valid Spark schema: {error}") from None
    for one in found:
        if _undotted(one) is not one:
            raise ConfigError(f"--schema: a name within {one.name} is empty or has a dot")
    return found


def _undotted(one: pa.Field) -> pa.Field:
    """A struct with names that a table cannot have is stored as JSON text."""
    return pa.field(one.name, pa.string()) if _is_dotted(one.type) else one


def _is_dotted(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any("." in f.name or _is_dotted(f.type) for f in kind)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _is_dotted(kind.value_type if pa.types.is_list(kind) else kind.item_type)
    return False


# Avro --------------------------------------------------------------------------------------------


class AvroFormat(_Plain):
    """Avro of one schema, or each value prefixed with its schema id (Confluent)."""

    name = "avro"

    def __init__(self, schema: AvroSchema | None, registry: Registry | None) -> None:
        if (schema is None) == (registry is None):
            raise ConfigError("avro needs one of --schema and --schemas")
        self._plain = schema
        self._registry = registry
        self._known: dict[int, AvroSchema | str] = {}

    def known(self) -> list[pa.Field]:
        return [] if self._plain is None else list(self._plain.fields)

    def learn(self, numbers: Iterable[int], columns: Columns) -> Columns:
        for number in sorted(numbers):
            found = self._registry.find(number) if self._registry is not None else "no registry"
            if isinstance(found, AvroSchema):
                merged, conflicts = columns.merge(found.fields)
                if conflicts:
                    found = f"Avro schema {number} does not fit: {'; '.join(conflicts)}"
                else:
                    columns = merged
            self._known[number] = found
        return columns

    def decoder(self, columns: Columns) -> Decoder:
        return _AvroDecoder(columns, self._plain, dict(self._known))


@dataclass(slots=True)
class _AvroDecoder:
    columns: Columns
    plain: AvroSchema | None
    known: Mapping[int, AvroSchema | str]
    made: dict[int, AvroDecoder] = field(default_factory=dict)

    def unknown(self, batch: pa.RecordBatch) -> set[int]:
        if self.plain is not None:
            return set()
        frames = pc.unique(pc.binary_slice(batch.column("value"), 0, _FRAME)).to_pylist()
        numbers = {number for frame in frames if (number := _number(frame)) is not None}
        return numbers - self.known.keys()

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        rows: list[Mapping[str, Any]] = []
        errors: list[str | None] = []
        for value in batch.column("value").to_pylist():
            row: Mapping[str, Any] = {}
            error = None
            try:
                row = {} if value is None else self._decode(value)
            except AvroError as fault:
                error = str(fault)
            rows.append(row)
            errors.append(error)
        try:
            arrays = self._arrays(rows)
        except _UNFIT:
            for index, row in enumerate(rows):
                try:
                    self._arrays([row])
                except _UNFIT as fault:
                    rows[index], errors[index] = {}, f"does not fit its column: {fault}"
            arrays = self._arrays(rows)
        return Decoded(arrays, pa.array(errors, pa.string()))

    def _arrays(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [
            pa.array([row.get(source_of(column)) for row in rows], column.type)
            for column in self.columns.fields
        ]

    def _decode(self, value: bytes) -> Mapping[str, Any]:
        if self.plain is not None:
            return self._decoder(-1, self.plain).decode(value)
        number = _number(value[:_FRAME])
        if number is None:
            raise AvroError("the Avro value has no schema id before it")
        schema = self.known[number]
        if isinstance(schema, str):
            raise AvroError(schema)
        return self._decoder(number, schema).decode(value[_FRAME:])

    def _decoder(self, number: int, schema: AvroSchema) -> AvroDecoder:
        if number not in self.made:
            self.made[number] = AvroDecoder(schema)
        return self.made[number]


def _number(frame: bytes | None) -> int | None:
    if frame is None or len(frame) < _FRAME or frame[0] != _MAGIC:
        return None
    return int.from_bytes(frame[1:], "big")
