"""PlanRanges during retention, and the limit of its responses."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.assembly.bulk_access import BulkAccess
from skylog.broker.handlers import bulk_reads
from skylog.broker.observe.traffic import Traffic
from skylog.broker.partitions.factory import Partitions
from skylog.broker.partitions.pure import PurePartitions
from skylog.controller.image.topics import PartitionKind
from skylog.diskless.bulk import FROM_LOG_START, PlannedRange, PlannedSplit, RangeRequest
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import LogInfo
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import BULK_SPLITS_MAX
from skylog.wire.messages.plan_ranges_request import PlanPartition, PlanRangesRequest, PlanTopic

TOPIC = Uuid(b"topic-a---------")
NONE = ErrorCode.NONE


class Plane:
    """A partition of 100 batches of 10 records; each page has 20 of them. ``starts`` are the log's
    starts at each call."""

    def __init__(self, *starts: int, byte_size: int = 1000) -> None:
        self._starts = list(starts)
        self._byte_size = byte_size
        self.split_bytes: list[int] = []

    async def log_info(self, partitions: Sequence[Any]) -> list[LogInfo]:
        return [LogInfo(NONE, 0, 1000, self._byte_size) for _ in partitions]

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        (request,) = requests
        self.split_bytes.append(split_bytes)
        log_start = self._starts.pop(0) if len(self._starts) > 1 else self._starts[0]
        start = log_start if request.start_offset == FROM_LOG_START else request.start_offset
        if start < log_start:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
            return [PlannedRange(code, log_start_offset=log_start, high_watermark=1000)]
        end = min(start + 200, 1000)
        return [PlannedRange(NONE, [PlannedSplit(start, end, 20)], end, 1000, 1, log_start, 1000)]


def context_of(plane: Plane) -> Any:
    state: Any = SimpleNamespace(kind=PartitionKind.PURE)
    topic = SimpleNamespace(topic_id=TOPIC, diskless_enabled=True, partitions={0: state})
    image: Any = SimpleNamespace(topic=lambda _: topic)
    there = DisklessPartitions()
    there.assign("t", TOPIC, 0, 1, 0)
    engine: Any = SimpleNamespace(plane=plane, bulk=BulkAccess(), partitions=there)
    router: Any = None
    pure = PurePartitions(engine, image, router, 1, Traffic())
    services = SimpleNamespace(
        image=image,
        partitions=Partitions(image, {PartitionKind.PURE: pure}),
        diskless=engine,
        settings=SimpleNamespace(
            node=SimpleNamespace(log_dirs=["/tmp"]),
            diskless=SimpleNamespace(storage_url="s3://bucket"),
        ),
    )
    return SimpleNamespace(services=services, allowed=lambda _: True)


async def plan(plane: Plane, start: int, split_bytes: int = 1) -> Any:
    asked = PlanRangesRequest(split_bytes, [PlanTopic("t", [PlanPartition(0, start)])])
    response = await bulk_reads.plan_ranges(context_of(plane), asked)
    assert response.storage_url == "s3://bucket"
    return response.topics[0].partitions[0]


async def test_pages_are_put_together() -> None:
    answer = await plan(Plane(0), FROM_LOG_START)
    edges = [(split.start_offset, split.end_offset) for split in answer.splits]
    assert edges == [(at, at + 200) for at in range(0, 1000, 200)]
    assert (answer.error_code, answer.skipped_bytes, answer.high_watermark) == (NONE, 5, 1000)
    merged = await plan(Plane(0), FROM_LOG_START, 60)
    assert [split.end_offset for split in merged.splits] == [600, 1000]


async def test_what_was_planned_and_then_deleted_is_planned_anew() -> None:
    """``earliest`` follows the log start; an explicit offset stays as requested."""
    answer = await plan(Plane(0, 0, 500), FROM_LOG_START)
    edges = [(split.start_offset, split.end_offset) for split in answer.splits]
    assert edges == [(500, 700), (700, 900), (900, 1000)]
    assert (answer.error_code, answer.skipped_bytes, answer.log_start_offset) == (NONE, 3, 500)
    gone = await plan(Plane(0, 0, 500), 0)
    assert (gone.error_code, gone.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 500)
    assert gone.splits == []
    # A log start that moves behind the plan does not matter.
    kept = await plan(Plane(0, 100, 300), 0)
    assert (kept.error_code, len(kept.splits)) == (NONE, 5)


@pytest.mark.parametrize(
    ("byte_size", "expected"), [(BULK_SPLITS_MAX, 1), (BULK_SPLITS_MAX * 50 + 7, 50)]
)
async def test_an_answer_has_only_so_many_splits(byte_size: int, expected: int) -> None:
    plane = Plane(0, byte_size=byte_size)
    await plan(plane, FROM_LOG_START)
    assert set(plane.split_bytes) == {expected}
