"""Audit: every committed batch is intact in the bucket, in its WAL or in tiered segments, and the
WAL contains nothing else.

Executors locate the batches of their splits, read and check their bytes; the driver compares the
listing of the bucket with the files that the coordinators know. The cluster is in use meanwhile:
apparent errors are checked again, and count only if they persist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession

from skylog.bulk.extents import Extent, extents_of
from skylog.bulk.files import Pair, Verdict, judged
from skylog.bulk.process import this_process
from skylog.bulk.store import is_reachable
from skylog.client.admin.diskless import DisklessAdmin
from skylog.client.bulk import BatchLocation, PartitionRange, Regions, Split
from skylog.client.cluster import Cluster
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ConfigError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import NotFound, ObjectError, ObjectStore
from skylog.spark.jobs.audit_check import check_bytes, check_offsets, missing, pack
from skylog.spark.jobs.audit_found import Checked, Finding, Findings, Kind
from skylog.spark.jobs.audit_tiered import SegmentsTask, tiered_tasks
from skylog.spark.jobs.cluster import JobCluster, located
from skylog.spark.jobs.work import reduce_tasks
from skylog.wire.messages.describe_diskless_coordinators_response import (
    DescribeDisklessCoordinatorsResponse,
)

TASK_BYTES: Final = 64 * 1024 * 1024
_READS_AT_ONCE: Final = 8
_PREFIXES: Final = ("wal/", "staging/")
# Files this young may have been committed after their partitions were checked.
_RECENT_MS: Final = 10 * 60 * 1000
_NEIGHBOURS: Final = 20


@dataclass(frozen=True, slots=True)
class AuditJob:
    """Without ``topics``: all diskless ones."""

    cluster: JobCluster
    topics: tuple[str, ...] = ()


@dataclass(slots=True)
class Audit:
    """``objects``: bytes and number in the bucket, by state."""

    storage_url: str
    checked: Checked
    objects: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def findings(self) -> Findings:
        return self.checked.findings


@dataclass(frozen=True, slots=True)
class _Task:
    cluster: JobCluster
    storage_url: str
    splits: tuple[Split, ...]


def run(spark: SparkSession, job: AuditJob) -> Audit:
    started_ms = SystemClock().now_ms()
    topics = job.cluster.topics(job.topics or None)
    ranges = [
        PartitionRange(topic.name, index) for topic in topics for index in sorted(topic.partitions)
    ]
    plan = job.cluster.plan(ranges, TASK_BYTES, Regions.WAL)
    for partition in plan.partitions:
        if job.topics and not partition.diskless:
            raise ConfigError(f"topic {partition.topic} is not diskless: there is nothing to audit")
    # Even without diskless topics the bucket may contain objects.
    about = job.cluster.run(_describe(job.cluster))
    url = plan.storage_url or about.storage_url
    if not is_reachable(url):
        raise ConfigError(f"the topics' storage {url} can only be read by their broker")
    splits = [split for one in plan.partitions if one.diskless for split in one.splits]
    in_wal = [_Task(job.cluster, url, part) for part in pack(splits, TASK_BYTES)]
    tiered, holes = job.cluster.run(
        tiered_tasks(job.cluster, url, topics, plan.partitions, TASK_BYTES)
    )
    tasks: list[_Task | SegmentsTask] = [*in_wal, *tiered]
    checked = reduce_tasks(spark, "audit", tasks, _check, Checked.merge) or Checked()
    audit = Audit(url, checked)
    audit.findings.add(holes)
    # A file's other batches may belong to topics that were not requested.
    job.cluster.run(_compare(job.cluster, audit, about, started_ms, whole=not job.topics))
    return audit


def _check(task: _Task | SegmentsTask) -> Checked:
    """On an executor."""
    if isinstance(task, SegmentsTask):
        return task.check()

    async def check() -> Checked:
        connections = await task.cluster.connections()
        storage = tuple(sorted(task.cluster.storage.items()))
        store = connections.store(task.storage_url, storage)
        checked = Checked()
        for split in task.splits:
            await _check_split(connections.cluster, store, split, checked)
        return checked

    return this_process().run(check())


async def _check_split(
    cluster: Cluster, store: ObjectStore, split: Split, checked: Checked
) -> None:
    async for position, page in located(cluster, split):
        begin = max(position, page.log_start_offset)
        batches = [one for one in page.batches if one.last_offset >= begin]
        checked.findings.add(check_offsets(split, begin, batches, page.next_offset))
        checked.count(split, batches)
        for finding in await _read_and_check(store, split, batches):
            if await _still_there(cluster, split, finding):
                checked.findings.add([finding])


async def _read_and_check(
    store: ObjectStore, split: Split, batches: Sequence[BatchLocation]
) -> list[Finding]:
    slots = asyncio.Semaphore(_READS_AT_ONCE)

    async def check(extent: Extent) -> list[Finding]:
        held = [batches[place] for place in extent.places]
        async with slots:
            try:
                data = memoryview(
                    await store.get(ObjectKey.parse(extent.key), extent.start, extent.end)
                )
            except NotFound:
                return [missing(split, one, "there is no such object") for one in held]
            except ObjectError as error:
                if extent.end - extent.start > max(one.byte_size for one in held):
                    return [f for one in held for f in await alone(one)]
                return [missing(split, one, str(error)) for one in held]
        return [
            finding for one in held for finding in check_bytes(split, one, _cut(data, extent, one))
        ]

    async def alone(batch: BatchLocation) -> list[Finding]:
        """If an object is too short, only the batches that it lacks are reported."""
        (extent,) = extents_of([batch])
        try:
            data = await store.get(ObjectKey.parse(extent.key), extent.start, extent.end)
        except ObjectError as error:
            return [missing(split, batch, str(error))]
        return check_bytes(split, batch, data)

    found = await asyncio.gather(*(check(extent) for extent in extents_of(batches)))
    return [finding for part in found for finding in part]


def _cut(data: memoryview, extent: Extent, batch: BatchLocation) -> memoryview:
    begin = batch.byte_offset - extent.start
    return data[begin : begin + batch.byte_size]


async def _still_there(cluster: Cluster, split: Split, finding: Finding) -> bool:
    """Whether the coordinator still refers readers to the damaged place."""
    one = replace(split, start_offset=finding.offset, end_offset=finding.offset + 1)
    async for _, page in located(cluster, one):
        if any(batch.object_key == finding.object_key for batch in page.batches):
            return True
    return False


async def _describe(job_cluster: JobCluster) -> DescribeDisklessCoordinatorsResponse:
    return await DisklessAdmin(await job_cluster.cluster()).describe_any()


async def _compare(
    job_cluster: JobCluster,
    audit: Audit,
    about: DescribeDisklessCoordinatorsResponse,
    started_ms: int,
    *,
    whole: bool,
) -> None:
    connections = await job_cluster.connections()
    storage = tuple(sorted(job_cluster.storage.items()))
    store = connections.store(audit.storage_url, storage)
    admin = DisklessAdmin(connections.cluster)
    for prefix in _PREFIXES:
        async for pair, verdict in judged(store, connections.cluster, prefix, about):
            size = pair.object.size if pair.object is not None else 0
            count, total = audit.objects.get(verdict.value, (0, 0))
            audit.objects[verdict.value] = (count + 1, total + size)
            finding = _finding(pair, verdict)
            if finding is not None:
                audit.findings.add([finding])
                continue
            unreferenced = verdict is Verdict.LIVE and pair.key not in audit.checked.objects
            if not (whole and unreferenced and _is_older(pair.key, started_ms - _RECENT_MS)):
                continue
            if await _is_live(admin, pair.key):
                detail = "has live batches by its coordinator, but none was found"
                audit.findings.add([Finding(Kind.UNREFERENCED, detail, object_key=pair.key)])


def _finding(pair: Pair, verdict: Verdict) -> Finding | None:
    """What is wrong with an object or a file by itself."""
    size = pair.object.size if pair.object is not None else 0
    if verdict is Verdict.MISSING:
        return Finding(Kind.DANGLING, "live batches without bytes", object_key=pair.key)
    if verdict is Verdict.ORPHAN:
        detail = f"{size:,} bytes, deleted by the next scan"
        return Finding(Kind.ORPHAN, detail, object_key=pair.key)
    if pair.size_differs and pair.file is not None:
        detail = f"{size:,} bytes, {pair.file.size:,} were committed"
        return Finding(Kind.SIZE, detail, object_key=pair.key)
    return None


def _is_older(key: str, time_ms: int) -> bool:
    created_ms = ObjectKey.parse(key).created_ms
    return created_ms is not None and created_ms < time_ms


async def _is_live(admin: DisklessAdmin, key: str) -> bool:
    """Checked now, after its batches were searched for."""
    async for file in admin.files(key[:-1], page=_NEIGHBOURS):
        if file.object_key == key:
            return file.live_batches > 0
    return False
