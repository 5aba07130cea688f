"""A control plane in memory, of one broker: the coordinator's machine over a state in memory.

Nothing is logged, so what the machine decides is committed at once. No call awaits anything in
between, so each is atomic on the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, RangeRequest
from skylog.diskless.coordinator import inspection, queries
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.state import Applied
from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import (
    CommitResult,
    CoordinatorInfo,
    DeleteRecordsResult,
    DescribeFileResult,
    FileInfo,
    FileToCommit,
    FindRequest,
    FindResult,
    HighWatermarkListener,
    ListOffsetsResult,
    LogInfo,
    PruneResult,
    RetentionResult,
    TopicPartition,
    Unsubscribe,
)
from skylog.diskless.planes.pruning import prune_in_steps
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid

# The id of its only coordinator.
_COORDINATOR = 0


class MemoryPlane:
    """See ``plane.ControlPlane``."""

    def __init__(self, clock: Clock, plane_rules: PlaneRules | None = None) -> None:
        self._clock = clock
        self._state = MemoryState()
        self._machine = CoordinatorMachine(_COORDINATOR, self._state, plane_rules or PlaneRules())
        self._listeners = Listeners()

    async def start(self) -> None:
        """Nothing to prepare."""

    async def loaded(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to release."""

    @property
    def is_durable(self) -> bool:
        return False

    def owns(self, partition: TopicPartition) -> bool:
        return True

    def owns_files(self) -> bool:
        return True

    def is_caretaker(self) -> bool:
        return True

    def reaches_all(self) -> bool:
        return True

    def other_brokers(self) -> list[int]:
        return []

    # Writes

    def _write(self, request: ask.Write) -> Any:
        machine, now_ms = self._machine, self._clock.now_ms()
        decision = machine.handle(request, now_ms)
        if decision.records:
            end_offset = self._state.applied.end_offset + len(decision.records)
            machine.apply(decision.records, Applied(end_offset, now_ms))
        if decision.commit is not None:
            for partition, high_watermark in decision.commit.plan.moved():
                self._listeners.tell(partition, high_watermark)
        return decision.reply

    async def create_partitions(self, topics: Sequence[tuple[Uuid, str, int]]) -> None:
        all_of = [(topic_id, name, range(total)) for topic_id, name, total in topics]
        self._write(ask.CreatePartitions(all_of))

    async def delete_topics(self, topic_ids: Sequence[Uuid]) -> None:
        self._write(ask.DeleteTopics(topic_ids))

    def coordinator_of(self, partition: TopicPartition) -> int:
        return _COORDINATOR

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        return await self.commit_file(file)

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        mine = replace(file, coordinator_ids=(_COORDINATOR,))
        results: list[CommitResult] = self._write(ask.CommitFile(mine))
        return results

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        results: list[DeleteRecordsResult] = self._write(ask.DeleteRecords(requests))
        return results

    async def enforce_retention(
        self, requests: Sequence[tuple[Uuid, int, int, int]], max_batches: int
    ) -> list[RetentionResult]:
        results: list[RetentionResult] = self._write(ask.EnforceRetention(requests, max_batches))
        return results

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        async def step(part: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
            results: list[PruneResult] = self._write(ask.PruneTo(part))
            return results

        return await prune_in_steps(requests, step)

    async def pin_files(self, pins: Sequence[PinRequest]) -> list[KafkaError | None]:
        results: list[KafkaError | None] = self._write(ask.PinFiles(pins))
        return results

    async def release_pins(self, keys: Sequence[str]) -> None:
        self._write(ask.ReleasePins(keys))

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        self._machine.forget(ask.ForgetFiles(keys))

    # Reads

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        request = ask.FindBatches(requests, fetch_max_bytes, max_batches_per_partition)
        found: list[FindResult] = self._machine.find(request)
        return found

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        request = ask.PlanRanges(requests, split_bytes, max_batches)
        planned: list[PlannedRange] = queries.look(self._state, request)
        return planned

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        request = ask.LocateBatches(requests, max_batches)
        located: list[LocatedRange] = queries.look(self._state, request)
        return located

    async def list_offsets(
        self, requests: Sequence[tuple[Uuid, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        listed: list[ListOffsetsResult] = self._read(ask.ListOffsets(requests, from_offset))
        return listed

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]:
        described: list[DescribeFileResult] = self._read(ask.DescribeFiles(keys))
        return described

    def _read(self, request: ask.StrictRead) -> Any:
        return self._machine.read(request, self._clock.now_ms())

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        free = self._machine.find(ask.FreeFiles(marked_before_ms, limit))
        return [file.object_key for file in free]

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        return inspection.file_infos(self._state.list_files(after, limit))

    async def describe_coordinators(self) -> list[CoordinatorInfo]:
        return [CoordinatorInfo(**self._state.counts()._asdict())]

    async def known_topics(self) -> list[Uuid]:
        topics: list[Uuid] = self._machine.find(ask.KnownTopics())
        return topics

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        infos: list[LogInfo] = self._machine.find(ask.DescribeLogs(partitions))
        return infos

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)
