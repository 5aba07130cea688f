"""A control plane in memory, of one broker: for tests, and the plainest reading of the contract.

Every call runs without a pause in the middle, so each is atomic on the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, RangeRequest
from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import (
    BatchCoordinate,
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
from skylog.diskless.rules import commits, offsets, pins, ranges
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(slots=True)
class _File:
    size: int
    format: int
    committed_ms: int
    results: list[CommitResult] = field(default_factory=list)
    live_batches: int = 0
    marked_ms: int | None = None


@dataclass(slots=True)
class _Pin:
    """With the file, once that is committed: its answer may be asked for after it is deleted."""

    expires_ms: int
    file: _File | None = None


@dataclass(slots=True)
class _Log:
    state: offsets.LogState = field(default_factory=offsets.LogState)
    batches: list[BatchCoordinate] = field(default_factory=list)
    producers: dict[int, commits.Entries] = field(default_factory=dict)


class MemoryPlane:
    """See ``plane.ControlPlane``."""

    def __init__(self, clock: Clock, plane_rules: PlaneRules | None = None) -> None:
        self._clock = clock
        self._rules = plane_rules or PlaneRules()
        self._logs: dict[TopicPartition, _Log] = {}
        self._files: dict[str, _File] = {}
        self._pins: dict[str, _Pin] = {}
        self._batch_id = 0
        self._listeners = Listeners()

    async def start(self) -> None:
        """Nothing to make ready."""

    async def loaded(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to let go of."""

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

    async def create_partitions(self, topics: Sequence[tuple[Uuid, str, int]]) -> None:
        for topic_id, _name, total in topics:
            for partition in range(total):
                self._logs.setdefault((topic_id, partition), _Log())

    async def delete_topics(self, topic_ids: Sequence[Uuid]) -> None:
        for partition in [known for known in self._logs if known[0] in topic_ids]:
            self._release(self._logs.pop(partition).batches)

    def coordinator_of(self, partition: TopicPartition) -> int:
        return 0

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        return await self.commit_file(file)

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        commits.check_file(file)
        pin = self._pins.get(file.object_key)
        known = self._files.get(file.object_key) or (pin.file if pin else None)
        if known is not None:
            commits.check_repeat(file, known.size, known.format, len(known.results))
            return commits.repeated(known.results)
        now_ms = self._clock.now_ms()
        commits.check_new(file, now_ms, self._rules, pin.expires_ms if pin else None)
        plan = commits.plan_commit(file, self._state_of, self._producer_of, now_ms, self._rules)
        self._keep(file, plan, now_ms)
        if pin is not None:
            pin.file = self._files[file.object_key]
        for partition, high_watermark in plan.moved():
            self._listeners.tell(partition, high_watermark)
        return list(plan.results)

    def _state_of(self, partition: TopicPartition) -> offsets.LogState | None:
        log = self._logs.get(partition)
        return None if log is None else log.state

    def _producer_of(self, partition: TopicPartition, producer_id: int) -> commits.Entries:
        return self._logs[partition].producers.get(producer_id, ())

    def _keep(self, file: FileToCommit, plan: commits.CommitPlan, now_ms: int) -> None:
        self._files[file.object_key] = _File(
            file.size,
            file.format,
            now_ms,
            plan.results,
            len(plan.accepted),
            None if plan.accepted else now_ms,
        )
        for accepted in plan.accepted:
            batch = accepted.batch
            self._batch_id += 1
            coordinate = BatchCoordinate(
                batch_id=self._batch_id,
                object_key=file.object_key,
                byte_offset=batch.byte_offset,
                byte_size=batch.size,
                base_offset=accepted.assigned_base_offset,
                last_offset=accepted.assigned_last_offset,
                log_append_timestamp=now_ms,
                batch_max_timestamp=batch.batch_max_timestamp,
                timestamp_type=batch.timestamp_type,
                magic=batch.magic,
            )
            self._logs[batch.topic_partition].batches.append(coordinate)
        for partition, state in plan.logs.items():
            self._logs[partition].state = state
        for (partition, producer_id), entries in plan.producers.items():
            self._logs[partition].producers[producer_id] = entries

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        budget = offsets.FindBudget(fetch_max_bytes, max_batches_per_partition)
        return [self._find(request, budget) for request in requests]

    def _find(self, request: FindRequest, budget: offsets.FindBudget) -> FindResult:
        log = self._logs.get((request.topic_id, request.partition))
        if log is None:
            return FindResult(UNKNOWN)
        state = log.state
        error = offsets.find_error(request.offset, state)
        found: list[BatchCoordinate] = []
        if not error and budget.partition(request.max_bytes):
            found = budget.grant(b for b in log.batches if b.last_offset >= request.offset)
        return FindResult(error, found, state.log_start_offset, state.high_watermark)

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        def page_of(partition: TopicPartition, span: ranges.Span, limit: int) -> ranges.SplitPage:
            batches = (
                ranges.SizedBatch(b.base_offset, b.last_offset, b.byte_size, b.timestamp)
                for b in self._within(partition, span, limit)
            )
            return ranges.split_page(batches, span, split_bytes)

        return ranges.run(ranges.plan(requests, max_batches, self._state_of), page_of)

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        return ranges.run(ranges.locate(requests, max_batches, self._state_of), self._within)

    def _within(
        self, partition: TopicPartition, span: ranges.Span, limit: int
    ) -> list[BatchCoordinate]:
        batches = (b for b in self._logs[partition].batches if b.last_offset >= span.start)
        return ranges.within(batches, span, limit)

    async def list_offsets(
        self, requests: Sequence[tuple[Uuid, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        results = []
        for topic_id, partition, timestamp in requests:
            log = self._logs.get((topic_id, partition))
            if log is None:
                results.append(ListOffsetsResult(UNKNOWN))
                continue
            answer = offsets.named_offset(timestamp, log.state)
            if answer is None:
                batch = offsets.choose_batch(log.batches, timestamp, from_offset)
                answer = offsets.chosen_offset(batch, timestamp, log.state)
            results.append(answer)
        return results

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        results = []
        for topic_id, partition, offset in requests:
            log = self._logs.get((topic_id, partition))
            if log is None:
                results.append(DeleteRecordsResult(UNKNOWN))
                continue
            target = offsets.delete_target(offset, log.state)
            if target is None:
                results.append(DeleteRecordsResult(ErrorCode.OFFSET_OUT_OF_RANGE))
                continue
            self._start_at(log, target)
            results.append(DeleteRecordsResult(ErrorCode.NONE, log.state.log_start_offset))
        return results

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]:
        results = []
        for key in keys:
            file = self._files.get(key)
            pinned = self._is_pinned(key)
            known = file is not None or pinned
            code = ErrorCode.NONE if known else ErrorCode.RESOURCE_NOT_FOUND
            live = file is not None and file.live_batches > 0
            results.append(DescribeFileResult(code, live, pinned))
        return results

    async def pin_files(self, requests: Sequence[PinRequest]) -> list[KafkaError | None]:
        return [self._pin(request) for request in requests]

    def _pin(self, request: PinRequest) -> KafkaError | None:
        key = request.object_key
        pin = self._pins.get(key)
        try:
            pins.check_pin(
                request, self._clock.now_ms(), self._rules, pin.expires_ms if pin else None
            )
        except KafkaError as error:
            return error
        if any(partition not in self._logs for partition in request.partitions):
            return KafkaError(UNKNOWN)
        pin = self._pins.setdefault(key, _Pin(0, self._files.get(key)))
        pin.expires_ms = max(pin.expires_ms, request.expires_ms)
        return None

    async def release_pins(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._pins.pop(key, None)

    def _is_pinned(self, key: str) -> bool:
        pin = self._pins.get(key)
        kept = pin is not None and pins.keeps(pin.expires_ms, self._clock.now_ms(), self._rules)
        if pin is not None and not kept:
            del self._pins[key]
        return kept

    async def enforce_retention(
        self, requests: Sequence[tuple[Uuid, int, int, int]], max_batches: int
    ) -> list[RetentionResult]:
        results = []
        for topic_id, partition, retention_bytes, retention_ms in requests:
            log = self._logs.get((topic_id, partition))
            if log is None:
                results.append(RetentionResult(UNKNOWN))
                continue
            limits = offsets.RetentionLimits(retention_bytes, retention_ms)
            oldest = log.batches[: max_batches + 1]
            start = offsets.retention_start(
                oldest, log.state, limits, self._clock.now_ms(), max_batches
            )
            gone = self._start_at(log, start)
            results.append(
                RetentionResult(
                    ErrorCode.NONE,
                    len(gone),
                    sum(batch.byte_size for batch in gone),
                    log.state.log_start_offset,
                )
            )
        return results

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        results = []
        for topic_id, partition, offset in requests:
            log = self._logs.get((topic_id, partition))
            if log is None:
                results.append(PruneResult(UNKNOWN))
                continue
            if offset > log.state.high_watermark:
                results.append(PruneResult(ErrorCode.OFFSET_OUT_OF_RANGE))
                continue
            self._drop_below(log, offset)
            results.append(PruneResult(ErrorCode.NONE, log.state.wal_start_offset))
        return results

    def _start_at(self, log: _Log, offset: int) -> list[BatchCoordinate]:
        start = max(offset, log.state.log_start_offset)
        log.state = log.state._replace(log_start_offset=start)
        return self._drop_below(log, start)

    def _drop_below(self, log: _Log, offset: int) -> list[BatchCoordinate]:
        """Let go of the batches that end below ``offset``; the one that straddles it stays."""
        gone = [batch for batch in log.batches if batch.last_offset < offset]
        del log.batches[: len(gone)]
        log.state = log.state._replace(
            byte_size=log.state.byte_size - sum(batch.byte_size for batch in gone),
            wal_start_offset=max(log.state.wal_start_offset, offset),
        )
        self._release(gone)
        return gone

    def _release(self, batches: Sequence[BatchCoordinate]) -> None:
        for batch in batches:
            file = self._files[batch.object_key]
            file.live_batches -= 1
            if file.live_batches == 0:
                file.marked_ms = self._clock.now_ms()

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        marked = [
            (file.marked_ms, key)
            for key, file in self._files.items()
            if file.marked_ms is not None and file.marked_ms < marked_before_ms
        ]
        return [key for _, key in sorted(marked)[: limit or None]]

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        for key in keys:
            file = self._files.get(key)
            if file is not None and file.marked_ms is not None:
                del self._files[key]

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        live_bytes: dict[str, int] = {}
        for log in self._logs.values():
            for batch in log.batches:
                so_far = live_bytes.get(batch.object_key, 0)
                live_bytes[batch.object_key] = so_far + batch.byte_size
        keys = sorted(key for key in self._files if key > after)[:limit]
        return [self._info(key, live_bytes.get(key, 0)) for key in keys]

    def _info(self, key: str, live_bytes: int) -> FileInfo:
        file = self._files[key]
        marked_ms = -1 if file.marked_ms is None else file.marked_ms
        return FileInfo(key, file.size, file.committed_ms, file.live_batches, live_bytes, marked_ms)

    async def describe_coordinators(self) -> list[CoordinatorInfo]:
        live = sum(file.live_batches > 0 for file in self._files.values())
        return [
            CoordinatorInfo(
                partitions=len(self._logs),
                batches=sum(len(log.batches) for log in self._logs.values()),
                live_files=live,
                free_files=len(self._files) - live,
                producers=sum(len(log.producers) for log in self._logs.values()),
                pins=len(self._pins),
            )
        ]

    async def known_topics(self) -> list[Uuid]:
        return list({topic_id for topic_id, _ in self._logs})

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        return [offsets.log_info(self._state_of(partition)) for partition in partitions]

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)
