"""Reading through brokers: leaders that move, logs that end early, bytes that are wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.bulk.errors import DataLossError
from skylog.bulk.fetch import BrokerSource
from skylog.bulk.source import LossPolicy
from skylog.client.bulk import Split
from skylog.client.metadata import PartitionInfo
from skylog.client.offsets import OffsetAtTime
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.records import encode_batch

ID, OTHER_ID = Uuid(bytes(range(16))), Uuid(bytes(range(1, 17)))
RETRIES_MAX = 5


def records(base: int, count: int = 5) -> bytes:
    return encode_batch([(None, b"v")] * count, timestamp=5, base_offset=base)


class FakeCluster:
    """Scripted leaders and responses; each is used once, the last one repeatedly."""

    def __init__(self, *answers: PartitionData | KafkaError, leaders: tuple[int, ...] = (1,)):
        self.answers = deque(answers)
        self.leaders = deque(leaders)
        self.topic_id = ID
        self.missing = False
        self.asked: list[tuple[int, int]] = []
        self.lanes: list[int] = []
        self.metadata = self

    def forget(self, _topic: str) -> None:
        if len(self.leaders) > 1:
            self.leaders.popleft()

    async def topic(self, name: str) -> Any:
        if self.missing:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")
        info = PartitionInfo(2, self.leaders[0], 0, (1,), (1,))
        return SimpleNamespace(topic_id=self.topic_id, partitions={2: info})

    async def node(self, node_id: int, lane: int) -> Any:
        assert lane in self.lanes

        async def request(message: FetchRequest, **_: object) -> FetchResponse:
            position = message.topics[0].partitions[0].fetch_offset
            self.asked.append((node_id, position))
            answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, KafkaError):
                raise answer
            return FetchResponse(
                responses=[FetchableTopicResponse(topic_id=ID, partitions=[answer])]
            )

        return SimpleNamespace(request=request, address="here:1")

    async def retry(self, work: Callable[[], Awaitable[Any]]) -> Any:
        for attempt in range(RETRIES_MAX):
            try:
                return await work()
            except KafkaError as error:
                if not error.retriable or attempt == RETRIES_MAX - 1:
                    raise
        raise AssertionError

    def new_lane(self) -> int:
        self.lanes.append(7)
        return 7

    async def close_lane(self, lane: int) -> None:
        self.lanes.remove(lane)


def answer(data: bytes = b"", error: int = 0, high_watermark: int = 100) -> PartitionData:
    return PartitionData(2, error_code=error, high_watermark=high_watermark, records=data)


async def offsets(cluster: FakeCluster, *splits: Split, fails: bool = True) -> list[int]:
    source = BrokerSource(cluster, InlineExecutor(), splits, LossPolicy(fails))  # type: ignore[arg-type]
    found: list[int] = []
    try:
        while (window := await source.next()) is not None:
            for piece in window:
                for batch in piece.batches:
                    found += range(batch.base_offset, batch.last_offset + 1)
    finally:
        await source.close()
    assert not cluster.lanes
    return found


def split(start: int, end: int) -> Split:
    return Split("t", ID, 2, start, end, 0, False)


async def test_one_fetch_after_the_other_up_to_the_end() -> None:
    cluster = FakeCluster(answer(records(0) + records(5)), answer(records(10) + records(15)[:-3]))
    assert await offsets(cluster, split(3, 14)) == list(range(15))  # whole batches
    assert cluster.asked == [(1, 3), (1, 10)]


async def test_splits_come_one_after_the_other() -> None:
    cluster = FakeCluster(answer(records(0)), answer(records(10)))
    assert await offsets(cluster, split(0, 5), split(10, 12)) == [*range(5), *range(10, 15)]


@pytest.mark.parametrize(
    "moved",
    [
        answer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        KafkaError(ErrorCode.NETWORK_EXCEPTION, "lost"),
    ],
    ids=["says so", "knows nothing", "is away"],
)
async def test_a_leader_that_moved_is_looked_for(moved: PartitionData | KafkaError) -> None:
    cluster = FakeCluster(moved, answer(records(0)), leaders=(1, 4))
    assert await offsets(cluster, split(0, 5)) == list(range(5))
    assert cluster.asked == [(1, 0), (4, 0)]


async def test_a_partition_without_leader_gets_one() -> None:
    cluster = FakeCluster(answer(records(0)), leaders=(-1, 4))
    assert await offsets(cluster, split(0, 5)) == list(range(5))


async def test_a_store_that_failed_is_asked_again() -> None:
    cluster = FakeCluster(answer(error=ErrorCode.UNKNOWN_SERVER_ERROR), answer(records(0)))
    assert await offsets(cluster, split(0, 5)) == list(range(5))


async def test_nothing_yet_is_asked_for_again() -> None:
    cluster = FakeCluster(answer(), answer(records(0)))
    assert await offsets(cluster, split(0, 5)) == list(range(5))


async def test_a_log_that_never_shows_what_was_planned() -> None:
    cluster = FakeCluster(answer(high_watermark=3))
    with pytest.raises(KafkaError, match="t-2 has nothing at offset 4, its high watermark is 3"):
        await offsets(cluster, split(4, 5))


async def test_bytes_that_are_wrong_once_are_fetched_again() -> None:
    wrong = records(0)[:-1] + b"\xff"
    assert await offsets(FakeCluster(answer(wrong), answer(records(0))), split(0, 5))
    with pytest.raises(KafkaError, match="topic t partition 2 offset 0, from the broker: a wrong"):
        await offsets(FakeCluster(answer(wrong)), split(0, 5))


async def test_a_reader_without_permission_fails_at_once() -> None:
    cluster = FakeCluster(answer(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        await offsets(cluster, split(0, 5))
    assert len(cluster.asked) == 1


async def test_a_topic_that_is_gone_or_another_one() -> None:
    gone = FakeCluster(answer(records(0)))
    gone.missing = True
    another = FakeCluster(answer(records(0)))
    another.topic_id = OTHER_ID
    for cluster in (gone, another):
        with pytest.raises(DataLossError, match="offsets 0 to 4 are gone: the topic is gone"):
            await offsets(cluster, split(0, 5))
        assert await offsets(cluster, split(0, 5), fails=False) == []


async def test_records_that_were_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def list_offsets(_cluster: object, times: dict[Any, int]) -> dict[Any, OffsetAtTime]:
        return {key: OffsetAtTime(10, -1, 0) for key in times}

    monkeypatch.setattr("skylog.bulk.source.list_offsets", list_offsets)
    deleted = answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    with pytest.raises(DataLossError, match="offsets 3 to 9 are gone: the log begins at 10"):
        await offsets(FakeCluster(deleted), split(3, 15))
    lenient = FakeCluster(deleted, answer(records(10)))
    assert await offsets(lenient, split(3, 15), fails=False) == list(range(10, 15))
    # The whole range, and the log ends before it.
    assert await offsets(FakeCluster(deleted), split(3, 8), fails=False) == []
    with pytest.raises(DataLossError, match="offsets 20 to 24 are gone: the log is shorter"):
        await offsets(FakeCluster(deleted), split(20, 25))
