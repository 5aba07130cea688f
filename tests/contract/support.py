"""Helpers of the contract suite of control planes.

A plane joins the suite with one entry in ``STAGES`` of ``stages.py``.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from skylog.diskless.batch import BatchToCommit
from skylog.diskless.plane import (
    CommitResult,
    ControlPlane,
    FileToCommit,
    FindRequest,
    FindResult,
    TopicPartition,
)
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from tests.unit.diskless.batches import to_commit

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
OLD_EPOCH = ErrorCode.INVALID_PRODUCER_EPOCH
TIERED = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
NOT_FOUND = ErrorCode.RESOURCE_NOT_FOUND

RULES = PlaneRules()
TOPIC = Uuid(b"topic-a---------")
OTHER = Uuid(b"topic-b---------")
STRANGER = Uuid(b"nobody-knows-it-")
T0: TopicPartition = (TOPIC, 0)
T1: TopicPartition = (TOPIC, 1)
B0: TopicPartition = (OTHER, 0)
PLENTY = 1 << 30


def batch(partition: TopicPartition = T0, count: int = 1, size: int = 100, **more: Any) -> Batch:
    return Batch(partition, count, size, more)


def sent(
    first: int,
    count: int = 1,
    *,
    producer: int = 7,
    epoch: int = 0,
    to: TopicPartition = T0,
    **more: Any,
) -> Batch:
    """A batch of an idempotent producer."""
    numbers = {
        "producer_id": producer,
        "producer_epoch": epoch,
        "base_sequence": first,
        "last_sequence": (first + count - 1) & 0x7FFFFFFF,
    }
    return Batch(to, count, 100, numbers | more)


@dataclass(frozen=True)
class Batch:
    """A batch before it has a place in a file."""

    partition: TopicPartition
    count: int
    size: int
    more: dict[str, Any] = field(default_factory=dict)

    def at(self, object_key: str, byte_offset: int, now_ms: int) -> BatchToCommit:
        fields = {
            "topic_id": self.partition[0],
            "partition": self.partition[1],
            "byte_offset": byte_offset,
            "byte_size": self.size,
            "base_offset": 0,
            "last_offset": self.count - 1,
            "batch_max_timestamp": now_ms,
        }
        return to_commit(object_key, **(fields | self.more))


class Scene:
    """One plane, a clock that stands still, and the partitions T0, T1 and B0."""

    def __init__(
        self,
        plane: ControlPlane,
        clock: ManualClock,
        another: Callable[[], Awaitable[ControlPlane]],
    ) -> None:
        self.plane = plane
        self.clock = clock
        # The same plane as another broker sees it.
        self.another = another
        self._rng = random.Random(4)

    async def create(self) -> None:
        await self.plane.create_partitions([(TOPIC, "a", 2), (OTHER, "b", 1)])

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    def key(self, created_ms: int | None = None) -> str:
        return ObjectKey.new("wal", created_ms or self.now, self._rng).text

    def staged(self, created_ms: int | None = None) -> str:
        return ObjectKey.staged("a1" * 8, created_ms or self.now, self._rng).text

    def file(self, *batches: Batch, key: str | None = None, tail: int = 0) -> FileToCommit:
        placed = []
        end = 1  # behind the header byte
        key = key or self.key()
        for one in batches:
            placed.append(one.at(key, end, self.now))
            end += one.size
        return FileToCommit(object_key=key, size=end + tail, batches=placed, coordinator_ids=(0,))

    async def commit(self, *batches: Batch, key: str | None = None) -> list[CommitResult]:
        return await self.plane.commit_file(self.file(*batches, key=key))

    async def offsets(self, *batches: Batch) -> list[int]:
        """Commit; every batch must be accepted."""
        results = await self.commit(*batches)
        assert [r.error for r in results] == [NONE] * len(batches)
        return [r.assigned_base_offset for r in results]

    async def errors(self, *batches: Batch) -> list[ErrorCode]:
        return [r.error for r in await self.commit(*batches)]

    async def find(
        self,
        *wanted: tuple[TopicPartition, int],
        partition_bytes: int = PLENTY,
        fetch_bytes: int = PLENTY,
        batches: int = 0,
    ) -> list[FindResult]:
        requests = [FindRequest(*tp, offset, partition_bytes) for tp, offset in wanted]
        return await self.plane.find_batches(requests, fetch_bytes, batches)

    async def bases(self, partition: TopicPartition = T0, offset: int = 0) -> list[int]:
        """The base offsets of the batches from ``offset`` on."""
        (found,) = await self.find((partition, offset))
        assert found.error == NONE, found
        return [b.stamp.base_offset for b in found.batches]

    async def info(self, partition: TopicPartition = T0) -> tuple[int, int, int]:
        """Log start, high watermark, bytes."""
        (found,) = await self.plane.log_info([partition])
        assert found.error == NONE
        return found[1:4]

    async def wal_start(self, partition: TopicPartition = T0) -> int:
        (found,) = await self.plane.log_info([partition])
        return found.wal_start_offset

    async def start_of(self, partition: TopicPartition = T0) -> int:
        return (await self.info(partition))[0]

    async def retain(
        self,
        partition: TopicPartition = T0,
        *,
        limit_bytes: int = -1,
        limit_ms: int = -1,
        batches: int = 1000,
    ) -> tuple[int, int, int]:
        """Batches and bytes deleted, log start."""
        (result,) = await self.plane.enforce_retention(
            [(*partition, limit_bytes, limit_ms)], batches
        )
        assert result.error == NONE
        return result[1:]

    async def listed(
        self, timestamp: int, partition: TopicPartition = T0, **more: int
    ) -> tuple[int, int]:
        """Timestamp and offset."""
        (result,) = await self.plane.list_offsets([(*partition, timestamp)], **more)
        assert result.error == NONE
        return result.timestamp, result.offset

    async def live(self, key: str) -> tuple[ErrorCode, bool]:
        (described,) = await self.plane.describe_files([key])
        return described.error, described.has_live_batches

    async def deletable(self) -> list[str]:
        return await self.plane.files_to_delete(self.now + 1, 0)


Check = Callable[[Scene], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Add a check to the suite; its name is what a failure shows."""
    assert function.__name__ not in CHECKS
    CHECKS[function.__name__] = function
    return function
