"""The wire APIs: every error in its item, order kept, timeouts of unknown outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skylog.diskless.coordinator.api import DisklessApi
from skylog.diskless.coordinator.wire import commit_batch
from skylog.diskless.planes.topic import TopicPlane
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.codec import decode, encode
from skylog.wire.messages.diskless_commit_file_request import (
    DisklessCommitFileRequest,
)
from skylog.wire.messages.diskless_create_partitions_request import (
    DisklessCreatableTopic,
    DisklessCreatePartitionsRequest,
)
from skylog.wire.messages.diskless_delete_records_request import (
    DisklessDeleteRecordsPartition,
    DisklessDeleteRecordsRequest,
    DisklessDeleteRecordsTopic,
)
from skylog.wire.messages.diskless_delete_topics_request import (
    DisklessDeletableTopic,
    DisklessDeleteTopicsRequest,
)
from skylog.wire.messages.diskless_describe_files_request import (
    DisklessDescribeFilesRequest,
    DisklessFile,
)
from skylog.wire.messages.diskless_find_batches_request import (
    DisklessFindBatchesPartition,
    DisklessFindBatchesRequest,
    DisklessFindBatchesTopic,
)
from skylog.wire.messages.diskless_list_offsets_request import (
    DisklessListOffsetsPartition,
    DisklessListOffsetsRequest,
    DisklessListOffsetsTopic,
)
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, Home, home

STRANGER = Uuid(b"nobody-knows-it-")
NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Home, DisklessApi]]:
    """Two coordinators, with alternating partitions of one topic."""
    async with home() as opened:
        await opened.lead(0, 1)

        def coordinator_of(partition: tuple[Uuid, int]) -> int | None:
            return partition[1] % 2 if partition[0] == TOPIC else None

        plane = TopicPlane(opened.coordinators, coordinator_of, opened.rng)
        api = DisklessApi(plane, opened.coordinators, coordinator_of)
        await api.create_partitions(create(2))
        yield opened, api


def create(count: int, topic_id: Uuid = TOPIC) -> DisklessCreatePartitionsRequest:
    return DisklessCreatePartitionsRequest([DisklessCreatableTopic(topic_id, "a", count)])


def commit(opened: Home, *where: tuple[Uuid, int], **more: object) -> DisklessCommitFileRequest:
    file = opened.file(*((partition, 2) for partition in where))
    batches = [commit_batch(batch) for batch in file.batches]
    fields = {"owner_ids": [1, 0]} | more
    return DisklessCommitFileRequest(file.object_key, 1, file.size, batches=batches, **fields)


def find(*wanted: tuple[tuple[Uuid, int], int], **more: int) -> DisklessFindBatchesRequest:
    topics = [
        DisklessFindBatchesTopic(topic_id, [DisklessFindBatchesPartition(index, offset, 1 << 20)])
        for (topic_id, index), offset in wanted
    ]
    return DisklessFindBatchesRequest(1 << 20, 0, topics, **more)


async def test_partitions_are_created_up_to_the_total() -> None:
    # DC-06, Q6
    async with served() as (opened, api):
        response = await api.create_partitions(create(5))
        assert [topic.error_code for topic in response.topics] == [NONE]
        assert opened.partitions[0].log.log_end_offset == 3
        assert opened.partitions[1].log.log_end_offset == 2
        response = await api.create_partitions(create(1, STRANGER))
        assert [topic.error_code for topic in response.topics] == [UNKNOWN]
        request = create(5)
        request.coordinator_id = 7
        response = await api.create_partitions(request)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.NOT_COORDINATOR]


async def test_a_commit_succeeds_in_part() -> None:
    # DC-08, DC-09, DC-10, DC-13, DC-17
    async with served() as (opened, api):
        request = commit(opened, T0, (STRANGER, 0), T1, T0)
        request = decode(type(request), encode(request, 0), 0)
        response = await api.commit_file(request)
        told = [
            (b.error_code, b.assigned_base_offset, b.log_start_offset) for b in response.batches
        ]
        assert told == [(NONE, 0, 0), (UNKNOWN, -1, -1), (NONE, 0, 0), (NONE, 2, 0)]
        assert {b.log_append_time for b in response.batches} == {-1}
        found = await api.find_batches(find((T0, 0), (T1, 0), ((STRANGER, 0), 0), (T1, 9)))
        found = decode(type(found), encode(found, 0), 0)
        parts = [topic.partitions[0] for topic in found.topics]
        codes = [NONE, NONE, UNKNOWN, ErrorCode.OFFSET_OUT_OF_RANGE]
        assert [part.error_code for part in parts] == codes
        assert [part.high_watermark for part in parts] == [4, 2, -1, 2]
        assert [b.base_offset for b in parts[0].batches] == [0, 2]
        assert {b.object_key for b in parts[0].batches} == {request.object_key}


async def test_the_owners_must_name_every_coordinator() -> None:
    # Q8
    async with served() as (opened, api):
        response = await api.commit_file(commit(opened, T0, T1, owner_ids=[0]))
        assert [b.error_code for b in response.batches] == [ErrorCode.INVALID_REQUEST] * 2
        assert opened.partitions[0].log.log_end_offset == 1


async def test_deleting_and_listing() -> None:
    # DC-14, DC-15, DC-16
    async with served() as (opened, api):
        await api.commit_file(commit(opened, T0, T1, T0))
        delete = DisklessDeleteRecordsRequest(
            [
                DisklessDeleteRecordsTopic(
                    TOPIC,
                    [
                        DisklessDeleteRecordsPartition(0, 1),
                        DisklessDeleteRecordsPartition(1, 9),
                        DisklessDeleteRecordsPartition(4, 0),
                    ],
                )
            ]
        )
        deleted = (await api.delete_records(delete)).topics[0].partitions
        codes = [NONE, ErrorCode.OFFSET_OUT_OF_RANGE, UNKNOWN]
        assert [part.error_code for part in deleted] == codes
        assert [part.low_watermark for part in deleted] == [1, -1, -1]
        asked = [-1, -2, -3, -4, -5, opened.clock.now_ms()]
        parts = [DisklessListOffsetsPartition(0, timestamp) for timestamp in asked]
        listed = await api.list_offsets(
            DisklessListOffsetsRequest([DisklessListOffsetsTopic(TOPIC, parts)])
        )
        assert [part.offset for part in listed.topics[0].partitions] == [4, 1, 1, 1, -1, 1]


async def test_a_prune_is_a_deletion_from_wal_objects_only() -> None:
    async with served() as (opened, api):
        request = commit(opened, T0, T1, T0)
        await api.commit_file(request)
        parts = [DisklessDeleteRecordsPartition(*one) for one in ((0, 2), (1, 9), (4, 0))]
        topics = [DisklessDeleteRecordsTopic(TOPIC, parts)]
        prune = DisklessDeleteRecordsRequest(topics, wal_only=True)
        for _ in range(2):
            pruned = (await api.delete_records(prune)).topics[0].partitions
            codes = [NONE, ErrorCode.OFFSET_OUT_OF_RANGE, UNKNOWN]
            assert [part.error_code for part in pruned] == codes
            assert [part.low_watermark for part in pruned] == [2, -1, -1]
        find = [DisklessFindBatchesPartition(index, 0, 0) for index in (0, 1, 4)]
        found = await api.find_batches(
            DisklessFindBatchesRequest(0, 1, [DisklessFindBatchesTopic(TOPIC, find)])
        )
        told = [
            (part.error_code, part.log_start_offset, part.high_watermark, part.wal_start_offset)
            for part in found.topics[0].partitions
        ]
        moved = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
        assert told == [(moved, 0, 4, 2), (NONE, 0, 2, 0), (UNKNOWN, -1, -1, -1)]


async def test_files_are_described_with_the_oldest() -> None:
    # DC-19, Q21, Q22
    async with served() as (opened, api):
        first_ms = opened.clock.now_ms()
        request = commit(opened, T0)
        await api.commit_file(request)
        opened.clock.advance(50)
        await api.commit_file(commit(opened, T1))
        wanted = [DisklessFile(request.object_key), DisklessFile(opened.key())]
        response = await api.describe_files(DisklessDescribeFilesRequest(wanted))
        told = [(file.error_code, file.has_live_batches) for file in response.files]
        assert told == [(NONE, True), (ErrorCode.RESOURCE_NOT_FOUND, False)]
        assert response.oldest_file_timestamp_ms == first_ms
        response = await api.describe_files(DisklessDescribeFilesRequest(wanted, 1))
        assert [file.error_code for file in response.files] == [ErrorCode.RESOURCE_NOT_FOUND] * 2
        response = await api.describe_files(DisklessDescribeFilesRequest(wanted, 5))
        assert {file.error_code for file in response.files} == {ErrorCode.NOT_COORDINATOR}


async def test_topics_are_deleted() -> None:
    # DC-07
    async with served() as (opened, api):
        request = commit(opened, T0, T1)
        await api.commit_file(request)
        topics = [DisklessDeletableTopic(TOPIC), DisklessDeletableTopic(STRANGER)]
        response = await api.delete_topics(DisklessDeleteTopicsRequest(topics))
        assert [topic.error_code for topic in response.responses] == [NONE, NONE]
        found = await api.find_batches(find((T0, 0)))
        assert found.topics[0].partitions[0].error_code == UNKNOWN
        files = [DisklessFile(request.object_key)]
        described = await api.describe_files(DisklessDescribeFilesRequest(files))
        assert [(f.error_code, f.has_live_batches) for f in described.files] == [(NONE, False)]


async def test_a_request_that_takes_too_long_has_an_unknown_outcome() -> None:
    # DC-04, Q12
    async with served() as (opened, api):
        opened.partitions[0].held = True
        request = commit(opened, T0, timeout_ms=1)
        response = await api.commit_file(request)
        assert [b.error_code for b in response.batches] == [ErrorCode.REQUEST_TIMED_OUT]
        opened.partitions[0].held = False
        opened.partitions[0].commit()
        request.timeout_ms = 60_000
        (result,) = (await api.commit_file(request)).batches
        assert (result.error_code, result.assigned_base_offset) == (NONE, 0)


async def test_a_broker_without_coordinators_says_so() -> None:
    # DC-30, Q5
    async with served() as (opened, api):
        opened.coordinators.partition_resigned(1)
        found = await api.find_batches(find((T0, 0), (T1, 0)))
        codes = [topic.partitions[0].error_code for topic in found.topics]
        assert codes == [NONE, ErrorCode.NOT_COORDINATOR]
        opened.coordinators.partition_resigned(0)
        response = await api.commit_file(commit(opened, T0))
        assert [b.error_code for b in response.batches] == [ErrorCode.NOT_COORDINATOR]


@pytest.mark.parametrize("commits", [True, False])
async def test_a_find_may_wait_for_a_commit(commits: bool) -> None:
    async with served() as (opened, api):
        waits = 60_000 if commits else 1
        waiting = asyncio.ensure_future(api.find_batches(find((T1, 0), wait_ms=waits)))
        await asyncio.sleep(0)
        if commits:
            await api.commit_file(commit(opened, T0))
            assert not waiting.done()
            await api.commit_file(commit(opened, T1))
        found = (await waiting).topics[0].partitions[0]
        assert len(found.batches) == commits
