"""The writing side of the data source ``skylog``: DataFrames into topics.

Tasks stage what they write to diskless topics; the driver makes it visible, once per epoch of a
stream or once per ``writeId`` of a batch, whatever is killed in between (``bulk/epoch.py``).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from skylog.bulk.epoch import NotBegun
from skylog.bulk.writer import EpochDriver, WriteContext, Written, write_rows
from skylog.kernel.errors import ConfigError, SkylogError
from skylog.spark.quirks import settle
from skylog.spark.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_QUERY_ID: Final = "sql.streaming.queryId"
# A batch is one epoch.
_BATCH_EPOCH: Final = 0
_TEXT_OR_BYTES: Final = ("string", "binary")
_ALLOWED: Final = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "topic": ("string",),
    "partition": ("int", "smallint", "tinyint"),
    "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
    "headers": ("array<struct<key:string,value:binary>>",),
}


class WriteError(SkylogError):
    """A write failed; the message says what is missing and where."""


@dataclass(frozen=True)
class SinkMessage(WriterCommitMessage):
    """What a task returns to the driver."""

    written: Written
    query: str | None = None


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Refuse a DataFrame that cannot be written, before anything runs; ConfigError."""
    names = schema.fieldNames()
    if "value" not in names:
        raise ConfigError(f"the DataFrame has no column value; it has {', '.join(names) or 'none'}")
    if "topic" not in names and options.topic is None:
        raise ConfigError("neither a column topic nor the option topic says which topic rows go to")
    for name, allowed in _ALLOWED.items():
        if names.count(name) > 1:
            raise ConfigError(f"the DataFrame has {names.count(name)} columns {name}")
        if name in names and not (name == "topic" and options.topic is not None):
            _check_type(name, schema[name].dataType, allowed)


def _check_type(name: str, kind: DataType, allowed: Sequence[str]) -> None:
    said = kind.simpleString()
    if said not in (*allowed, "void"):
        raise ConfigError(f"column {name} is {said}; allowed are {', '.join(allowed)}")


class _Sink:
    """The common part of batch and stream."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        check_schema(schema, options)
        self.options = options

    @property
    def context(self) -> WriteContext:
        return self.options.context()

    def driver(self, writer: str) -> EpochDriver:
        return EpochDriver(self.context, writer)

    def stage(self, iterator: Iterator[pa.RecordBatch]) -> SinkMessage:
        task = TaskContext.get()
        seed = 0 if task is None else task.partitionId()
        query = None if task is None else task.getLocalProperty(_QUERY_ID)
        try:
            settle()
            return SinkMessage(write_rows(self.context, iterator, seed), query)
        except SkylogError as error:
            raise self.told(error) from None

    def told(self, error: SkylogError) -> SkylogError:
        """An error with its context."""
        if isinstance(error, ConfigError | WriteError):
            return error
        return WriteError(f"{error} (cluster at {self.options.client['bootstrap.servers']})")


class BatchWriter(_Sink, DataSourceArrowWriter):
    """``df.write.format("skylog")``: once per ``writeId``, or once per run without one."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        super().__init__(schema, options)
        self.write_id = options.write_id or secrets.token_hex(16)
        try:
            self.driver(self.writer).check([] if options.topic is None else [options.topic])
        except SkylogError as error:
            raise self.told(error) from None

    @property
    def writer(self) -> str:
        return f"batch-{self.write_id}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        single = self.options.write_id is None
        try:
            self.driver(self.writer).complete(_BATCH_EPOCH, _written(messages), single=single)
        except NotBegun as error:
            raise self.told(error) from None
        except SkylogError as error:
            raise WriteError(
                f"{self.told(error)}; some rows may have been written: to complete the write,"
                f" without duplicates, run the job again with the option"
                f" writeId={self.write_id}"
            ) from None

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if _has_failed_task(messages):
            self.driver(self.writer).give_up(_BATCH_EPOCH, _written(messages))


class StreamWriter(_Sink, DataSourceStreamArrowWriter):
    """``df.writeStream.format("skylog")``: once per epoch of the query in its checkpoint."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        query = _query(messages)
        if query is None:
            return
        try:
            self.driver(f"stream-{query}").complete(batchId, _written(messages))
        except SkylogError as error:
            raise self.told(error) from None

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        query = _query(messages)
        if query is not None and _has_failed_task(messages):
            self.driver(f"stream-{query}").give_up(batchId, _written(messages))


def _has_failed_task(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """Spark also aborts if the commit failed: then objects may be in a manifest and are kept.

    If a task did not finish, there was no commit.
    """
    return any(message is None for message in messages)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message.written for message in messages if isinstance(message, SinkMessage)]


def _query(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    """The query's id, which only tasks know; None if no task wrote anything."""
    found = {message.query for message in messages if isinstance(message, SinkMessage)}
    if not found:
        return None
    if len(found) > 1 or None in found:
        raise WriteError(f"tasks disagree on the streaming query they belong to: {found}")
    return found.pop()


def batch_writer(schema: StructType, options: WriteOptions, overwrite: bool) -> BatchWriter:
    """The writer of a batch; topics can only be appended to."""
    if overwrite:
        raise ConfigError('mode overwrite: rows of a topic cannot be replaced; use mode("append")')
    return BatchWriter(schema, options)
