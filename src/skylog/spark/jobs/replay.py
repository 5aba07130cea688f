"""Copies records from a topic to a topic, of the same cluster or another.

The records are copied chunk by chunk, each an epoch of the run's writer. The chunks are fixed when
the run begins: a continued run has the same, and each is written exactly once (to a classic topic:
at least once).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from skylog.client.metadata import TopicInfo
from skylog.kernel.errors import ConfigError
from skylog.kernel.progress import Progress
from skylog.spark.jobs.chunks import Chunk, Offsets, decode_offsets, encode_offsets, next_chunk
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import SPARK_ERRORS, told
from skylog.spark.jobs.reading import COPIED, chunk_frame, logs_of
from skylog.spark.jobs.runs import RunFile
from skylog.spark.jobs.writing import BeforeStep, TopicWriter
from skylog.spark.options import SPLIT_BYTES_MAX
from skylog.spark.ranges import Log

CHUNK_RECORDS: Final = 1_000_000
JOB: Final = "replay"
AUTO: Final = "auto"
KEEP: Final = "keep"
KEY: Final = "key"
# Further columns that an expression may use.
_MORE: Final = ("topic", "offset", "timestampType")


@dataclass(frozen=True, slots=True)
class Selection:
    """The records to copy; times in milliseconds, ``until`` is inclusive."""

    start: Offsets | None = None
    end: Offsets | None = None
    since: int | None = None
    until: int | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """``partitions``: auto, keep (the same number) or key (by the hash of the key)."""

    source: JobCluster
    topic: str
    target: JobCluster
    to: str
    run_id: str
    state: str
    selection: Selection = field(default_factory=Selection)
    partitions: str = AUTO
    chunk_records: int = CHUNK_RECORDS
    compression: str = "none"


@dataclass(slots=True)
class Outcome:
    """The results of this run; ``skipped``: offsets that retention deleted before they were
    copied."""

    run_id: str
    rows: int = 0
    chunks: int = 0
    skipped: dict[int, int] = field(default_factory=dict)
    exactly_once: bool = True


def run(spark: SparkSession, job: ReplayJob, before: BeforeStep = lambda step: None) -> Outcome:
    """Copy the rest of the run."""
    file = RunFile.of(job.state, JOB, job.run_id)
    (topic,) = job.source.topics([job.topic])
    logs = logs_of(job.source, topic)
    writer = TopicWriter.of(job.target, job.to, f"{JOB}-{job.run_id}", job.compression)
    with file.alone():
        plan = _plan(spark, job, file, topic, logs, writer)
        outcome = Outcome(job.run_id, exactly_once=writer.target.diskless)
        start, ends = decode_offsets(plan["start"]), decode_offsets(plan["end"])
        with Progress(f"{job.topic} to {job.to}", sum(ends.values()) - sum(start.values())) as bar:
            number = done = 0
            while chunk := next_chunk(start, ends, plan["chunk_records"]):
                if number >= plan["done"]:
                    _tell_skipped(outcome, chunk, logs)
                    ordered = not outcome.exactly_once
                    frame = _frame(spark, job, chunk, keep=plan["keep"], ordered=ordered)
                    outcome.rows += writer.write(frame, number, before)
                    outcome.chunks += 1
                    plan["done"] = number + 1
                    file.write(plan)
                start |= chunk.end
                number += 1
                done += chunk.size
                bar.advance(done)
    return outcome


def _keeps(job: ReplayJob, source: int, target: int) -> bool:
    if job.partitions == KEEP and source > target:
        raise ConfigError(
            f"partitions cannot be kept: topic {job.topic} has {source}, topic {job.to} only"
            f" {target}"
        )
    return job.partitions == KEEP or (job.partitions == AUTO and source == target)


def _plan(
    spark: SparkSession,
    job: ReplayJob,
    file: RunFile,
    topic: TopicInfo,
    logs: Mapping[int, Log],
    writer: TopicWriter,
) -> dict[str, Any]:
    """What the run copies, fixed when it began."""
    chosen = job.selection
    said = {
        "source": job.topic,
        "source_id": str(topic.topic_id),
        "target": job.to,
        "target_id": str(writer.target.topic_id),
        "since": chosen.since,
        "until": chosen.until,
        "where": chosen.where,
        "partitions": job.partitions,
        "offsets": _digest(chosen),
    }
    found = writer.resume(file, said)
    if found is not None:
        return found
    start, end = _bounds(chosen, logs)
    plan = {
        **said,
        "start": encode_offsets(start),
        "end": encode_offsets(end),
        "chunk_records": job.chunk_records,
        "keep": _keeps(job, len(topic.partitions), writer.target.partitions),
        "done": 0,
    }
    # An invalid expression must not begin a run.
    _frame(spark, job, Chunk({0: 0}, {0: 0}), keep=True, ordered=False)
    file.write(plan)
    return plan


def _digest(chosen: Selection) -> str:
    given = [
        None if one is None else sorted(encode_offsets(one).items())
        for one in (chosen.start, chosen.end)
    ]
    return hashlib.sha256(repr(given).encode()).hexdigest()[:16]


def _bounds(chosen: Selection, logs: Mapping[int, Log]) -> tuple[dict[int, int], dict[int, int]]:
    """The requested offsets that exist; partitions that are not named are copied completely."""
    for name, given in (("--start-offsets", chosen.start), ("--end-offsets", chosen.end)):
        strange = sorted(set(given or ()) - logs.keys())
        if strange:
            raise ConfigError(f"{name}: there is no partition {strange[0]}")
    start, end = {}, {}
    for index, log in logs.items():
        first = (chosen.start or {}).get(index, log.earliest)
        last = (chosen.end or {}).get(index, log.latest)
        start[index] = min(max(first, log.earliest), log.latest)
        end[index] = max(min(last, log.latest), start[index])
    return start, end


def _tell_skipped(outcome: Outcome, chunk: Chunk, logs: Mapping[int, Log]) -> None:
    for index, begin in chunk.start.items():
        lost = min(logs[index].earliest, chunk.end[index]) - begin
        if lost > 0:
            outcome.skipped[index] = outcome.skipped.get(index, 0) + lost


def _frame(
    spark: SparkSession, job: ReplayJob, chunk: Chunk, *, keep: bool, ordered: bool
) -> DataFrame:
    """The rows of a chunk; ``ordered``: those of a partition in one task."""
    options = {}
    for name, value in (("min", job.selection.since), ("max", job.selection.until)):
        if value is not None:
            options[f"read.timestamp.{name}"] = str(value)
    if ordered:
        options["read.split.bytes"] = str(SPLIT_BYTES_MAX)
    frame = chunk_frame(spark, job.source, job.topic, chunk, (*COPIED, *_MORE), options)
    if job.selection.where is not None:
        try:
            frame = frame.where(job.selection.where)
        except SPARK_ERRORS as error:
            raise ConfigError(f"--where: {told(error)}") from None
    return frame.select(*COPIED) if keep else frame.select(*(n for n in COPIED if n != "partition"))
