"""Requests of jobs to a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from skylog.bulk.process import Connections, pairs, this_process
from skylog.bulk.reader import ReadContext
from skylog.client.bulk import (
    Located,
    PartitionPlan,
    PartitionRange,
    Plan,
    Regions,
    Split,
    locate_batches,
    plan_ranges,
)
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo
from skylog.kernel.errors import ErrorCode, KafkaError

T = TypeVar("T")
RECORDS_GONE: Final = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
CLIENT_ID: Final = "skylog-job"
_TIMEOUT: Final = {"default.api.timeout.ms": "30000", "client.id": CLIENT_ID}


@dataclass(frozen=True, slots=True)
class JobCluster:
    """A cluster and its bucket, as a job's options name them; can be sent to executors."""

    client: Mapping[str, str] = field(repr=False)  # may hold passwords
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def properties(self) -> dict[str, str]:
        return {**_TIMEOUT, **self.client}

    def context(self, storage_url: str | None = None, **more: Any) -> ReadContext:
        return ReadContext.of(
            self.properties, storage_url=storage_url, storage=self.storage, **more
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return this_process().run(work)

    async def connections(self) -> Connections:
        return await this_process().connections(pairs(self.properties))

    async def cluster(self) -> Cluster:
        return (await self.connections()).cluster

    def topics(self, names: Collection[str] | None = None) -> list[TopicInfo]:
        """The topics with these names, or all but internal ones; KafkaError if one does not
        exist."""
        return self.run(self._topics(names))

    async def _topics(self, names: Collection[str] | None) -> list[TopicInfo]:
        cluster = await self.cluster()
        await cluster.refresh(None if names is None else sorted(names))
        known = cluster.metadata.topics
        if names is None:
            return [topic for topic in known.values() if not topic.internal]
        for name in names:
            if name not in known:
                error = cluster.metadata.errors.get(name)
                raise error or KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist"
                )
        return [known[name] for name in names]

    def plan(
        self,
        ranges: Sequence[PartitionRange],
        split_bytes: int,
        regions: Regions = Regions.ALL,
    ) -> Plan:
        """Splits of ranges; if records were deleted since, a range begins at the log's start."""
        return self.run(self.planned(ranges, split_bytes, regions))

    async def planned(
        self, ranges: Sequence[PartitionRange], split_bytes: int, regions: Regions
    ) -> Plan:
        """The same, on the loop of the process."""
        cluster = await self.cluster()
        found = await plan_ranges(cluster, ranges, split_bytes, regions)
        moved = [
            _at_log_start(wanted, partition)
            for wanted, partition in zip(ranges, found.partitions, strict=True)
        ]
        if moved != list(ranges):
            found = await plan_ranges(cluster, moved, split_bytes, regions)
        for partition in found.partitions:
            if partition.error:
                place = f"topic {partition.topic} partition {partition.partition}"
                raise KafkaError(partition.error, partition.message or place)
        return found


async def located(cluster: Cluster, split: Split) -> AsyncIterator[tuple[int, Located]]:
    """Where the batches of a split are in the WAL, page by page, each with the requested offset.

    Ends early if the records are deleted meanwhile: by retention, DeleteRecords, or with their
    topic.
    """
    position = split.start_offset
    while position < split.end_offset:
        try:
            page = await locate_batches(cluster, split, start_offset=position, regions=Regions.WAL)
        except KafkaError as error:
            if error.code in RECORDS_GONE:
                return
            raise
        yield position, page
        position = page.next_offset


def _at_log_start(wanted: PartitionRange, found: PartitionPlan) -> PartitionRange:
    out_of_range = found.error is ErrorCode.OFFSET_OUT_OF_RANGE
    if not out_of_range or wanted.start_offset >= found.log_start_offset:
        return wanted
    end = (
        wanted.end_offset
        if wanted.end_offset < 0
        else max(wanted.end_offset, found.log_start_offset)
    )
    return replace(wanted, start_offset=found.log_start_offset, end_offset=end)
