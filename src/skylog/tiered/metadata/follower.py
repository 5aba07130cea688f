"""The remote logs of the partitions hosted here, kept up to date from the metadata topic.

``publish`` is how anything changes them: append a record, read it back, and say whether it took
effect. Only partitions of the topic that are needed are read, and only hosted logs are kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.partition_reader import KeptLog, PartitionReader
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.snapshots import SnapshotFiles
from skylog.tiered.ports import Published
from skylog.wire.metadata_records import encode_remote_log

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.tiered.ports import MetadataTopic
    from skylog.tiered.segments import TopicIdPartition
    from skylog.wire.schema import Message

_log = get_logger("tiered.metadata")
SNAPSHOT_INTERVAL_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerSettings:
    """``partitions`` is that of the metadata topic, which may not exist yet."""

    partitions: int
    consume_wait_ms: int = 120_000
    retry_ms: int = 100
    # Where snapshot files are kept.
    directory: str


class MetadataFollower:
    """Implements ``tiered.ports.RemoteLogs``. All calls come from the event loop."""

    def __init__(
        self, topic: MetadataTopic, executor: Executor, settings: FollowerSettings
    ) -> None:
        self._topic = topic
        self._executor = executor
        self._settings = settings
        self._files = SnapshotFiles(settings.directory)
        self._readers: dict[int, PartitionReader] = {}
        self._kept: dict[TopicIdPartition, KeptLog] = {}
        self._listeners: list[Callable[[TopicIdPartition], None]] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._past: Counter[Outcome] = Counter()
        self._past_junk = 0

    # --- Following ----------------------------------------------------------------------------

    def follow(self, partition: TopicIdPartition, topic: str) -> None:
        if partition in self._kept:
            return
        number = metadata_partition(partition, self._settings.partitions)
        reader = self._readers.get(number)
        if reader is None:
            reader = self._readers[number] = PartitionReader(
                number,
                self._topic,
                self._files,
                self._executor,
                self._settings.retry_ms / 1000,
                self._tell,
            )
        self._kept[partition] = reader.add(partition, topic)

    def unfollow(self, partition: TopicIdPartition) -> None:
        if self._kept.pop(partition, None) is None:
            return
        number = metadata_partition(partition, self._settings.partitions)
        reader = self._readers[number]
        reader.remove(partition)
        if not reader:
            del self._readers[number]
            self._past += reader.outcomes
            self._past_junk += reader.junk_records
            task = asyncio.get_running_loop().create_task(reader.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        self._listeners.append(listener)

    def _tell(self, partition: TopicIdPartition) -> None:
        for listener in self._listeners:
            listener(partition)

    # --- Questions ----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[RemoteLog]:
        """All that are complete."""
        return (kept.log for kept in tuple(self._kept.values()) if kept.ready.is_set())

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        kept = self._kept.get(partition)
        return kept.log if kept is not None and kept.ready.is_set() else None

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        """REPLICA_NOT_AVAILABLE if it is not followed, or not any more."""
        while kept := self._kept.get(partition):
            await kept.ready.wait()
            if self._kept.get(partition) is kept:
                return kept.log
        raise _not_followed(partition)

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many records did what, since the start."""
        return sum((reader.outcomes for reader in self._readers.values()), self._past.copy())

    @property
    def junk_records(self) -> int:
        """Records of the topic that are none of Kafka's."""
        return sum((reader.junk_records for reader in self._readers.values()), self._past_junk)

    # --- Changes ------------------------------------------------------------------------------

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        kept = self._kept.get(partition)
        if kept is None:
            raise _not_followed(partition)
        number = metadata_partition(partition, self._settings.partitions)
        if not self._topic.partition_count:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "the metadata topic is not there yet")
        kept.waiting += 1
        try:
            offset = await self._topic.append(number, [encode_remote_log(record)])
            async with asyncio.timeout(self._settings.consume_wait_ms / 1000):
                outcome = await self._outcome(partition, kept, offset)
        except TimeoutError as error:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"the record of {partition} was not read back",
                ambiguous=True,
            ) from error
        finally:
            kept.waiting -= 1
            if not kept.waiting:
                kept.outcomes.clear()
        return Published.EFFECTIVE if outcome is Outcome.EFFECTIVE else Published.VOID

    async def _outcome(self, partition: TopicIdPartition, kept: KeptLog, offset: int) -> Outcome:
        while offset not in kept.outcomes:
            if self._kept.get(partition) is not kept:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT, f"{partition} is not followed", ambiguous=True
                )
            kept.applied.clear()
            await kept.applied.wait()
        return kept.outcomes[offset]

    # --- Life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write snapshots from time to time, until cancelled."""
        while True:
            await asyncio.sleep(SNAPSHOT_INTERVAL_SECONDS)
            await self.write_snapshots()

    async def write_snapshots(self) -> None:
        for reader in tuple(self._readers.values()):
            await reader.snapshot()

    async def close(self) -> None:
        readers = tuple(self._readers.values())
        await asyncio.gather(*(reader.close() for reader in readers), *self._closing)
        await self.write_snapshots()


def _not_followed(partition: TopicIdPartition) -> KafkaError:
    return KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition} is not followed here")
