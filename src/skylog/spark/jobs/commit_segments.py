"""Assembles diskless topics into remote segments that count: ``skylog spark segments --commit``.

For topics with ``diskless.tiering.assembler=external``. In rounds: ask the leaders where the next
segments begin, plan by WAL objects over all partitions (``segment_plan.py``), have the segments
granted (API 510), assemble them on the executors (``segment_task.py``), put indexes and manifests,
and report them (API 511). A leader that changes loses the segments of its partitions; they are
assembled again in the next round. What a job leaves behind is cleaned by the leaders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession

from skylog.bulk.process import pairs, this_process
from skylog.client.bulk import BatchLocation, PartitionRange, Regions, Split, plan_ranges
from skylog.client.bulk.reading import locate_batches
from skylog.client.bulk.segments import (
    FinishedRun,
    GrantedRun,
    GrantedSegment,
    Run,
    SegmentRange,
    SegmentStore,
    finish_segments,
    start_segments,
)
from skylog.client.metadata import TopicPartition
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid, system_random
from skylog.log.checkpoints import decode_snapshot
from skylog.log.producers import ProducerEntry
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import JobError
from skylog.spark.jobs.segment_indexes import Made, put_indexes
from skylog.spark.jobs.segment_plan import (
    PlannedSegment,
    Slice,
    in_order,
    only,
    round_ends,
    slices,
)
from skylog.spark.jobs.segment_task import SegmentTask, Stores, assemble
from skylog.spark.jobs.work import run_tasks
from skylog.tiered.segments import RemoteSegment, TopicIdPartition

SEGMENT_BYTES: Final = 128 * 1024 * 1024
# A round is bounded: by what the driver knows of it, and by what leaders grant.
ROUND_BATCHES_MAX: Final = 200_000
_SEGMENTS_PER_ROUND: Final = 16
_SPLITS_PER_SEGMENT: Final = 8
_AT_ONCE: Final = 16
# Rounds in a row in which leaders changed and nothing was finished.
_ROUNDS_LOST_MAX: Final = 3
# The leader is another one, or has forgotten: the next round asks again.
_LEADER_CHANGED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)


@dataclass(frozen=True, slots=True)
class CommitJob:
    """``tail``: also of partitions that have less than a segment. ``take_over``: end other jobs."""

    cluster: JobCluster
    topics: tuple[str, ...]
    segment_bytes: int = SEGMENT_BYTES
    tail: bool = False
    take_over: bool = False


@dataclass(slots=True)
class Committed:
    """``objects`` and ``gets``: WAL objects, and requests to read them."""

    segments: int = 0
    bytes: int = 0
    objects: int = 0
    gets: int = 0
    rounds: int = 0
    next_offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    # Bytes that do not fill a segment yet.
    waiting_bytes: int = 0


@dataclass(slots=True)
class _Partition:
    """Where a partition stands. ``end_offset`` is where the job ends."""

    key: TopicPartition
    topic_id: Uuid
    end_offset: int = -1
    leader_epoch: int = -1
    next_offset: int = -1
    producers: Sequence[ProducerEntry] = ()


def run(
    spark: SparkSession, job: CommitJob, told: Callable[[str], None] = lambda _: None
) -> Committed:
    """Assemble what there is when it begins; ``told`` gets a line about each round."""
    work = _Job(spark, job, told)
    try:
        return work.run()
    finally:
        work.give_up()


class _Job:
    def __init__(self, spark: SparkSession, job: CommitJob, told: Callable[[str], None]) -> None:
        self._spark = spark
        self._job = job
        self._told = told
        self._id = random_uuid(system_random())
        self._cores = max(1, spark.sparkContext.defaultParallelism)
        self._done = Committed()
        self._store = SegmentStore(None, 0, -1)
        self._wal_url: str | None = None
        # Granted and not finished.
        self._open: list[FinishedRun] = []
        self._objects: set[str] = set()
        topics = job.cluster.topics(job.topics)
        self._partitions = [
            _Partition(TopicPartition(topic.name, index), topic.topic_id)
            for topic in topics
            for index in topic.partitions
        ]

    def run(self) -> Committed:
        self._ask(take_over=self._job.take_over)
        for partition in self._partitions:
            self._done.next_offsets.setdefault(partition.key.topic, {})
        lost = 0
        while work := self._plan():
            before = self._done.segments
            self._round(work)
            lost = 0 if self._done.segments > before else lost + 1
            if lost == _ROUNDS_LOST_MAX:
                raise JobError("the leaders of the partitions change too often")
            self._ask()
        for partition in self._partitions:
            topic = self._done.next_offsets[partition.key.topic]
            topic[partition.key.partition] = partition.next_offset
        self._done.objects = len(self._objects)
        return self._done

    # -- planning ----------------------------------------------------------------------------------

    def _ask(self, *, take_over: bool = False) -> None:
        """Where the next segments begin."""
        runs = [Run(one.key, one.topic_id) for one in self._partitions]
        found = self._start(runs, take_over=take_over)
        for partition, answer in zip(self._partitions, found, strict=True):
            _check(answer)
            partition.leader_epoch = answer.leader_epoch
            partition.next_offset = answer.next_offset
            if partition.end_offset < 0:
                partition.end_offset = answer.high_watermark
            snapshot = answer.producer_snapshot
            partition.producers = () if snapshot is None else decode_snapshot(snapshot)

    def _start(self, runs: Sequence[Run], *, take_over: bool = False) -> list[GrantedRun]:
        cluster = self._job.cluster

        async def ask() -> list[GrantedRun]:
            return await start_segments(
                await cluster.cluster(), self._id, runs, take_over=take_over
            )

        found = cluster.run(ask())
        if found:
            self._store = found[0].store
        return found

    def _plan(self) -> list[Slice]:
        """The slices of the next round; none at the end."""
        wanted = [one for one in self._partitions if one.next_offset < one.end_offset]
        splits = self._splits(wanted)
        self._done.waiting_bytes = 0
        full: dict[TopicPartition, list[Split]] = {}
        for key, found in splits.items():
            size = sum(split.bytes for split in found)
            if size and (self._job.tail or size >= self._job.segment_bytes):
                full[key] = found
            else:
                self._done.waiting_bytes += size
        if not full:
            return []
        ends = round_ends(full, _SEGMENTS_PER_ROUND * self._job.segment_bytes)
        backlog = self._job.cluster.run(self._locate(wanted, ends))
        reads = in_order(backlog)
        self._objects |= {read.object_key for read in reads}
        return slices(reads, self._job.segment_bytes, self._cores)

    def _splits(self, wanted: Sequence[_Partition]) -> dict[TopicPartition, list[Split]]:
        cluster = self._job.cluster
        ranges = [
            PartitionRange(one.key.topic, one.key.partition, one.next_offset, one.end_offset)
            for one in wanted
        ]
        size = max(self._job.segment_bytes // _SPLITS_PER_SEGMENT, 1)

        async def ask() -> dict[TopicPartition, list[Split]]:
            plan = await plan_ranges(await cluster.cluster(), ranges, size, Regions.WAL)
            self._wal_url = plan.storage_url
            for found in plan.partitions:
                if found.error:
                    place = f"{found.topic}-{found.partition}"
                    raise KafkaError(found.error, found.message or place)
            return {
                TopicPartition(found.topic, found.partition): list(found.splits)
                for found in plan.partitions
            }

        return cluster.run(ask()) if ranges else {}

    async def _locate(
        self, partitions: Iterable[_Partition], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, list[BatchLocation]]:
        cluster, slots = await self._job.cluster.cluster(), asyncio.Semaphore(_AT_ONCE)
        share = max(ROUND_BATCHES_MAX // max(len(ends), 1), 1)

        async def locate(one: _Partition) -> list[BatchLocation]:
            found: list[BatchLocation] = []
            position, end = one.next_offset, ends[one.key]
            split = Split(one.key.topic, one.topic_id, one.key.partition, position, end, 0, True)
            while position < end and len(found) < share:
                async with slots:
                    page = await locate_batches(
                        cluster, split, start_offset=position, regions=Regions.WAL
                    )
                found += page.batches
                position = page.next_offset
            return found

        held = [one for one in partitions if one.key in ends]
        located = await asyncio.gather(*(locate(one) for one in held))
        return {one.key: found for one, found in zip(held, located, strict=True)}

    # -- a round -----------------------------------------------------------------------------------

    def _round(self, work: Sequence[Slice]) -> None:
        granted = self._grant(work)
        parts = [only(part, {one.key for one in granted}) for part in work]
        tasks = [
            SegmentTask(self._stores(), part, tuple(granted[one] for one in part.segments))
            for part in parts
            if part.segments
        ]
        label = ", ".join(self._job.topics)
        results = run_tasks(self._spark, label, tasks, assemble)
        made: dict[TopicPartition, list[Made]] = {}
        for task, result in zip(tasks, results, strict=True):
            self._done.gets += result.gets
            for remote, segment in zip(task.segments, result.segments, strict=True):
                made.setdefault(
                    TopicPartition(remote.topic, remote.partition.partition_index), []
                ).append((remote, segment))
        self._job.cluster.run(self._put(made))
        self._finish({remote.id: remote for found in made.values() for remote, _ in found})
        self._done.rounds += 1
        self._told(
            f"round {self._done.rounds}: {self._done.segments} segments of"
            f" {self._done.bytes:,} bytes"
        )

    def _grant(self, work: Sequence[Slice]) -> dict[PlannedSegment, RemoteSegment]:
        """Those of leaders that have changed are left out."""
        planned: dict[TopicPartition, list[PlannedSegment]] = {}
        for part in work:
            for one in part.segments:
                planned.setdefault(one.key, []).append(one)
        known = {each.key: each for each in self._partitions}
        runs = [_run(known[key], found) for key, found in planned.items()]
        self._open = [
            FinishedRun(run.key, run.topic_id, run.leader_epoch, tuple(x.id for x in run.segments))
            for run in runs
        ]
        granted: dict[PlannedSegment, RemoteSegment] = {}
        for run, answer in zip(runs, self._start(runs), strict=True):
            if answer.error in _LEADER_CHANGED:
                self._told(f"the leader of {_name(run.key)} has changed: it is asked again")
                continue
            _check(answer)
            for wanted, found in zip(planned[run.key], answer.segments, strict=True):
                granted[wanted] = _remote(run, answer.store, wanted, found)
        return granted

    def _stores(self) -> Stores:
        if self._store.url is None or self._wal_url is None:
            raise ConfigError("the brokers have no store that a job can reach")
        cluster = self._job.cluster
        properties, options = pairs(cluster.properties), pairs(cluster.storage)
        return Stores(properties, options, self._wal_url, self._store.url)

    async def _put(self, made: Mapping[TopicPartition, Sequence[Made]]) -> None:
        """Indexes and manifests: the producers of a segment follow those of the one before."""
        store = await self._stores().tiered(await self._job.cluster.connections())
        producers = {one.key: one.producers for one in self._partitions}
        await put_indexes(store, self._store.chunk_size, made, producers)

    def _finish(self, made: Mapping[Uuid, RemoteSegment]) -> None:
        open_runs = [
            replace(one, segments=tuple(x for x in one.segments if x in made)) for one in self._open
        ]
        runs = [one for one in open_runs if one.segments]
        cluster = self._job.cluster

        async def finish() -> None:
            results = await finish_segments(await cluster.cluster(), self._id, runs)
            for result in results:
                for segment_id in result.finished:
                    self._done.segments += 1
                    self._done.bytes += made[segment_id].size
            for result in results:
                if result.error in _LEADER_CHANGED:
                    self._told(f"the leader of {_name(result.key)} has changed: it is asked again")
                elif result.error:
                    raise KafkaError(result.error, f"{_name(result.key)}: {result.message}")

        cluster.run(finish())
        self._open = []

    def give_up(self) -> None:
        """What is not finished is of no use to anybody; otherwise its leases end."""
        left, self._open = [replace(one, give_up=True) for one in self._open], []
        cluster = self._job.cluster

        async def tell() -> None:
            await finish_segments(await cluster.cluster(), self._id, left)

        if left:
            with suppress(KafkaError):
                this_process().run(tell())


def _check(answer: GrantedRun) -> None:
    if answer.error:
        raise KafkaError(answer.error, f"{_name(answer.key)}: {answer.message or ''}")


def _run(partition: _Partition, planned: Sequence[PlannedSegment]) -> Run:
    """The first one begins where the leader said, perhaps within a batch."""
    ranges = [
        SegmentRange(random_uuid(system_random()), one.start_offset, one.end_offset)
        for one in planned
    ]
    ranges[0] = replace(ranges[0], start_offset=partition.next_offset)
    return Run(partition.key, partition.topic_id, partition.leader_epoch, tuple(ranges))


def _remote(
    run: Run, store: SegmentStore, wanted: PlannedSegment, granted: GrantedSegment
) -> RemoteSegment:
    found = granted.start_offset, granted.end_offset, granted.size
    if found != (wanted.start_offset, wanted.end_offset, wanted.bytes):
        raise StorageError(f"{_name(run.key)}: granted was {found} instead of {wanted}")
    return RemoteSegment(
        topic=run.key.topic,
        partition=TopicIdPartition(run.topic_id, run.key.partition),
        id=granted.id,
        start_offset=granted.start_offset,
        end_offset=granted.end_offset,
        broker_id=store.broker_id,
        max_timestamp_ms=granted.max_timestamp_ms,
        event_timestamp_ms=granted.event_timestamp_ms,
        epochs=((SERVED_EPOCH, granted.start_offset),),
        size=granted.size,
        txn_index_empty=True,
    )


def _name(key: TopicPartition) -> str:
    return f"{key.topic}-{key.partition}"
