"""Local copies of diskless partitions, assembled from the broker's parts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.diskless.local.fetch import LocalFetch, answered_by_copy
from skylog.diskless.local.filler import LocalFiller
from skylog.diskless.local.partitions import LocalPartitions
from skylog.diskless.local.plan import LocalLimits
from skylog.diskless.local.round import LocalCopies
from skylog.diskless.local.threads import Threads

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.controller.image.topics import Partition
    from skylog.diskless.plane import TopicPartition
    from skylog.diskless.reader import ReadRequest, ReadResult
    from skylog.kernel.clock import Clock
    from skylog.kernel.executor import Executor
    from skylog.kernel.ids import Uuid
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.files import Files

# Kafka-format segments of diskless partitions, beside the logs; it can be deleted at any time.
LOCAL_DIRECTORY: Final = "diskless-local"


@dataclass(frozen=True, slots=True)
class LocalSegments:
    """The filler, and the fetch that uses it."""

    filler: LocalFiller
    partitions: LocalPartitions
    node_id: int
    _fetch: LocalFetch

    async def fetch(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, *, min_one: bool
    ) -> list[ReadResult]:
        return await self._fetch.fetch(requests, fetch_max_bytes, min_one=min_one)

    def answers(self, key: TopicPartition, offset: int) -> bool:
        """Whether a copy has the offset, or waits at the tail for it."""
        one = self.partitions.get(key)
        return one is not None and answered_by_copy(one, offset)

    def assign(self, topic: str, topic_id: Uuid, index: int, state: Partition) -> None:
        """Only replicas keep copies."""
        if self.node_id in state.replicas:
            self.partitions.host(topic, topic_id, index)
        else:
            self.partitions.unhost(topic_id, index)


def watch_commits(
    engine: DisklessEngine,
    settings: BrokerSettings,
    files: Files,
    executor: Executor,
    clock: Clock,
) -> None:
    """Notify waiting fetches of commits; for a partition with a local copy, once the copy has
    them."""
    diskless = settings.diskless
    if not diskless.local_segments:
        engine.plane.watch(engine.partitions.committed)
        return
    work = asyncio.Event()
    directory = Path(settings.node.log_dirs[0]).absolute() / LOCAL_DIRECTORY
    partitions = LocalPartitions(directory, engine.partitions, clock, work.set)
    limits = LocalLimits(
        diskless.local_retention_bytes, diskless.local_bytes_max, diskless.local_retention_ms
    )
    threads = Threads(executor)
    copies = LocalCopies(partitions, limits, engine.plane, engine.reader, files, threads, clock)
    engine.local = LocalSegments(
        LocalFiller(copies, work),
        partitions,
        settings.node.node_id,
        LocalFetch(partitions, engine.reader, threads),
    )
    engine.plane.watch(partitions.committed)
