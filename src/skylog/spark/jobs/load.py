"""Load files into a topic: Parquet, JSON lines, CSV or lines of text.

Each file is an epoch of the run's writer. The files are numbered when a run first sees them, in
name order; a continued run loads the remaining and the new ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import MapType, StringType

from skylog.kernel.errors import ConfigError
from skylog.kernel.progress import Progress
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import SPARK_ERRORS, JobError, told
from skylog.spark.jobs.files import FoundFile, find_files
from skylog.spark.jobs.runs import RunFile
from skylog.spark.jobs.writing import BeforeStep, TopicWriter

JOB: Final = "load"
FORMATS: Final = ("parquet", "json", "csv", "text")
_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".txt": "text",
}
_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    # An invalid line fails the load; it is not skipped.
    "json": {"mode": "FAILFAST"},
    "csv": {"mode": "FAILFAST", "header": "true", "enforceSchema": "false"},
}
_PATTERN: Final = re.compile(r"[][{}*?\\]")
_HEADERS: Final = "array<struct<key:string,value:binary>>"


@dataclass(frozen=True, slots=True)
class Mapped:
    """SQL expressions over the columns of the files, usually just their names."""

    value: str | None = None
    value_columns: Sequence[str] = ()
    key: str | None = None
    headers: str | None = None
    partition: str | None = None
    timestamp: str | None = None

    def describe(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "value_columns": list(self.value_columns),
            "key": self.key,
            "headers": self.headers,
            "partition": self.partition,
            "timestamp": self.timestamp,
        }


@dataclass(frozen=True, slots=True)
class LoadJob:
    """``options`` are for Spark's reader of the format."""

    cluster: JobCluster
    topic: str
    paths: tuple[str, ...]
    run_id: str
    state: str
    format: str | None = None
    mapped: Mapped = field(default_factory=Mapped)
    options: Mapping[str, str] = field(default_factory=dict)
    compression: str = "none"


@dataclass(slots=True)
class Outcome:
    """The results of this run alone."""

    run_id: str
    rows: int = 0
    files: int = 0
    exactly_once: bool = True


def run(spark: SparkSession, job: LoadJob, before: BeforeStep = lambda step: None) -> Outcome:
    """Load the remaining files."""
    if job.mapped.value is not None and job.mapped.value_columns:
        raise ConfigError("--value and --value-columns exclude each other")
    file = RunFile.of(job.state, JOB, job.run_id)
    there = find_files(job.paths)
    kind = _format(job, there)
    writer = TopicWriter.of(job.cluster, job.topic, f"{JOB}-{job.run_id}", job.compression)
    with file.alone():
        plan = _plan(job, kind, file, there, writer)
        outcome = Outcome(job.run_id, exactly_once=writer.target.diskless)
        left = list(enumerate(plan["files"]))[plan["done"] :]
        with Progress(f"files to {job.topic}", len(left)) as bar:
            for number, (path, _) in left:
                frame = _frame(spark, job, kind, path)
                # Before anything is written, because numbers must not change.
                file.write(plan)
                outcome.rows += writer.write(frame, number, before)
                outcome.files += 1
                plan["done"] = number + 1
                file.write(plan)
                bar.advance(outcome.files)
    return outcome


def _format(job: LoadJob, files: Sequence[FoundFile]) -> str:
    if job.format is not None:
        if job.format not in FORMATS:
            raise ConfigError(f"--format is {job.format!r}; allowed are {', '.join(FORMATS)}")
        return job.format
    kinds = {_SUFFIXES.get(found.suffix) for found in files}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return kind
    raise ConfigError(f"the format of the files is not clear; use --format {' or '.join(FORMATS)}")


def _plan(
    job: LoadJob, kind: str, file: RunFile, there: Sequence[FoundFile], writer: TopicWriter
) -> dict[str, Any]:
    """The files of the run: those it began with, followed by new ones."""
    said = {
        "target": job.topic,
        "target_id": str(writer.target.topic_id),
        "format": kind,
        "options": dict(sorted(job.options.items())),
        "mapped": job.mapped.describe(),
    }
    plan = writer.resume(file, said) or {**said, "files": [], "done": 0}
    sizes = {found.path: found.size for found in there}
    for path, size in plan["files"]:
        if path in sizes and sizes[path] != size:
            raise ConfigError(
                f"{path} had {size} bytes when the run first saw it, and now has {sizes[path]}"
            )
    known = {path for path, _ in plan["files"]}
    plan["files"] += [[found.path, found.size] for found in there if found.path not in known]
    return plan


def _frame(spark: SparkSession, job: LoadJob, kind: str, path: str) -> DataFrame:
    options = {**_DEFAULTS.get(kind, {}), **job.options}
    try:
        frame = spark.read.format(kind).options(**options).load(_for_spark(path))
        return frame.select(*_columns(frame, job.mapped))
    except SPARK_ERRORS as error:
        raise JobError(f"{path}: {told(error)}") from None


def _for_spark(path: str) -> str:
    """Spark takes a path for a pattern, and has another scheme for S3."""
    escaped = _PATTERN.sub(r"\\\g<0>", path)
    return f"s3a{escaped[2:]}" if escaped.startswith("s3://") else escaped


def _columns(frame: DataFrame, mapped: Mapped) -> list[Column]:
    columns = [_value(frame, mapped).alias("value")]
    if mapped.key is not None:
        columns.append(_bytes(frame, mapped.key).alias("key"))
    if mapped.headers is not None:
        columns.append(_headers(frame, mapped.headers).alias("headers"))
    if mapped.partition is not None:
        columns.append(F.expr(mapped.partition).cast("int").alias("partition"))
    if mapped.timestamp is not None:
        columns.append(_timestamp(frame, mapped.timestamp).alias("timestamp"))
    return columns


def _value(frame: DataFrame, mapped: Mapped) -> Column:
    if mapped.value is not None:
        return _bytes(frame, mapped.value)
    if mapped.value_columns:
        return F.to_json(F.struct(*(F.expr(name) for name in mapped.value_columns)))
    if "value" in frame.columns:
        return _bytes(frame, "value")
    if not frame.columns:
        raise ConfigError("the files have no columns")
    return F.to_json(F.struct(*(frame[f"`{name}`"] for name in frame.columns)))


def _bytes(frame: DataFrame, text: str) -> Column:
    """Bytes and text unchanged, structures as JSON, everything else as text."""
    kind = _type(frame, text).simpleString()
    if kind in ("binary", "string"):
        return F.expr(text)
    if kind.startswith(("struct<", "array<", "map<")):
        return F.to_json(F.expr(text))
    return F.expr(text).cast("string")


def _type(frame: DataFrame, text: str) -> Any:
    return frame.select(F.expr(text).alias("x")).schema["x"].dataType


def _headers(frame: DataFrame, text: str) -> Column:
    """An array of key and value, or a map."""
    kind = _type(frame, text)
    if not isinstance(kind, MapType):
        return F.expr(text).cast(_HEADERS)
    if not isinstance(kind.keyType, StringType):
        raise ConfigError(f"--headers {text} is {kind.simpleString()}; its keys must be text")
    return F.map_entries(F.expr(text).cast("map<string,binary>")).cast(_HEADERS)


def _timestamp(frame: DataFrame, text: str) -> Column:
    """A timestamp, a text that represents one, or milliseconds."""
    kind = _type(frame, text).simpleString()
    whole = kind in ("bigint", "int")
    return F.timestamp_millis(F.expr(text)) if whole else F.expr(text).cast("timestamp")
