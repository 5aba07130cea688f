"""The tiered part of an audit: the objects of every segment are there and whole, every batch is
sound, and the segments have all offsets that are no longer in the WAL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skylog.bulk.process import this_process
from skylog.bulk.store import is_reachable
from skylog.bulk.tiered import layout_of
from skylog.client.bulk import PartitionPlan, PartitionRange, Region, Regions, Split, locate_batches
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo
from skylog.kernel.errors import ConfigError, KafkaError
from skylog.spark.jobs.audit_found import Checked, Finding, Kind
from skylog.spark.jobs.cluster import RECORDS_GONE, JobCluster
from skylog.spark.jobs.tiers import records_before, segments_of, tiered_partitions, wal_start
from skylog.tiered.segments import RemoteSegment
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.tiered.verify import VerifyReport, gaps, verify_partition


class Stores(NamedTuple):
    """The addresses of both, as brokers tell them, and the key of any segment's log."""

    wal_url: str
    tiered_url: str
    key: str


@dataclass(frozen=True, slots=True)
class SegmentsTask:
    """Some segments of a partition."""

    cluster: JobCluster
    stores: Stores
    topic: TopicInfo
    index: int
    segments: tuple[RemoteSegment, ...]
    wal_start: int

    def check(self) -> Checked:
        """On an executor."""
        return this_process().run(self._check())

    async def _check(self) -> Checked:
        process, connections = this_process(), await self.cluster.connections()
        options = tuple(sorted(self.cluster.storage.items()))
        reads = connections.tiered_reads(self.stores.wal_url, options, process.executor)
        storage = reads.storage(self.stores.tiered_url, layout_of(self.stores.key))
        checked = Checked()
        for segment in self.segments:
            report = await _verified(storage, segment)
            if report.problems and await self._is_there(connections.cluster, segment):
                report = await _verified(storage, segment)
                checked.findings.add(_findings(report, storage.layout.log_key(segment).text))
            records = records_before(self.wal_start, segment)
            checked.count_segment(self.topic.name, self.index, records, segment.size)
        return checked

    async def _is_there(self, cluster: Cluster, segment: RemoteSegment) -> bool:
        """Whether readers are still referred to it: segments expire, too."""
        found = await segments_of(cluster, self.topic, self.index)
        return any(one.id == segment.id for one in found)


async def _verified(storage: ObjectRemoteStorage, segment: RemoteSegment) -> VerifyReport:
    """Of this segment alone: gaps between segments are looked for elsewhere."""
    start = segment.start_offset
    return await verify_partition(storage, [segment], start=start, end=start)


def _findings(report: VerifyReport, key: str) -> Iterator[Finding]:
    for segment, text in report.problems:
        if segment is not None:
            index = segment.partition.partition_index
            yield Finding(Kind.SEGMENT, text, segment.topic, index, segment.start_offset, key)


async def tiered_tasks(
    job_cluster: JobCluster,
    storage_url: str,
    topics: Iterable[TopicInfo],
    plans: Sequence[PartitionPlan],
    task_bytes: int,
) -> tuple[list[SegmentsTask], list[Finding]]:
    """What is to be checked, and offsets that no tier has. ``plans`` are those of the WAL."""
    cluster = await job_cluster.cluster()
    tasks: list[SegmentsTask] = []
    findings: list[Finding] = []
    where: tuple[str, str] | None = None
    async for topic, first, found in tiered_partitions(cluster, topics, plans):
        plan, segments = first, found
        if any(_holes(plan, segments)):
            # Perhaps they moved between the two questions.
            plan, segments = await _again(job_cluster, cluster, topic, plan)
            findings += _holes(plan, segments)
        kept = [one for one in segments if one.end_offset >= plan.log_start_offset]
        if kept and where is None:
            where = await _where(cluster, plan, kept[-1])
        if where is None:
            continue  # nothing is tiered, or all of it was deleted a moment ago
        stores = Stores(storage_url, *where)
        tasks += [
            SegmentsTask(job_cluster, stores, topic, plan.partition, part, wal_start(plan))
            for part in _packed(kept, task_bytes)
        ]
    return tasks, findings


def _holes(plan: PartitionPlan, segments: Sequence[RemoteSegment]) -> Iterator[Finding]:
    for first, behind in gaps(segments, plan.log_start_offset, wal_start(plan)):
        text = f"offsets {first} to {behind - 1} are neither in the WAL nor in a tiered segment"
        yield Finding(Kind.GAP, text, plan.topic, plan.partition, first)


async def _again(
    job_cluster: JobCluster, cluster: Cluster, topic: TopicInfo, plan: PartitionPlan
) -> tuple[PartitionPlan, list[RemoteSegment]]:
    """In this order: what is pruned in between is in a segment before."""
    asked = [PartitionRange(plan.topic, plan.partition)]
    (planned,) = (await job_cluster.planned(asked, 1 << 40, Regions.WAL)).partitions
    return planned, await segments_of(cluster, topic, plan.partition)


async def _where(
    cluster: Cluster, plan: PartitionPlan, segment: RemoteSegment
) -> tuple[str, str] | None:
    """The store of segments, and the key of one: brokers tell bulk readers."""
    start = max(segment.start_offset, plan.log_start_offset)
    end = segment.end_offset + 1
    split = Split(plan.topic, plan.topic_id, plan.partition, start, end, 0, diskless=True)
    try:
        found = await locate_batches(cluster, split)
    except KafkaError as error:
        if error.code in RECORDS_GONE:
            return None
        raise
    for one in found.batches:
        if one.region is Region.TIERED and found.tiered_url and is_reachable(found.tiered_url):
            return found.tiered_url, one.object_key
    raise ConfigError(f"the tiered segments of {plan.topic} can only be read by their brokers")


def _packed(
    segments: Sequence[RemoteSegment], task_bytes: int
) -> Iterator[tuple[RemoteSegment, ...]]:
    held: list[RemoteSegment] = []
    for segment in segments:
        if held and sum(one.size for one in held) + segment.size > task_bytes:
            yield tuple(held)
            held = []
        held.append(segment)
    if held:
        yield tuple(held)
