"""What the scan for orphans is told of diskless partitions, whose WAL a coordinator knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.tiered.registry import ClusterRegistry
from skylog.diskless.plane import LogInfo
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.claim import BucketClaim
from skylog.objects.memory import MemoryStore
from skylog.tiered.layout.manifest import encode_manifest, plain_manifest
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.orphans import OrphanScanner, needed
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from skylog.wire.messages.describe_remote_log_response import (
    DescribedRemoteSegment,
    DescribeRemoteLogResponse,
)
from tests.unit.tiered.remote_records import PARTITION, TOPIC, History, segment

HERE, ELSEWHERE = 1, 2
INFO = LogInfo(ErrorCode.NONE, 50, 1000, 800, 200)


class Cluster:
    """One diskless partition: segments 0–99 and 100–199 are remote, the WAL has the rest."""

    def __init__(self, leader: int = HERE) -> None:
        self.history = History()
        self.history.copied(segment(1, 0, 99), segment(2, 100, 199))
        self.history.started(segment(3, 200, 299))
        self.leader = leader
        self.info = INFO
        self.is_followed = True
        self.error = ErrorCode.NONE
        self.asked: list[str] = []
        state = SimpleNamespace(leader=leader, writes_diskless=True)
        self.topic = SimpleNamespace(name=TOPIC, partitions={0: state})
        self.registry = ClusterRegistry(HERE, *([self] * 5))  # type: ignore[arg-type]

    def topic_by_id(self, topic_id: object) -> Any:
        return self.topic if topic_id == PARTITION.topic_id else None

    def get(self, partition: object) -> Any:
        assert partition == PARTITION, "no replica is asked for"
        return self.history.log if self.is_followed else None

    async def log_info(self, partitions: list[Any]) -> list[LogInfo]:
        assert partitions == [PARTITION]
        self.asked.append("coordinator")
        return [self.info]

    async def send(self, node_id: int, request: DescribeRemoteLogRequest, *, lane: str) -> Any:
        assert node_id == ELSEWHERE
        self.asked.append("leader")
        after = request.start_offset, bytes(request.after_segment_id)
        page = self.history.log.page(*after, 1, finished_only=False)
        return DescribeRemoteLogResponse(
            error_code=self.error,
            has_more=page[0].id != segment(3, 200, 299).id if page else False,
            segments=[
                DescribedRemoteSegment(
                    segment_id=one.id,
                    start_offset=one.start_offset,
                    end_offset=one.end_offset,
                    remote_log_segment_state=one.state,
                )
                for one in page
            ],
        )


@pytest.mark.parametrize("leader", [HERE, ELSEWHERE])
async def test_the_leader_knows_the_segments_and_the_coordinator_the_wal(leader: int) -> None:
    cluster = Cluster(leader)
    known = await cluster.registry.known_segments(PARTITION)
    assert known is not None
    assert known.ids == {segment(number, 0, 0).id for number in (1, 2, 3)}
    assert known.log_start_offset == 50
    assert sorted(known.ranges) == [(0, 100), (100, 200), (200, 1000)]
    # First the WAL: what is copied and pruned meanwhile is in either answer.
    assert cluster.asked[0] == "coordinator"
    assert not needed(0, 999, known)
    assert needed(0, 1000, known)


async def test_who_does_not_say_keeps_all() -> None:
    cluster = Cluster()
    cluster.is_followed = False
    assert await cluster.registry.known_segments(PARTITION) is None
    assert await Cluster(-1).registry.known_segments(PARTITION) is None
    cluster = Cluster()
    cluster.info = LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await cluster.registry.known_segments(PARTITION) is None
    cluster = Cluster(ELSEWHERE)
    cluster.error = ErrorCode.REPLICA_NOT_AVAILABLE
    with pytest.raises(KafkaError):
        await cluster.registry.known_segments(PARTITION)
    assert await cluster.registry.known_segments(PARTITION._replace(partition_index=7)) is None


@pytest.mark.parametrize("leader", [HERE, ELSEWHERE])
async def test_a_scan_leaves_consolidated_segments_and_takes_orphans(leader: int) -> None:
    cluster, store, clock = Cluster(leader), MemoryStore(), ManualClock()
    known, cut = [segment(1, 0, 99), segment(2, 100, 199)], segment(8, 200, 250)
    copy = segment(9, 0, 99)
    for one in (*known, copy):
        await put(store, one)
    await put(store, cut, whole=False)  # a copy that was given up
    alone = segment(7, 950, 1100)  # nothing else has its offsets
    await put(store, alone)
    claim = BucketClaim(store, "cluster", "tiered.storage.url")
    scanner = OrphanScanner(claim, cluster.registry, clock, grace_ms=0)
    clock.advance(10**12)
    await scanner.run_once()
    assert scanner.stats.deleted == 2
    left = {info.key.segment.segment_id async for info in store.list("") if info.key.segment}
    assert left == {one.id for one in (*known, alone)}
    # The WAL is all that has the rest: while it is unknown, nothing goes.
    await put(store, copy)
    cluster.info = LogInfo(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await scanner.run_once()
    assert scanner.stats.deleted == 2


async def test_a_pruned_copy_that_the_leader_has_forgotten_is_kept() -> None:
    """Its metadata is lost, and the WAL has gone on its word."""
    cluster, store, clock = Cluster(), MemoryStore(), ManualClock()
    for number, start in ((1, 0), (2, 100)):
        await put(store, segment(number, start, start + 99))
    cluster.history.update(segment(2, 100, 199), SegmentState.DELETE_STARTED)
    cluster.history.update(segment(2, 100, 199), SegmentState.DELETE_FINISHED)
    scanner = OrphanScanner(
        BucketClaim(store, "cluster", "tiered.storage.url"), cluster.registry, clock, grace_ms=0
    )
    clock.advance(10**12)
    await scanner.run_once()
    assert (scanner.stats.deleted, scanner.stats.needed) == (0, 1)


async def put(store: MemoryStore, one: RemoteSegment, *, whole: bool = True) -> None:
    sizes = dict.fromkeys(IndexType, 1)
    layout = AivenLayout()
    await store.put(layout.log_key(one), bytes(one.size))
    if whole:
        await store.put(layout.index_key(one, IndexType.OFFSET), bytes(5))
        manifest = encode_manifest(plain_manifest(one, 4096, sizes))
        await store.put(layout.manifest_key(one), manifest)
