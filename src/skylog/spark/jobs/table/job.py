"""The job ``table``: reads chunk by chunk, decodes, writes files, commits them with offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from skylog.kernel.errors import ConfigError
from skylog.kernel.progress import Progress
from skylog.spark.jobs.chunks import Chunk, Offsets, next_chunk, positions
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import SPARK_ERRORS, told
from skylog.spark.jobs.reading import all_cores, chunk_frame, logs_of
from skylog.spark.jobs.table.avro import AvroSchema
from skylog.spark.jobs.table.columns import Columns
from skylog.spark.jobs.table.formats import READ, AvroFormat, Format, JsonFormat, RawFormat
from skylog.spark.jobs.table.iceberg import CatalogOptions, IcebergTarget, check
from skylog.spark.jobs.table.parquet import ParquetTarget
from skylog.spark.jobs.table.registry import Registry
from skylog.spark.jobs.table.state import State
from skylog.spark.jobs.table.target import Before, Files, Target
from skylog.spark.jobs.table.writer import (
    BAD_ROWS,
    GOOD_ROWS,
    REPORT,
    UNKNOWN_SCHEMA,
    ChunkWriter,
    Report,
)
from skylog.spark.ranges import Log

CHUNK_RECORDS: Final = 1_000_000
NAMESPACE: Final = "default"
ICEBERG: Final = "iceberg"
PARQUET: Final = "parquet"


@dataclass(frozen=True, slots=True)
class TableJob:
    """``schema``: text, or the name of a file with it; ``schemas``: Avro schemas by id."""

    cluster: JobCluster
    topic: str
    to: str | None
    form: str = ICEBERG
    table: str | None = None
    values: str = "raw"
    schema: str | None = None
    schemas: str | None = None
    catalog: CatalogOptions = field(default_factory=CatalogOptions)
    chunk_records: int = CHUNK_RECORDS
    from_latest: bool = False
    accept_new_topic: bool = False


@dataclass(slots=True)
class Outcome:
    """``skipped``: offsets that were deleted before they were read, by partition."""

    table: str
    good_rows: int = 0
    bad_rows: int = 0
    chunks: int = 0
    files: int = 0
    bytes: int = 0
    skipped: Mapping[int, int] = field(default_factory=dict)
    next_offsets: Offsets = field(default_factory=dict)


def run(spark: SparkSession, job: TableJob, before: Before = lambda step: None) -> Outcome:
    """Extend the table to the current end of the topic."""
    values = _format(spark, job)
    name = table_name(job)
    target = _target(job, name, before)
    (topic,) = job.cluster.topics([job.topic])
    logs = logs_of(job.cluster, topic)
    columns, _ = Columns().merge(values.known())
    if job.form == ICEBERG:
        check(columns)
    begin = {index: log.latest if job.from_latest else log.earliest for index, log in logs.items()}
    initial = State(topic.name, str(topic.topic_id), values.name, columns, 0, begin)
    outcome = Outcome(name)
    with target.opened(initial) as found:
        state = _checked(job, found, initial)
        columns, conflicts = state.columns.merge(values.known())
        if conflicts:
            raise ConfigError(f"--schema does not fit table {name}: {'; '.join(conflicts)}")
        _Run(spark, job, values, target, before).all(state, columns, logs, outcome)
    return outcome


def table_name(job: TableJob) -> str:
    """By default the topic's name, whose dots would be namespaces."""
    name = job.table or job.topic.replace(".", "_")
    if job.form == PARQUET:
        if "/" in name or name.startswith(("_", ".")):
            raise ConfigError(f"--table {name}: the name must begin with a letter and have no /")
        return name
    return name if "." in name else f"{NAMESPACE}.{name}"


def _target(job: TableJob, name: str, before: Before) -> Target:
    if job.form == ICEBERG:
        return IcebergTarget(job.catalog.open(job.to), name, before)
    if job.to is None:
        raise ConfigError("--to must say where the Parquet files go")
    return ParquetTarget(job.to, name, before)


def _format(spark: SparkSession, job: TableJob) -> Format:
    schema = _schema_text(job.schema)
    if job.schemas is not None and job.values != "avro":
        raise ConfigError(f"--schemas is for --values avro, not {job.values}")
    if job.values == "json":
        return JsonFormat(spark, schema)
    if job.values == "avro":
        plain = None if schema is None else AvroSchema.parse(schema, "--schema")
        return AvroFormat(plain, None if job.schemas is None else Registry(job.schemas))
    if schema is not None:
        raise ConfigError("--schema is for --values json and avro, not raw")
    return RawFormat()


def _schema_text(given: str | None) -> str | None:
    """A schema, or the contents of the file of that name."""
    if given is None or given.lstrip().startswith(("{", "[")) or " " in given.strip():
        return given
    try:
        return Path(given).read_text()
    except OSError as error:
        raise ConfigError(f"--schema {given}: {error.strerror or error}") from None


def _checked(job: TableJob, state: State, initial: State) -> State:
    """The state; ConfigError unless it is of this topic and this format."""
    if (state.topic, state.format) != (initial.topic, initial.format):
        raise ConfigError(
            f"the table holds topic {state.topic} as {state.format}, not topic {initial.topic}"
            f" as {initial.format}; name another table"
        )
    if state.topic_id == initial.topic_id:
        return state
    if not job.accept_new_topic:
        raise ConfigError(
            f"topic {state.topic} was deleted and created again after the table was written; to"
            " add the records of the new one from its beginning, use --accept-new-topic"
        )
    return replace(state, topic_id=initial.topic_id, offsets=initial.offsets)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the job."""

    spark: SparkSession
    job: TableJob
    values: Format
    target: Target
    before: Before

    def all(
        self, state: State, columns: Columns, logs: Mapping[int, Log], outcome: Outcome
    ) -> None:
        """Chunk by chunk to the end."""
        state = self._evolved(state, columns)
        start, outcome.skipped = positions(state.offsets, logs)
        ends = {index: log.latest for index, log in logs.items()}
        total = sum(ends[index] - start[index] for index in ends)
        with Progress(f"{self.job.topic} to {outcome.table}", total) as progress:
            done = 0
            while chunk := self._next(start, ends):
                state = self._chunk(chunk, state, outcome)
                start |= chunk.end
                done += chunk.size
                progress.advance(done)
        outcome.next_offsets = dict(start)

    def _next(self, start: Offsets, ends: Offsets) -> Chunk | None:
        until = self.target.bad_until()
        if until is None:
            return next_chunk(start, ends, self.job.chunk_records)
        end = {index: max(offset, start[index]) for index, offset in until.items()}
        return Chunk({index: start[index] for index in end}, end)

    def _chunk(self, chunk: Chunk, state: State, outcome: Outcome) -> State:
        self.before("write")
        options = all_cores(self.spark)
        frame = chunk_frame(self.spark, self.job.cluster, self.job.topic, chunk, READ, options)
        try:
            state = self._evolved(state, state.columns.merge(self.values.look(frame))[0])
            reports = self._write(frame, state)
            while unknown := [int(one.name) for one in reports if one.kind == UNKNOWN_SCHEMA]:
                state = self._evolved(state, self.values.learn(unknown, state.columns))
                reports = self._write(frame, state)
        except SPARK_ERRORS as error:
            raise told(error) from None
        after = state.after(chunk.end)
        self.target.commit(state, after, Files(*_names(reports)))
        _count(outcome, reports)
        return after

    def _write(self, frame: DataFrame, state: State) -> list[Report]:
        place = self.target.place(state.chunk)
        writer = ChunkWriter(
            self.job.topic,
            state.chunk,
            state.columns,
            self.values.decoder(state.columns),
            place.good,
            place.bad,
        )
        prepared = self.values.prepare(frame, state.columns)
        return [Report(*row) for row in prepared.mapInArrow(writer, REPORT).collect()]

    def _evolved(self, state: State, columns: Columns) -> State:
        return state if columns == state.columns else self.target.evolve(state, columns)


def _names(reports: Sequence[Report]) -> tuple[list[str], list[str]]:
    good = sorted(one.name for one in reports if one.kind == GOOD_ROWS)
    return good, sorted(one.name for one in reports if one.kind == BAD_ROWS)


def _count(outcome: Outcome, reports: Sequence[Report]) -> None:
    outcome.chunks += 1
    outcome.files += len(reports)
    outcome.bytes += sum(one.bytes for one in reports)
    outcome.good_rows += sum(one.rows for one in reports if one.kind == GOOD_ROWS)
    outcome.bad_rows += sum(one.rows for one in reports if one.kind == BAD_ROWS)
