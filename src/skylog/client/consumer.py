"""A consumer: reads partitions that were given to it or assigned by its group, and commits.

One fetch per leader is in flight between polls. The next one is sent once everything from that
leader has been returned, so a slow caller holds at most one response per leader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from skylog.client.cluster import Cluster
from skylog.client.fetch_session import Wanted
from skylog.client.fetcher import Fetched, Fetcher, FetchSettings
from skylog.client.group import GroupMember, GroupSettings
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import (
    EARLIEST,
    LATEST,
    CommittedOffset,
    commit_offsets,
    fetch_committed,
    list_offsets,
)
from skylog.client.records import ConsumerRecord
from skylog.kernel.errors import ErrorCode, KafkaError

_RESETS: Final = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """``auto_offset_reset`` is earliest, latest or none; without a group nothing is committed."""

    group: GroupSettings | None = None
    auto_offset_reset: str = "latest"
    auto_commit_ms: int | None = 5000
    poll_records_max: int = 500
    fetch: FetchSettings = field(default_factory=FetchSettings)


class Consumer:
    """Reads records. Use as ``async with``, or call ``close``."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or ConsumerSettings()
        self._fetcher = Fetcher(cluster, self._settings.fetch)
        group = self._settings.group
        self._member = GroupMember(cluster, group) if group is not None else None
        self._topics: frozenset[str] = frozenset()
        self._positions: dict[TopicPartition, int | None] = {}
        self._resets: dict[TopicPartition, int] = {}
        self._ready: deque[ConsumerRecord] = deque()
        self._ends: dict[TopicPartition, int] = {}
        self._commit_due = 0.0

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # What to read -------------------------------------------------------------------------

    def subscribe(self, topics: Collection[str]) -> None:
        """Read topics as a member of the group."""
        if self._member is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "subscribing needs a group id")
        self._topics = frozenset(topics)
        self._member.rejoin = True

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions."""
        self._topics = frozenset()
        self._take(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at an offset."""
        self._require(partition)
        self._forget_ready(partition)
        self._positions[partition] = offset
        self._resets.pop(partition, None)

    def seek_to_time(self, partition: TopicPartition, time: int) -> None:
        """Continue at a time in ms, or at EARLIEST or LATEST."""
        self._require(partition)
        self._forget_ready(partition)
        self._positions[partition] = None
        self._resets[partition] = time

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._positions)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record to be returned; None before it is known."""
        self._require(partition)
        return self._handed_out()[partition]

    def _handed_out(self) -> dict[TopicPartition, int | None]:
        """The positions, not counting what is fetched but not yet returned."""
        found = dict(self._positions)
        for record in reversed(self._ready):
            found[TopicPartition(record.topic, record.partition)] = record.offset
        return found

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The end of the partition in the last response."""
        return self._ends.get(partition)

    def _require(self, partition: TopicPartition) -> None:
        if partition not in self._positions:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} is not assigned"
            )

    def _take(self, partitions: Iterable[TopicPartition]) -> None:
        self._positions = dict.fromkeys(partitions)
        self._resets.clear()
        self._ready.clear()
        self._ends.clear()

    def _forget_ready(self, partition: TopicPartition) -> None:
        kept = [r for r in self._ready if (r.topic, r.partition) != partition]
        self._ready = deque(kept)

    # Reading ------------------------------------------------------------------------------

    async def poll(
        self, timeout_ms: int = 1000, records_max: int | None = None
    ) -> list[ConsumerRecord]:
        """Records that arrive within the time, in order by partition; may be empty."""
        clock = self._cluster.system.clock
        deadline = clock.monotonic() + timeout_ms / 1000
        limit = records_max or self._settings.poll_records_max
        await self._keep_membership()
        await self._commit_if_due()
        while True:
            if self._ready:
                return [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
            left = deadline - clock.monotonic()
            if left <= 0 or (self._member is not None and self._member.rejoin and self._topics):
                return []
            try:
                async with asyncio.timeout(left):
                    await self._find_positions()
                    await self._fetch(left)
            except TimeoutError:
                continue

    async def _fetch(self, seconds: float) -> None:
        wanted = {key: offset for key, offset in self._positions.items() if offset is not None}
        for answer in await self._fetcher.fetch(wanted, seconds):
            self._accept(answer)

    def _accept(self, answer: Fetched) -> None:
        """Use a fetch result, unless the position was changed meanwhile."""
        partition = answer.partition
        if self._positions.get(partition) != answer.asked.offset:
            return
        if answer.error is None:
            self._ends[partition] = answer.high_watermark
            self._positions[partition] = answer.next_offset
            self._ready += answer.records
        elif answer.error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition, answer.asked, answer.error)
        elif not answer.error.retriable or answer.error.code is ErrorCode.CORRUPT_MESSAGE:
            raise answer.error

    def _out_of_range(self, partition: TopicPartition, asked: Wanted, error: KafkaError) -> None:
        reset = _RESETS.get(self._settings.auto_offset_reset)
        if reset is None:
            raise KafkaError(error.code, f"partition {partition} has no offset {asked.offset}")
        self._positions[partition] = None
        self._resets[partition] = reset

    async def _find_positions(self) -> None:
        """The starting position: as given, else the group's committed offset, else by the reset
        rule."""
        missing = [key for key, offset in self._positions.items() if offset is None]
        group = self._settings.group
        open_ended = [key for key in missing if key not in self._resets]
        if open_ended and group is not None:
            stable = self._settings.fetch.committed_only
            found = await fetch_committed(self._cluster, group.group_id, open_ended, stable=stable)
            for key, committed in found.items():
                self._positions[key] = committed.offset
        reset = _RESETS.get(self._settings.auto_offset_reset)
        times: dict[TopicPartition, int] = {}
        for key in missing:
            if self._positions.get(key) is None:
                time = self._resets.get(key, reset)
                if time is None:
                    raise KafkaError(
                        ErrorCode.OFFSET_OUT_OF_RANGE, f"partition {key} has no committed offset"
                    )
                times[key] = time
        if times:
            await self._reset(times)

    async def _reset(self, times: Mapping[TopicPartition, int]) -> None:
        isolation = int(self._settings.fetch.committed_only)
        found = await list_offsets(self._cluster, times, isolation)
        past_end = {
            key: LATEST
            for key, at in found.items()
            if not isinstance(at, KafkaError) and at.offset < 0
        }
        if past_end:  # no record is that recent: continue at the end
            found |= await list_offsets(self._cluster, past_end, isolation)
        for key, at in found.items():
            if isinstance(at, KafkaError):
                raise at
            if key in self._positions and self._positions[key] is None:
                self._positions[key] = at.offset
                self._resets.pop(key, None)

    # The group ----------------------------------------------------------------------------

    async def _keep_membership(self) -> None:
        member = self._member
        if member is None or not self._topics:
            return
        if member.failure is not None:
            raise member.failure
        if member.rejoin:
            if self._positions:
                await self._commit_quietly()
            self._take(await member.join(self._topics))

    async def _commit_if_due(self) -> None:
        interval_ms = self._settings.auto_commit_ms
        if self._settings.group is None or interval_ms is None or not self._positions:
            return
        now = self._cluster.system.clock.monotonic()
        if now >= self._commit_due:
            self._commit_due = now + interval_ms / 1000
            await self._commit_quietly()

    async def _commit_quietly(self) -> None:
        """Failed automatic commits are retried by the next one."""
        if self._settings.auto_commit_ms is None:
            return
        try:
            await self.commit()
        except KafkaError as error:
            if self._member is not None:
                self._member.note(error)

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Commit offsets, or (None) the positions: returned records count as processed."""
        group = self._settings.group
        if group is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "committing needs a group id")
        if offsets is None:
            offsets = {
                key: CommittedOffset(offset)
                for key, offset in self._handed_out().items()
                if offset is not None
            }
        if not offsets:
            return
        who = self._member.identity if self._member is not None and self._topics else None
        failed = await commit_offsets(self._cluster, group.group_id, offsets, who)
        for error in failed.values():
            if self._member is not None:
                self._member.note(error)
            raise error

    async def close(self) -> None:
        """Commit if that is automatic, leave the group, stop fetching."""
        await self._fetcher.close()
        if self._settings.group is not None and self._positions:
            await self._commit_quietly()
        if self._member is not None:
            await self._member.leave()
        self._take(())
