"""The data source ``skylog``: topics as DataFrames.

Spark loads this module in every process, even just to list formats, so slow imports are in
functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skylog.kernel.errors import ConfigError
from skylog.spark.errors import one_sentence
from skylog.spark.quirks import settle

NAME: Final = "skylog"
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


class SkylogSource(DataSource):
    """``spark.read.format("skylog")`` etc., with the options of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return NAME

    @one_sentence
    def schema(self) -> StructType:
        from skylog.spark.options import parse_columns  # noqa: PLC0415

        settle()
        return StructType([StructField(name, TYPES[name]) for name in parse_columns(self.options)])

    @one_sentence
    def reader(self, schema: StructType) -> DataSourceReader:
        from skylog.spark.batch import batch_reader  # noqa: PLC0415
        from skylog.spark.options import parse_batch  # noqa: PLC0415

        settle()
        return batch_reader(parse_batch(self._with_columns(schema)))

    @one_sentence
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from skylog.spark.options import parse_stream  # noqa: PLC0415
        from skylog.spark.stream import StreamReader  # noqa: PLC0415

        return StreamReader(parse_stream(self._with_columns(schema)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from skylog.spark.sink import batch_writer  # noqa: PLC0415
        from skylog.spark.write_options import parse_write  # noqa: PLC0415

        return batch_writer(schema, parse_write(self.options, streaming=False), overwrite)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """``overwrite`` is output mode complete: as with Kafka, each result is appended."""
        from skylog.spark.sink import StreamWriter  # noqa: PLC0415
        from skylog.spark.write_options import parse_write  # noqa: PLC0415

        return StreamWriter(schema, parse_write(self.options, streaming=True))

    def _with_columns(self, schema: StructType) -> dict[str, str]:
        """The options, with the columns of the query's schema."""
        for field in schema.fields:
            expected = TYPES.get(field.name)
            if expected is None:
                raise ConfigError(
                    f"the schema has a column {field.name}; allowed are {', '.join(TYPES)}"
                )
            if field.dataType != expected:
                raise ConfigError(
                    f"the schema's column {field.name} is {field.dataType.simpleString()};"
                    f" it must be {expected.simpleString()}"
                )
        return {**self.options, "columns": ",".join(schema.names)}
