"""The cluster: metadata, leaders, coordinators, lanes, and retries."""

from __future__ import annotations

import asyncio

import pytest

from skylog.client.cluster import Cluster
from skylog.client.lines import Lines
from skylog.client.metadata import TopicPartition
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.system import real_system
from skylog.wire.apis import ApiKey
from skylog.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from tests.unit.client.support import (
    HANG_UP,
    SILENCE,
    FakeBroker,
    cluster_of,
    running,
    settings,
)
from tests.waiting import eventually


def coordinator(node_id: int, code: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator("g", node_id, error_code=code, error_message=None)]
    )


async def test_leaders_are_found_and_remembered() -> None:
    first, second = FakeBroker(1), FakeBroker(2)
    async with running(first, second), cluster_of(first) as cluster:
        connection, info = await cluster.leader(TopicPartition("t", 1))
        assert (connection.address, info.leader, info.leader_epoch) == (second.address, 2, 3)
        again, _ = await cluster.leader(TopicPartition("t", 1))
        assert again is connection
        assert cluster.metadata.cluster_id == "cluster"
    assert [len(r.topics) for r in first.requests(ApiKey.METADATA)] == [0, 1]


async def test_what_does_not_exist_has_a_retriable_error() -> None:
    broker = FakeBroker()
    async with running(broker), cluster_of(broker) as cluster:
        for partition in (TopicPartition("t", 9), TopicPartition("nope", 0)):
            with pytest.raises(KafkaError) as unknown:
                await cluster.leader(partition)
            assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert unknown.value.retriable


async def test_a_lost_connection_is_opened_again() -> None:
    broker = FakeBroker()
    async with running(broker), cluster_of(broker) as cluster:
        broker.on(ApiKey.METADATA, HANG_UP, HANG_UP, broker.metadata)
        await cluster.refresh(None)
        assert list(cluster.metadata.topics) == ["t"]
    assert broker.connections == 3


async def test_errors_for_good_are_not_tried_again() -> None:
    broker = FakeBroker()
    async with running(broker), cluster_of(broker) as cluster:
        tried = 0

        async def work() -> None:
            nonlocal tried
            tried += 1
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

        with pytest.raises(KafkaError, match="INVALID_REQUEST: no"):
            await cluster.retry(work)
        assert tried == 1


async def test_trying_again_ends_with_the_time() -> None:
    broker = FakeBroker()
    async with running(broker), cluster_of(broker) as cluster:

        async def work() -> None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "still none")

        with pytest.raises(KafkaError, match="still none"):
            await cluster.retry(work, timeout_ms=10)


def test_pauses_grow_up_to_their_limit() -> None:
    settings = ClientSettings((Address("a", 1),), retry_backoff_ms=100, retry_backoff_ms_max=1000)
    cluster = Cluster(settings)
    for attempt, expected in enumerate((0.1, 0.2, 0.4, 0.8, 1.0, 1.0)):
        assert 0.8 * expected <= cluster.backoff(attempt) <= 1.2 * expected
    assert cluster.backoff(10**9) <= 1.2


async def test_no_broker_can_be_reached() -> None:
    broker = FakeBroker()
    async with running(broker):
        pass
    with pytest.raises(KafkaError, match="no connection to") as unreachable:
        async with cluster_of(broker, api_timeout_ms=10):
            pass
    assert unreachable.value.code is ErrorCode.NETWORK_EXCEPTION


async def test_a_coordinator_that_moves_is_found_again() -> None:
    first, second = FakeBroker(1), FakeBroker(2)
    first.on(ApiKey.FIND_COORDINATOR, coordinator(1), coordinator(2))
    second.on(ApiKey.FIND_COORDINATOR, coordinator(2))
    first.on(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    second.on(
        ApiKey.HEARTBEAT,
        HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION),
    )
    async with running(first, second), cluster_of(first) as cluster:
        answer = await cluster.at_coordinator(
            "g", HeartbeatRequest("g"), lambda got: got.error_code
        )
    assert answer.error_code == ErrorCode.ILLEGAL_GENERATION  # that is for the caller to judge
    assert len(second.requests(ApiKey.HEARTBEAT)) == 2


async def test_a_coordinator_that_is_not_there_yet_is_waited_for() -> None:
    broker = FakeBroker()
    missing = coordinator(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    broker.on(ApiKey.FIND_COORDINATOR, missing, missing, coordinator(1))
    broker.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    async with running(broker), cluster_of(broker) as cluster:
        await cluster.at_coordinator("g", HeartbeatRequest("g"), lambda got: got.error_code)
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3


async def test_lanes_are_connections_of_their_own() -> None:
    broker = FakeBroker()
    async with running(broker), cluster_of(broker) as cluster:
        lane = cluster.new_lane()
        shared, own = await cluster.node(1), await cluster.node(1, lane)
        assert own is not shared
        assert await cluster.node(1, lane) is own
        await cluster.close_lane(lane)
        assert not own.usable
        assert shared.usable


async def test_a_closed_client_says_so() -> None:
    broker = FakeBroker()
    async with running(broker):
        async with cluster_of(broker) as cluster:
            pass
        with pytest.raises(KafkaError, match="the client is closed"):
            await cluster.refresh(None)


# Nothing stays open


async def test_cancelling_the_first_contact_leaves_no_connection() -> None:
    broker = FakeBroker()
    broker.on(ApiKey.METADATA, SILENCE)
    async with running(broker):

        async def enter() -> None:
            async with cluster_of(broker):
                raise AssertionError("nobody answered")

        entering = asyncio.ensure_future(enter())
        await eventually(lambda: broker.requests(ApiKey.METADATA))
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        await eventually(lambda: not broker.open_connections)


class Slow(FakeBroker):
    """Answers nothing until the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await self.told.wait()
        return await super()._answer(reader, writer)


@pytest.mark.parametrize("turns", range(12))
async def test_cancelling_a_connect_leaves_no_connection(turns: int) -> None:
    broker = Slow()
    async with running(broker):
        cluster = Cluster(settings(broker))
        opening = asyncio.ensure_future(cluster.any_node())
        for _ in range(turns):  # as far as it gets
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await cluster.close()
        broker.told.set()
        await eventually(lambda: not broker.open_connections)


@pytest.mark.parametrize("kind", ["cluster", "lines"])
async def test_what_is_opened_while_its_owner_closes_does_not_stay(kind: str) -> None:
    broker = Slow()
    async with running(broker):
        lines = Lines(lambda: settings(broker), real_system())
        cluster = Cluster(settings(broker))
        of_lines = kind == "lines"
        work = lines.connection(broker.address) if of_lines else cluster.any_node()
        opening = asyncio.ensure_future(work)
        await eventually(lambda: broker.open_connections)
        await (lines.close() if of_lines else cluster.close())
        broker.told.set()
        with pytest.raises(KafkaError, match="shutting down" if of_lines else "is closed"):
            await opening
        await eventually(lambda: not broker.open_connections)
