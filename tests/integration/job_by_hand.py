"""A job that assembles segments, step by step and without Spark: so that tests can come between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skylog.bulk.process import pairs
from skylog.client.bulk import Regions, Split, plan_ranges
from skylog.client.bulk.reading import locate_batches
from skylog.client.bulk.segments import (
    FinishedResult,
    FinishedRun,
    GrantedRun,
    Run,
    SegmentRange,
    finish_segments,
    start_segments,
)
from skylog.client.bulk.types import BatchLocation, PartitionRange
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid, system_random
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.segment_indexes import Made, put_indexes
from skylog.spark.jobs.segment_plan import PlannedSegment, Slice, in_order
from skylog.spark.jobs.segment_task import SegmentTask, Stores, assemble
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.segments import RemoteSegment, TopicIdPartition


def new_id() -> Uuid:
    return random_uuid(system_random())


@dataclass
class JobByHand:
    """One partition of one topic."""

    bootstrap: str
    topic: str
    index: int = 0
    id: Uuid = field(default_factory=new_id)

    def __post_init__(self) -> None:
        self.key = TopicPartition(self.topic, self.index)
        self.cluster = JobCluster(
            {"bootstrap.servers": self.bootstrap, "default.api.timeout.ms": "10000"}
        )
        (found,) = self.cluster.topics([self.topic])
        self.topic_id = found.topic_id

    # -- requests

    def start(
        self, *ranges: tuple[int, int], epoch: int = -1, take_over: bool = False, **more: Any
    ) -> GrantedRun:
        """(first offset, last offset) each; without any, only ask."""
        ids: Sequence[Uuid] = more.get("ids") or [new_id() for _ in ranges]
        segments = tuple(
            SegmentRange(one, *range_) for one, range_ in zip(ids, ranges, strict=True)
        )
        run = Run(self.key, more.get("topic_id", self.topic_id), epoch, segments)

        async def ask() -> list[GrantedRun]:
            cluster = await self.cluster.cluster()
            return await start_segments(cluster, self.id, [run], take_over=take_over)

        (answer,) = self.cluster.run(ask())
        return answer

    def granted(self, *ranges: tuple[int, int], **more: Any) -> GrantedRun:
        epoch = self.start().leader_epoch
        answer = self.start(*ranges, epoch=epoch, **more)
        assert answer.error is ErrorCode.NONE, answer
        return answer

    def finish(
        self, granted: GrantedRun, *ids: Uuid, give_up: bool = False, epoch: int | None = None
    ) -> FinishedResult:
        run = FinishedRun(
            self.key,
            self.topic_id,
            granted.leader_epoch if epoch is None else epoch,
            ids or tuple(one.id for one in granted.segments),
            give_up,
        )

        async def ask() -> list[FinishedResult]:
            return await finish_segments(await self.cluster.cluster(), self.id, [run])

        (answer,) = self.cluster.run(ask())
        return answer

    # -- objects

    def segments(self, granted: GrantedRun) -> list[RemoteSegment]:
        return [
            RemoteSegment(
                topic=self.topic,
                partition=TopicIdPartition(self.topic_id, self.index),
                id=one.id,
                start_offset=one.start_offset,
                end_offset=one.end_offset,
                broker_id=granted.store.broker_id,
                max_timestamp_ms=one.max_timestamp_ms,
                event_timestamp_ms=one.event_timestamp_ms,
                epochs=((0, one.start_offset),),
                size=one.size,
                txn_index_empty=True,
            )
            for one in granted.segments
        ]

    def batches(self, start: int, end: int) -> list[BatchLocation]:
        async def locate() -> list[BatchLocation]:
            cluster = await self.cluster.cluster()
            split = Split(self.topic, self.topic_id, self.index, start, end, 0, True)
            found = await locate_batches(cluster, split, regions=Regions.WAL)
            return list(found.batches)

        return self.cluster.run(locate())

    def stores(self, granted: GrantedRun) -> Stores:
        async def wal_url() -> str:
            cluster = await self.cluster.cluster()
            plan = await plan_ranges(cluster, [PartitionRange(*self.key)], 10**6, Regions.WAL)
            assert plan.storage_url is not None
            return plan.storage_url

        assert granted.store.url is not None
        url = self.cluster.run(wal_url())
        return Stores(pairs(self.cluster.properties), (), url, granted.store.url)

    def put(self, granted: GrantedRun) -> None:
        """Assemble and put what was granted, as tasks and driver do."""
        remotes = self.segments(granted)
        first, last = remotes[0].start_offset, remotes[-1].end_offset
        batches = self.batches(first, last + 1)
        planned = tuple(
            PlannedSegment(self.key, one.start_offset, one.end_offset, one.size) for one in remotes
        )
        slice_ = Slice(tuple(in_order({self.key: batches})), planned)
        stores = self.stores(granted)
        made = assemble(SegmentTask(stores, slice_, tuple(remotes)))
        pairs_: Mapping[TopicPartition, Sequence[Made]] = {
            self.key: list(zip(remotes, made.segments, strict=True))
        }

        async def put() -> None:
            store = await stores.tiered(await self.cluster.connections())
            await put_indexes(store, granted.store.chunk_size, pairs_, {self.key: ()})

        self.cluster.run(put())

    def files(self, granted: GrantedRun, bucket: Path) -> list[dict[str, Path]]:
        """The objects of each segment, by suffix, in a directory that is the store."""
        found = []
        for one in self.segments(granted):
            base = (bucket / AivenLayout().log_key(one).text).with_suffix("")
            found.append(
                {suffix: base.with_suffix(f".{suffix}") for suffix in ("log", "indexes")}
                | {"manifest": base.with_suffix(".rsm-manifest")}
            )
        return found
