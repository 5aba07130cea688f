"""The consumer: positions, fetches, resets, commits and its group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skylog.client.assignor import decode_assignment
from skylog.client.consumer import Consumer, ConsumerSettings
from skylog.client.fetcher import FetchSettings
from skylog.client.group import GroupSettings
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST, CommittedOffset
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.apis import ApiKey
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from skylog.wire.messages.leave_group_response import LeaveGroupResponse
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skylog.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skylog.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from skylog.wire.messages.sync_group_response import SyncGroupResponse
from skylog.wire.records import encode_batch
from tests.unit.client.support import HANG_UP, TOPIC_ID, FakeBroker, cluster_of, running

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
GROUP = GroupSettings("g", heartbeat_interval_ms=5, rebalance_timeout_ms=1000)


class Source(FakeBroker):
    """Two partitions with records, sessions, and one consumer group."""

    def __init__(self, *ends: int) -> None:
        super().__init__()
        self.starts = [0, 0]
        self.ends = list(ends or (4, 3))
        self.wanted: dict[int, int] = {}
        self.failures: dict[int, list[ErrorCode]] = {}
        self.committed: dict[int, int] = {}
        self.refuse_commits = ErrorCode.NONE
        self.generation = 0
        self.beats: list[ErrorCode] = []
        self.left = 0
        for name in (
            "fetch",
            "list_offsets",
            "find_coordinator",
            "offset_fetch",
            "offset_commit",
            "join_group",
            "sync_group",
            "heartbeat",
            "leave_group",
        ):
            self.scripts[ApiKey[name.upper()]] = getattr(self, name)

    async def fetch(self, request: Any) -> FetchResponse:
        if not request.session_epoch:
            self.wanted.clear()
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                del self.wanted[index]
        for topic in request.topics:
            self.wanted.update({p.partition: p.fetch_offset for p in topic.partitions})
        parts = [self._partition(index, offset) for index, offset in self.wanted.items()]
        said = [part for part in parts if part.records or part.error_code]
        if not said:
            await asyncio.sleep(0.002)
        topic = FetchableTopicResponse("t", TOPIC_ID, said)
        return FetchResponse(session_id=7, responses=[topic] if said else [])

    def _partition(self, index: int, offset: int) -> PartitionData:
        failures = self.failures.get(index)
        if failures:
            return PartitionData(index, failures.pop(0))
        if not self.starts[index] <= offset <= self.ends[index]:
            return PartitionData(index, ErrorCode.OFFSET_OUT_OF_RANGE)
        values = [(None, b"%d" % at) for at in range(offset, self.ends[index])]
        records = encode_batch(values, timestamp=1, base_offset=offset) if values else None
        return PartitionData(index, high_watermark=self.ends[index], records=records)

    def list_offsets(self, request: Any) -> ListOffsetsResponse:
        parts = []
        for part in request.topics[0].partitions:
            index = part.partition_index
            known = {EARLIEST: self.starts[index], LATEST: self.ends[index]}
            parts.append(
                ListOffsetsPartitionResponse(index, 0, -1, known.get(part.timestamp, -1), 0)
            )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", parts)])

    def find_coordinator(self, _: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=[Coordinator("g", 1)])

    def offset_fetch(self, request: Any) -> OffsetFetchResponse:
        parts = [
            OffsetFetchResponsePartitions(index, self.committed.get(index, -1))
            for index in request.groups[0].topics[0].partition_indexes
        ]
        topics = [OffsetFetchResponseTopics(name="t", partitions=parts)]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", topics)])

    def offset_commit(self, request: Any) -> OffsetCommitResponse:
        parts = []
        for part in request.topics[0].partitions:
            if not self.refuse_commits:
                self.committed[part.partition_index] = part.committed_offset
            parts.append(OffsetCommitResponsePartition(part.partition_index, self.refuse_commits))
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])

    def join_group(self, request: Any) -> JoinGroupResponse:
        if not request.member_id:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
        self.generation += 1
        member = JoinGroupResponseMember(request.member_id, None, request.protocols[0].metadata)
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name="range",
            leader=request.member_id,
            member_id=request.member_id,
            members=[member],
        )

    def sync_group(self, request: Any) -> SyncGroupResponse:
        return SyncGroupResponse(assignment=request.assignments[0].assignment)

    def heartbeat(self, _: Any) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=self.beats.pop(0) if self.beats else 0)

    def leave_group(self, _: Any) -> LeaveGroupResponse:
        self.left += 1
        return LeaveGroupResponse()


@asynccontextmanager
async def consuming(source: Source, **settings: Any) -> AsyncIterator[Consumer]:
    settings = {"auto_offset_reset": "earliest", "fetch": FetchSettings(wait_ms_max=5), **settings}
    async with (
        running(source),
        cluster_of(source) as cluster,
        Consumer(cluster, ConsumerSettings(**settings)) as consumer,
    ):
        yield consumer


async def read(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    """Poll until ``count`` records have arrived."""
    found: list[tuple[int, int]] = []
    while len(found) < count:
        found += [(r.partition, r.offset) for r in await consumer.poll(5000)]
    return found


async def test_everything_is_read_once_and_in_order() -> None:
    source = Source(4, 3)
    async with consuming(source) as consumer:
        consumer.assign([P0, P1])
        found = await read(consumer, 7)
        assert sorted(found) == [(0, at) for at in range(4)] + [(1, at) for at in range(3)]
        source.ends[0] += 2
        assert await read(consumer, 2) == [(0, 4), (0, 5)]
        assert consumer.position(P0) == 6
        assert consumer.high_watermark(P0) == 6
        assert await consumer.poll(0) == []


async def test_a_session_is_used() -> None:
    source = Source(2, 2)
    async with consuming(source) as consumer:
        consumer.assign([P0, P1])
        await read(consumer, 4)
        source.ends[1] += 1
        await read(consumer, 1)
    epochs = [request.session_epoch for request in source.requests(ApiKey.FETCH)]
    assert epochs == list(range(len(epochs)))
    assert all(request.session_id == 7 for request in source.requests(ApiKey.FETCH)[1:])


async def test_polls_are_as_long_as_asked() -> None:
    source = Source(10, 0)
    async with consuming(source) as consumer:
        consumer.assign([P0])
        first = await consumer.poll(5000, records_max=3)
        assert [record.offset for record in first] == [0, 1, 2]
        assert consumer.position(P0) == 3
        assert len(await consumer.poll(5000, records_max=100)) == 7


async def test_seeking_forgets_what_was_fetched() -> None:
    source = Source(10, 0)
    async with consuming(source) as consumer:
        consumer.assign([P0])
        await consumer.poll(5000, records_max=2)
        consumer.seek(P0, 8)
        assert await read(consumer, 2) == [(0, 8), (0, 9)]
        consumer.seek_to_time(P0, EARLIEST)
        assert (await read(consumer, 10))[0] == (0, 0)
        consumer.seek_to_time(P0, 123)  # later than every record: the end
        assert await consumer.poll(20) == []
        assert consumer.position(P0) == 10
        with pytest.raises(KafkaError, match="not assigned"):
            consumer.seek(P1, 0)


@pytest.mark.parametrize(("reset", "first"), [("earliest", 3), ("latest", 6)])
async def test_an_offset_that_is_gone_is_reset(reset: str, first: int) -> None:
    source = Source(6, 0)
    source.starts[0] = 3
    async with consuming(source, auto_offset_reset=reset) as consumer:
        consumer.assign([P0])
        consumer.seek(P0, 1)
        while consumer.position(P0) == 1:
            await consumer.poll(20, records_max=1)
        source.ends[0] = 8
        found = await read(consumer, 1)
        assert found[-1][1] in range(first, 8)


async def test_without_a_reset_a_missing_offset_is_an_error() -> None:
    source = Source(6, 0)
    async with consuming(source, auto_offset_reset="none") as consumer:
        consumer.assign([P0])
        with pytest.raises(KafkaError, match="no committed offset"):
            await consumer.poll(5000)
        consumer.seek(P0, 99)
        with pytest.raises(KafkaError, match="has no offset 99"):
            await consumer.poll(5000)


async def test_passing_failures_are_passed_over() -> None:
    source = Source(2, 2)
    source.failures = {0: [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]}
    fetch = source.fetch
    source.on(ApiKey.FETCH, HANG_UP, FetchResponse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), fetch)
    async with consuming(source) as consumer:
        consumer.assign([P0, P1])
        assert sorted(await read(consumer, 4)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE])
async def test_lasting_failures_are_raised(code: ErrorCode) -> None:
    source = Source(2, 2)
    source.failures = {0: [code]}
    async with consuming(source) as consumer:
        consumer.assign([P0])
        with pytest.raises(KafkaError) as raised:
            await consumer.poll(5000)
        assert raised.value.code is code


async def test_a_poll_ends_in_time_without_a_cluster() -> None:
    source = Source(2, 2)
    async with consuming(source) as consumer:
        consumer.assign([TopicPartition("nope", 0)])
        assert await consumer.poll(20) == []


# Groups -----------------------------------------------------------------------------------


async def test_a_group_resumes_where_it_stopped() -> None:
    source = Source(5, 5)
    source.committed = {0: 3}
    async with consuming(source, group=GROUP, auto_commit_ms=None) as consumer:
        consumer.assign([P0, P1])
        assert sorted(await read(consumer, 7)) == [(0, 3), (0, 4)] + [(1, at) for at in range(5)]
        await consumer.commit()
        assert source.committed == {0: 5, 1: 5}
        await consumer.commit({P0: CommittedOffset(1, metadata="note")})
        assert source.committed[0] == 1
    assert source.committed[0] == 1  # closing commits only if that is automatic


async def test_a_member_joins_reads_commits_and_leaves() -> None:
    source = Source(3, 3)
    async with consuming(source, group=GROUP) as consumer:
        consumer.subscribe(["t"])
        assert len(await read(consumer, 6)) == 6
        assert set(consumer.assignment) == {P0, P1}
        joins = source.requests(ApiKey.JOIN_GROUP)
        assert [join.member_id for join in joins] == ["", "m"]
        assigned = source.requests(ApiKey.SYNC_GROUP)[0].assignments
        assert [decode_assignment(entry.assignment) for entry in assigned] == [[P0, P1]]
    assert source.committed == {0: 3, 1: 3}
    assert source.left == 1
    commit = source.requests(ApiKey.OFFSET_COMMIT)[-1]
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("m", 1)


@pytest.mark.parametrize(
    ("beat", "member_ids"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, ["", "m", "m"]),
        (ErrorCode.ILLEGAL_GENERATION, ["", "m", "m"]),
        (ErrorCode.UNKNOWN_MEMBER_ID, ["", "m", "", "m"]),
    ],
)
async def test_a_member_joins_again_when_told(beat: ErrorCode, member_ids: list[str]) -> None:
    source = Source(3, 3)
    source.beats = [beat]
    async with consuming(source, group=GROUP) as consumer:
        consumer.subscribe(["t"])
        await read(consumer, 6)
        while source.generation < 2:
            await consumer.poll(20)
        assert set(consumer.assignment) == {P0, P1}
    joins = source.requests(ApiKey.JOIN_GROUP)
    assert [join.member_id for join in joins] == member_ids


async def test_a_rebalance_during_the_join_is_joined_too() -> None:
    source = Source(1, 1)
    source.on(
        ApiKey.SYNC_GROUP,
        SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
        source.sync_group,
    )
    async with consuming(source, group=GROUP) as consumer:
        consumer.subscribe(["t"])
        assert len(await read(consumer, 2)) == 2
    assert source.generation == 2


async def test_refusals_of_the_group_are_raised() -> None:
    source = Source(1, 1)
    source.on(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    async with consuming(source, group=GROUP) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED: group g"):
            await consumer.poll(5000)


async def test_a_refused_commit_is_raised_and_makes_the_member_join_again() -> None:
    source = Source(1, 1)
    async with consuming(source, group=GROUP, auto_commit_ms=None) as consumer:
        consumer.subscribe(["t"])
        await read(consumer, 2)
        source.refuse_commits = ErrorCode.ILLEGAL_GENERATION
        with pytest.raises(KafkaError, match="ILLEGAL_GENERATION"):
            await consumer.commit()
        source.refuse_commits = ErrorCode.NONE
        while source.generation < 2:
            await consumer.poll(20)


async def test_groups_need_a_name() -> None:
    async with consuming(Source(1, 1)) as consumer:
        with pytest.raises(KafkaError, match="needs a group id"):
            consumer.subscribe(["t"])
        with pytest.raises(KafkaError, match="needs a group id"):
            await consumer.commit()
