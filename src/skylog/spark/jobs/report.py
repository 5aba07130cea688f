"""Report: the size and cost of topics, by topic and hour.

No records are read: executors ask where batches are stored, Spark adds up, and the sizes of the
files give each topic's share of an upload. Tiered segments are counted as the brokers know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from skylog.bulk.process import this_process
from skylog.client.admin.diskless import DisklessAdmin
from skylog.client.bulk import BatchLocation, PartitionRange, Plan, Regions, Split
from skylog.client.metadata import TopicInfo
from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.objects.keys import ObjectKey
from skylog.spark.jobs.audit_check import pack
from skylog.spark.jobs.cluster import JobCluster, located
from skylog.spark.jobs.tiers import records_before, tiered_partitions, wal_start
from skylog.spark.jobs.work import with_progress
from skylog.tiered.segments import RemoteSegment

TASK_BYTES: Final = 256 * 1024 * 1024
HOUR_MS: Final = 3_600_000
# The log, its indexes and the manifest.
_OBJECTS_PER_SEGMENT: Final = 3
_BATCHES: Final = "topic string, hour long, key string, batches long, records long, bytes long"
_FILES: Final = "key string, size long, hour long"


@dataclass(frozen=True, slots=True)
class ReportJob:
    """``hours``: of how many hours before the newest record; 0 = all."""

    cluster: JobCluster
    topics: tuple[str, ...] = ()
    hours: int = 168


@dataclass(frozen=True, slots=True)
class TopicHour:
    """``uploads``: the topic's share of the objects that contain its batches. ``tiered_bytes``:
    what of its bytes is in tiered segments; how many batches those have is not known."""

    topic: str
    hour_ms: int
    batches: int
    records: int
    bytes: int
    objects: int
    uploads: float
    tiered_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """``objects``: number and bytes of the files that were created in each hour."""

    storage_url: str
    rows: list[TopicHour] = field(default_factory=list)
    objects: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Task:
    cluster: JobCluster
    splits: tuple[Split, ...]


def run(spark: SparkSession, job: ReportJob) -> Report:
    topics = job.cluster.topics(job.topics or None)
    ranges = [
        PartitionRange(topic.name, index) for topic in topics for index in sorted(topic.partitions)
    ]
    plan = job.cluster.plan(ranges, TASK_BYTES, Regions.WAL)
    splits = [split for one in plan.partitions if one.diskless for split in one.splits]
    tasks = [_Task(job.cluster, part) for part in pack(splits, TASK_BYTES)]
    files = job.cluster.run(_files(job.cluster))
    created: dict[int, tuple[int, int]] = {}
    for _, size, hour in files:
        count, total = created.get(hour, (0, 0))
        created[hour] = (count + 1, total + size)
    tiered = job.cluster.run(_tiered(job.cluster, topics, plan))
    for segment, _ in tiered:
        hour = max(segment.event_timestamp_ms, 0) // HOUR_MS
        count, total = created.get(hour, (0, 0))
        created[hour] = (count + _OBJECTS_PER_SEGMENT, total + segment.size)
    found: list[TopicHour] = []
    if tasks:
        action = _summed(spark, tasks, files).collect
        found = [_hour(row) for row in with_progress(spark, "report", len(tasks), action)]
    rows = with_segments(found, tiered)
    latest = max((row.hour_ms for row in rows), default=0)
    if job.hours > 0:
        rows = [row for row in rows if row.hour_ms > latest - job.hours * HOUR_MS]
    return Report(plan.storage_url or "", rows, created)


def _hour(row: Any) -> TopicHour:
    return TopicHour(
        row["topic"],
        row["hour"] * HOUR_MS,
        row["batches"],
        row["records"],
        row["bytes"],
        row["objects"],
        row["uploads"],
    )


def with_segments(
    rows: Iterable[TopicHour], segments: Iterable[tuple[RemoteSegment, int]]
) -> list[TopicHour]:
    """With tiered segments in the hour of their newest record, each with the offset where the WAL
    of its partition begins."""
    found = {(row.hour_ms, row.topic): row for row in rows}
    for segment, behind in segments:
        hour_ms = max(segment.max_timestamp_ms, 0) // HOUR_MS * HOUR_MS
        place = hour_ms, segment.topic
        row = found.get(place) or TopicHour(segment.topic, hour_ms, 0, 0, 0, 0, 0.0)
        found[place] = replace(
            row,
            records=row.records + records_before(behind, segment),
            bytes=row.bytes + segment.size,
            objects=row.objects + _OBJECTS_PER_SEGMENT,
            uploads=row.uploads + _OBJECTS_PER_SEGMENT,
            tiered_bytes=row.tiered_bytes + segment.size,
        )
    return [found[place] for place in sorted(found)]


async def _tiered(
    job_cluster: JobCluster, topics: Iterable[TopicInfo], plan: Plan
) -> list[tuple[RemoteSegment, int]]:
    """All finished segments, and where the WAL of their partition begins."""
    cluster = await job_cluster.cluster()
    return [
        (segment, wal_start(one))
        async for _, one, segments in tiered_partitions(cluster, topics, plan.partitions)
        for segment in segments
    ]


def _summed(
    spark: SparkSession, tasks: list[_Task], files: list[tuple[str, int, int]]
) -> DataFrame:
    rows = spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(_counted)
    batches = spark.createDataFrame(rows, _BATCHES).groupBy("topic", "hour", "key")
    summed = batches.agg(
        f.sum("batches").alias("batches"),
        f.sum("records").alias("records"),
        f.sum("bytes").alias("bytes"),
    )
    known = spark.createDataFrame(files, _FILES).select("key", "size")
    return (
        summed.join(known, "key", "left")
        .groupBy("topic", "hour")
        .agg(
            f.sum("batches").alias("batches"),
            f.sum("records").alias("records"),
            f.sum("bytes").alias("bytes"),
            f.count("key").alias("objects"),
            f.sum(f.coalesce(f.col("bytes") / f.col("size"), f.lit(0.0))).alias("uploads"),
        )
    )


async def _files(job_cluster: JobCluster) -> list[tuple[str, int, int]]:
    """Key, size and hour of every file that coordinators know."""
    admin = DisklessAdmin(await job_cluster.cluster())
    found = []
    for prefix in ("staging/", "wal/"):
        async for file in admin.files(prefix):
            created = ObjectKey.parse(file.object_key).created_ms or 0
            found.append((file.object_key, file.size, created // HOUR_MS))
    return found


def _counted(task: _Task) -> Iterator[tuple[str, int, str, int, int, int]]:
    """On an executor."""

    async def count() -> dict[tuple[str, int, str], list[int]]:
        cluster = await task.cluster.cluster()
        sums: dict[tuple[str, int, str], list[int]] = {}
        for split in task.splits:
            async for _, page in located(cluster, split):
                for batch in page.batches:
                    _add(sums, split, batch)
        return sums

    for (topic, hour, key), values in this_process().run(count()).items():
        yield (topic, hour, key, values[0], values[1], values[2])


def _add(sums: dict[tuple[str, int, str], list[int]], split: Split, batch: BatchLocation) -> None:
    stamped = batch.timestamp_type == LOG_APPEND_TIME
    time_ms = batch.log_append_timestamp if stamped else batch.max_timestamp
    values = sums.setdefault((split.topic, max(time_ms, 0) // HOUR_MS, batch.object_key), [0, 0, 0])
    values[0] += 1
    values[1] += batch.last_offset - batch.base_offset + 1
    values[2] += batch.byte_size


def as_rows(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "topic": row.topic,
            "hour_ms": row.hour_ms,
            "batches": row.batches,
            "records": row.records,
            "bytes": row.bytes,
            "objects": row.objects,
            "uploads": round(row.uploads, 3),
            "tiered_bytes": row.tiered_bytes,
        }
        for row in report.rows
    ]
