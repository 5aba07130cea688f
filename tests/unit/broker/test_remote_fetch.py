"""Fetches and searches of partitions whose beginning is in the object store only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.partitions.classic import ClassicPartition
from skylog.broker.partitions.port import Budget, Found, Isolation, Reader
from skylog.broker.partitions.questions import Question
from skylog.broker.tiered.reads import RemoteReads
from skylog.controller.image.topics import PartitionKind
from skylog.diskless.bulk import RangeRequest
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.log.aborted import AbortedTransaction
from skylog.tiered.reading.reader import ReaderSettings
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.batch import Batch
from skylog.wire.messages.fetch_response import FetchResponse, PartitionData
from tests.unit.broker.support import World
from tests.unit.replication.support import state
from tests.unit.tiered.reading_world import (
    FIRST_MS,
    Reading,
    Remote,
    bytes_of,
    line,
    unavailable,
)
from tests.unit.tiered.remote_records import TOPIC_ID
from tests.waiting import eventually

LOCAL_START = 10
OTHERS = "others"


class Quota:
    def __init__(self) -> None:
        self.wait_ms = 0
        self.recorded = 0

    def throttle_ms(self, now_ms: int) -> int:
        return self.wait_ms

    def record(self, size: int, now_ms: int) -> None:
        self.recorded += size


class Tiered(World):
    """Partitions of ten remote and ten local records; each has a remote log of its own."""

    def __init__(self, folder: Path, partitions: int = 1, batch_bytes: int = 100) -> None:
        super().__init__()
        self.executor = InlineExecutor()
        self.remotes: dict[TopicIdPartition, Remote] = {}
        self.batches: list[Batch] = line(*[batch_bytes] * LOCAL_START)
        self.storage = Remote()
        self.reading = Reading(folder, self.storage)
        self.reading.reader._logs = self  # type: ignore[assignment]
        self.settings: Any = SimpleNamespace(
            fetch_wait_ms_max=20_000,
            list_offsets_timeout_ms=1000,
            fetch_bytes_per_second_max=1 << 60,
            fetch_window_count=11,
            fetch_window_seconds=1,
        )
        self.quota: Any = Quota()
        self.reads = RemoteReads(
            self.reading.reader, self.settings, self.reading.counts, self.reading.system
        )
        self.reads._quota = self.quota
        classic: Any = self.services.partitions.kinds[PartitionKind.CLASSIC]
        classic.remote = self.reads
        self.storage.put(self.batches)
        for index in range(partitions):
            self.tier("t", index)

    def tier(self, topic: str, index: int) -> None:
        partition = self.create(topic, index)
        partition.topic_id = TOPIC_ID
        for _ in range(2 * LOCAL_START):
            self.append(topic, index)
        log: Any = partition.log
        log.local_start = LOCAL_START
        log.companions = SimpleNamespace(epochs=[(0, 0)], assign_epoch=log.assign_epoch)

    # RemoteLogs: all partitions share one.

    def get(self, *place: Any) -> Any:  # also that of replicas
        return self.storage.get(place[0]) if len(place) == 1 else super().get(*place)

    async def ready(self, partition: TopicIdPartition) -> Any:
        return await self.storage.ready(partition)

    async def answer(self, *parts: tuple[str, int, int], **options: Any) -> FetchResponse:
        options.setdefault("partition_max_bytes", 100_000)
        found = self.begin(*parts, **options)
        return found if isinstance(found, FetchResponse) else await found

    async def one(self, offset: int, **options: Any) -> PartitionData:
        response = await self.answer(("t", 0, offset), **options)
        return response.responses[0].partitions[0]


def records(answer: PartitionData) -> bytes:
    found: Any = answer.records
    return b"".join(found.parts) if hasattr(found, "parts") else bytes(found)


@pytest.fixture
def world(tmp_path: Path) -> Tiered:
    return Tiered(tmp_path)


async def test_remote_records_come_with_the_logs_own_offsets(world: Tiered) -> None:
    answer = await world.one(3)
    assert records(answer) == bytes_of(world.batches[3:])
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (0, 20, 0)
    assert world.quota.recorded == len(records(answer))
    answer = await world.one(LOCAL_START)
    assert answer.records
    assert records(answer) != bytes_of(world.batches[:1])


async def test_all_remote_partitions_are_read_at_once(tmp_path: Path) -> None:
    world = Tiered(tmp_path, 6)
    world.storage.open.clear()
    parts = [("t", index, index + 1) for index in range(6)]
    fetch = asyncio.ensure_future(world.answer(*parts))
    await eventually(lambda: world.reading.reader.slots.taken == 6)
    world.storage.open.set()
    response = await fetch
    for answer in response.responses[0].partitions:
        assert records(answer) == bytes_of(world.batches[answer.partition_index + 1 :])


async def test_local_partitions_are_answered_with_remote_ones(world: Tiered) -> None:
    world.create(OTHERS)
    world.append(OTHERS)
    for order in ([("t", 0, 0), (OTHERS, 0, 0)], [(OTHERS, 0, 0), ("t", 0, 0)]):
        response = await world.answer(*order)
        assert all(answers.partitions[0].records for answers in response.responses)


async def test_a_remote_partition_counts_its_limit_against_the_budget(tmp_path: Path) -> None:
    world = Tiered(tmp_path, 3)
    limit = world.batches[0].size * 2
    parts = [("t", index, 0) for index in range(3)]
    response = await world.answer(*parts, max_bytes=limit + 10, partition_max_bytes=limit)
    sizes = [len(answer.records or b"") for answer in response.responses[0].partitions]
    assert sizes == [limit, 0, 0]
    # Only the first one may be larger than its limit.
    response = await world.answer(*parts, max_bytes=10**6, partition_max_bytes=1)
    sizes = [len(answer.records or b"") for answer in response.responses[0].partitions]
    assert sizes == [world.batches[0].size, 0, 0]


async def test_a_fetch_with_remote_partitions_does_not_wait_for_more_bytes(world: Tiered) -> None:
    answer = await world.one(9, min_bytes=10**6, wait_ms=60_000)
    assert records(answer) == bytes_of(world.batches[9:])


async def test_a_follower_is_told_and_nothing_is_noted_of_it(world: Tiered) -> None:
    partition = world.services.partitions.find("t", 0)
    assert isinstance(partition, ClassicPartition)
    partition.replica.update(state(replicas=[1, 2]))
    leader = partition.replica.leader
    assert leader is not None
    before = leader.followers[2].end_offset
    wanted: Any = SimpleNamespace(
        fetch_offset=4,
        partition_max_bytes=1000,
        last_fetched_epoch=-1,
        log_start_offset=0,
        current_leader_epoch=-1,
    )
    answer = partition.read(wanted, Reader(2), Budget(1000), is_new=True)
    assert isinstance(answer, PartitionData)
    assert answer.error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    assert (answer.high_watermark, answer.log_start_offset) == (20, 0)
    assert not answer.records
    assert leader.followers[2].end_offset == before < 4


async def test_too_late_is_empty_and_the_read_goes_on(world: Tiered) -> None:
    world.settings.fetch_wait_ms_max = 1
    world.storage.open.clear()
    answer = await world.one(0)
    assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 20)
    assert world.reading.counts.fetches_expired == 1
    world.storage.open.set()
    await eventually(lambda: len(world.reading.reader.chunks) == 1)
    assert records(await world.one(0)) == bytes_of(world.batches)


async def test_beyond_the_quota_a_partition_is_empty_and_others_are_served(world: Tiered) -> None:
    world.quota.wait_ms = 100
    world.create(OTHERS)
    world.append(OTHERS)
    response = await world.answer(("t", 0, 0), (OTHERS, 0, 0), wait_ms=1)
    first, second = (answers.partitions[0] for answers in response.responses)
    assert (first.error_code, first.records) == (0, b"")
    assert second.records
    assert world.reading.counts.fetch_throttle.count >= 1
    world.quota.wait_ms = 0
    assert (await world.one(0)).records


async def test_the_quota_is_a_rate_that_may_be_changed(world: Tiered) -> None:
    world.settings.fetch_bytes_per_second_max = 50
    reads = RemoteReads(
        world.reading.reader, world.settings, world.reading.counts, world.reading.system
    )
    classic: Any = world.services.partitions.kinds[PartitionKind.CLASSIC]
    classic.remote = reads
    assert (await world.one(0)).records
    assert (await world.one(0)).records == b""
    world.reading.clock.advance(60_000)
    assert (await world.one(0)).records
    assert (await world.one(0)).records == b""
    world.settings.fetch_bytes_per_second_max = 1 << 40
    reads.reconfigure(world.settings)
    assert (await world.one(0)).records


async def test_errors_are_those_of_their_partition(tmp_path: Path) -> None:
    world = Tiered(tmp_path, 2)
    world.storage.failures = [unavailable()]
    response = await world.answer(("t", 0, 0), ("t", 1, LOCAL_START))
    first, second = response.responses[0].partitions
    assert first.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (second.error_code, bool(second.records)) == (0, True)
    world.storage.known.clear()
    assert (await world.one(0)).error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    world.storage.known.set()
    (log,) = [part.log for key, part in world.partitions.items() if key == ("t", 0)]
    hole: Any = log
    hole.local_start = LOCAL_START + 2
    assert (await world.one(LOCAL_START)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.reading.counts.holes == 1


async def test_too_many_pending_reads_fail_that_partition_only(tmp_path: Path) -> None:
    world = Tiered(tmp_path, 3)
    world.reading.reader.configure(ReaderSettings(readers=1, pending_max=1))
    world.settings.fetch_wait_ms_max = 1
    world.storage.open.clear()
    response = await world.answer(*[("t", index, index) for index in range(3)])
    codes = [answer.error_code for answer in response.responses[0].partitions]
    assert codes == [0, 0, ErrorCode.UNKNOWN_SERVER_ERROR]
    world.storage.open.set()


async def test_what_was_deleted_while_it_was_read_is_out_of_range(world: Tiered) -> None:
    world.storage.open.clear()
    fetch = asyncio.ensure_future(world.one(0))
    await eventually(lambda: world.reading.reader.slots.taken == 1)
    world.partitions["t", 0].log.log_start_offset = LOCAL_START
    world.storage.logs.clear()
    world.storage.open.set()
    assert (await fetch).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_aborted_transactions_of_both_tiers_once_each(tmp_path: Path) -> None:
    world = Tiered(tmp_path)
    world.storage = world.reading.remote
    both = AbortedTransaction(8, 5, 12, 13)
    log: Any = world.partitions["t", 0].log
    asked: list[tuple[int, int]] = []

    def local(start: int, end: int, *, block: bool) -> list[AbortedTransaction]:
        asked.append((start, end))
        return [both, AbortedTransaction(9, 6, 15, 16)]

    log.aborted_transactions = local
    answer = await world.one(2, isolation_level=1)
    assert records(answer) == bytes_of(world.batches[2:])
    assert asked == [(2, LOCAL_START)]
    assert [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()] == [
        (5, 8),
        (6, 9),
    ]


async def test_a_local_segment_that_goes_during_a_read_hides_no_aborted_transaction(
    world: Tiered,
) -> None:
    log: Any = world.partitions["t", 0].log

    def local(start: int, end: int, *, block: bool) -> list[AbortedTransaction]:
        log.local_start += 2  # its list of aborted transactions is remote only now
        return []

    log.aborted_transactions = local
    answer = await world.one(2, isolation_level=1)
    assert (answer.error_code, answer.records) == (0, b"")
    log.aborted_transactions = lambda start, end, *, block: []
    assert (await world.one(2, isolation_level=1)).records


async def search(world: Tiered, timestamp: int, **options: Any) -> Found | KafkaError:
    partition = world.services.partitions.find("t", 0)
    found = partition.offset_for(timestamp, Isolation.UNCOMMITTED, **options)
    if isinstance(found, Question):
        (found,) = await found.resolver([found.asked])
    return found


async def test_a_search_by_time_goes_through_both_tiers(world: Tiered) -> None:
    log: Any = world.partitions["t", 0].log
    log.offset_for_timestamp = lambda timestamp, *, block: (timestamp, 15, 3)
    assert await search(world, FIRST_MS + 3500) == Found(FIRST_MS + 4000, 4, 0)
    assert await search(world, FIRST_MS + 9500) == Found(FIRST_MS + 9500, 15, 3)
    log.log_start_offset = 6
    assert await search(world, FIRST_MS) == Found(FIRST_MS + 6000, 6, 0)


async def test_a_local_segment_that_goes_during_a_search_is_not_passed_over(
    world: Tiered,
) -> None:
    log: Any = world.partitions["t", 0].log
    later = line(*[100] * 2, base=LOCAL_START)

    def local(timestamp: int, *, block: bool) -> tuple[int, int, int]:
        if log.local_start == LOCAL_START:
            world.storage.put(later)
            log.local_start += 2
        return timestamp, 15, 3

    log.offset_for_timestamp = local
    found = await search(world, FIRST_MS + 9500)
    assert found == Found(FIRST_MS + 10_000, LOCAL_START, 0)


async def test_a_search_that_is_not_done_in_time(world: Tiered) -> None:
    world.storage.open.clear()
    found = await search(world, FIRST_MS, timeout_ms=1)
    assert isinstance(found, KafkaError)
    assert found.code is ErrorCode.REQUEST_TIMED_OUT
    assert world.reading.counts.list_offsets_expired == 1
    world.storage.known.clear()
    found = await search(world, FIRST_MS + 1)
    assert isinstance(found, KafkaError)
    assert found.code is ErrorCode.REPLICA_NOT_AVAILABLE
    world.storage.open.set()


async def test_a_plan_waits_until_it_is_known_what_is_remote(world: Tiered) -> None:
    partition = world.services.partitions.find("t", 0)
    world.storage.known.clear()
    question = partition.plan(RangeRequest(TOPIC_ID, 0), 1000)
    (planned,) = await question.resolver([question.asked])
    assert planned.error is ErrorCode.REPLICA_NOT_AVAILABLE
    world.storage.known.set()
    log: Any = world.partitions["t", 0].log
    log.segments, log.size = [], 0
    question = partition.plan(RangeRequest(TOPIC_ID, 0), 1000)
    (planned,) = await question.resolver([question.asked])
    assert (planned.error, planned.splits[0].start_offset) == (0, 0)
    assert planned.splits[-1].end_offset == LOCAL_START
    assert partition.byte_size() == len(bytes_of(world.batches))
