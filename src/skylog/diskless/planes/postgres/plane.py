"""The control plane on Postgres: READ COMMITTED, one transaction per call, thin over the rules.

Every statement locks partitions before files, both in order, so deadlocks are rare; the server
rolls them back, and they are retried. Time comes from the broker's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, RangeRequest
from skylog.diskless.duties import Brokers
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
from skylog.diskless.planes.postgres import deletion, pins, ranges, reading
from skylog.diskless.planes.postgres.commit import commit, lock_logs
from skylog.diskless.planes.postgres.database import Database
from skylog.diskless.planes.postgres.notify import HighWatermarkFeed
from skylog.diskless.planes.postgres.pruning import prune
from skylog.diskless.planes.pruning import prune_in_steps
from skylog.diskless.rules import commits, offsets
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.secret import Secret

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class PostgresPlane:
    """See ``skylog.diskless.plane.ControlPlane``."""

    def __init__(
        self,
        connection_string: Secret,
        clock: Clock,
        plane_rules: PlaneRules | None = None,
        *,
        brokers: Brokers,
        connections_max: int = 10,
    ) -> None:
        self._clock = clock
        self._brokers = brokers
        self._rules = plane_rules or PlaneRules()
        self._database = Database(connection_string, connections_max)
        self._listeners = Listeners()
        self._feed = HighWatermarkFeed(self._database, self._listeners)

    async def start(self) -> None:
        try:
            await self._database.open()
            await self._feed.start()
        except BaseException:
            await self.close()
            raise

    async def loaded(self) -> None:
        """The database is available, or calls report that it is not."""

    async def close(self) -> None:
        await self._feed.close()
        await self._database.close()

    async def create_partitions(self, topics: Sequence[tuple[Uuid, str, int]]) -> None:
        rows = sorted(
            {
                (topic_id, partition): (topic_id, partition, name)
                for topic_id, name, total in topics
                for partition in range(total)
            }.values()
        )

        async def work(connection: Any) -> None:
            await connection.executemany(
                "INSERT INTO logs (topic_id, partition, topic_name) VALUES ($1, $2, $3) "
                "ON CONFLICT DO NOTHING",
                rows,
            )

        await self._database.change(work)

    async def delete_topics(self, topic_ids: Sequence[Uuid]) -> None:
        now_ms = self._clock.now_ms()
        await self._database.change(lambda c: deletion.delete_topics(c, topic_ids, now_ms))

    @property
    def is_durable(self) -> bool:
        return True

    def owns(self, partition: TopicPartition) -> bool:
        return self._brokers.leads(partition)

    def owns_files(self) -> bool:
        return self._brokers.is_first()

    def is_caretaker(self) -> bool:
        return self._brokers.is_first()

    def reaches_all(self) -> bool:
        return True

    def other_brokers(self) -> list[int]:
        return []

    def coordinator_of(self, partition: TopicPartition) -> int:
        return 0

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        return await self.commit_file(file)

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        commits.check_file(file)
        now_ms = self._clock.now_ms()
        results, moved = await self._database.change(
            lambda connection: commit(connection, file, now_ms, self._rules)
        )
        # Other brokers are notified by the database; our own fetches need not wait for that.
        for partition, high_watermark in moved:
            self._listeners.tell(partition, high_watermark)
        return results

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        return await self._database.read(
            lambda c: reading.find(c, requests, fetch_max_bytes, max_batches_per_partition)
        )

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        return await self._database.read(
            lambda c: ranges.plan(c, requests, split_bytes, max_batches)
        )

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        return await self._database.read(lambda c: ranges.locate(c, requests, max_batches))

    async def list_offsets(
        self, requests: Sequence[tuple[Uuid, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        async def work(connection: Any) -> list[ListOffsetsResult]:
            return [
                await reading.list_offset(connection, request, from_offset) for request in requests
            ]

        return await self._database.read(work)

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        now_ms = self._clock.now_ms()

        async def work(connection: Any) -> list[DeleteRecordsResult]:
            logs = await lock_logs(connection, [(r[0], r[1]) for r in requests])
            results = []
            for topic_id, partition, offset in requests:
                log = logs.get((topic_id, partition))
                if log is None:
                    results.append(DeleteRecordsResult(UNKNOWN))
                    continue
                target = offsets.delete_target(offset, log)
                if target is None:
                    results.append(DeleteRecordsResult(ErrorCode.OFFSET_OUT_OF_RANGE))
                    continue
                moved = await deletion.start_at(connection, (topic_id, partition), log, target)
                logs[topic_id, partition] = moved.log
                await deletion.mark_free_files(connection, moved.file_ids, now_ms)
                results.append(DeleteRecordsResult(ErrorCode.NONE, moved.log.log_start_offset))
            return results

        return await self._database.change(work)

    async def pin_files(self, requests: Sequence[PinRequest]) -> list[KafkaError | None]:
        now_ms = self._clock.now_ms()
        return await self._database.change(lambda c: pins.pin(c, requests, now_ms, self._rules))

    async def release_pins(self, keys: Sequence[str]) -> None:
        await self._database.change(lambda c: pins.release(c, keys))

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]:
        now_ms = self._clock.now_ms()

        async def work(connection: Any) -> list[DescribeFileResult]:
            # In this order, so that a commit in between is seen.
            kept = await pins.kept(connection, keys, now_ms, self._rules)
            marked = await reading.files(connection, keys)
            return [
                DescribeFileResult(ErrorCode.NONE, not marked.get(key, True), key in kept)
                if key in marked or key in kept
                else DescribeFileResult(ErrorCode.RESOURCE_NOT_FOUND)
                for key in keys
            ]

        return await self._database.read(work)

    async def enforce_retention(
        self, requests: Sequence[tuple[Uuid, int, int, int]], max_batches: int
    ) -> list[RetentionResult]:
        """Each partition in its own transaction: a long pass must not block commits."""
        return [
            await self._retain(
                (topic_id, partition), offsets.RetentionLimits(limit_bytes, limit_ms), max_batches
            )
            for topic_id, partition, limit_bytes, limit_ms in requests
        ]

    async def _retain(
        self, partition: TopicPartition, limits: offsets.RetentionLimits, max_batches: int
    ) -> RetentionResult:
        now_ms = self._clock.now_ms()
        silent_since_ms = now_ms - self._rules.producer_expiration_ms
        silent = await self._database.read(
            lambda c: reading.has_silent_producers(c, partition, silent_since_ms)
        )
        oldest = await self._database.read(lambda c: reading.oldest(c, partition, max_batches + 1))
        if oldest is None:
            return RetentionResult(UNKNOWN)
        start = offsets.retention_start(oldest.batches, oldest.log, limits, now_ms, max_batches)

        async def work(connection: Any) -> RetentionResult:
            log = (await lock_logs(connection, [partition])).get(partition)
            if log is None:
                return RetentionResult(UNKNOWN)
            moved = await deletion.start_at(connection, partition, log, start)
            await deletion.mark_free_files(connection, moved.file_ids, now_ms)
            await deletion.forget_producers(connection, partition, silent_since_ms)
            return RetentionResult(
                ErrorCode.NONE,
                len(moved.file_ids),
                log.byte_size - moved.log.byte_size,
                moved.log.log_start_offset,
            )

        if silent or start > oldest.log.log_start_offset:
            return await self._database.change(work)
        return RetentionResult(ErrorCode.NONE, 0, 0, oldest.log.log_start_offset)

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        """In several transactions: a long one would block commits."""
        now_ms = self._clock.now_ms()

        async def step(part: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
            return await self._database.change(lambda c: prune(c, part, now_ms))

        return await prune_in_steps(requests, step)

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        return await self._database.read(
            lambda c: reading.files_to_delete(c, marked_before_ms, limit)
        )

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        async def work(connection: Any) -> None:
            await connection.execute(
                "DELETE FROM files WHERE object_key = ANY($1::varchar[]) AND marked_ms IS NOT NULL",
                list(keys),
            )

        await self._database.change(work)

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        return await self._database.read(lambda c: reading.list_files(c, after, limit))

    async def describe_coordinators(self) -> list[CoordinatorInfo]:
        return [await self._database.read(reading.counts)]

    async def known_topics(self) -> list[Uuid]:
        return await self._database.read(reading.known_topics)

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        logs = await self._database.read(lambda c: reading.logs(c, partitions))
        return [offsets.log_info(logs.get(partition)) for partition in partitions]

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)
