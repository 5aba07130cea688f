"""Callers of the controller: auto-created topics, producer ids, a broker's lifecycle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.metadata import lifecycle
from skylog.broker.metadata.auto_create import AutoCreate
from skylog.broker.metadata.lifecycle import Lifecycle
from skylog.broker.metadata.producer_ids import ProducerIds
from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.rng import system_random
from skylog.kernel.settings import load_settings
from skylog.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from skylog.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from skylog.wire.messages.broker_registration_response import BrokerRegistrationResponse
from skylog.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tests.unit.broker.support import FakeController, soon
from tests.waiting import eventually


def settings(*overrides: str) -> Any:
    return load_settings(None, {}, [*overrides])


# Auto-creation of topics


def never() -> bool:
    return False


def created(name: str = "t", code: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name, error_code=code)])


async def test_concurrent_requests_share_the_creation() -> None:
    controller = FakeController(created())
    auto = AutoCreate(settings(), controller, never)
    outcomes = await soon(asyncio.gather(*(auto.create(["t"]) for _ in range(5))))
    assert outcomes == [{"t": ErrorCode.NONE}] * 5
    assert len(controller.requests) == 1
    await soon(auto.create(["t"]))
    assert len(controller.requests) == 2
    assert not auto._under_way


async def test_a_cancelled_caller_does_not_end_it_for_others() -> None:
    controller = FakeController(created())
    controller.hold = asyncio.Event()
    auto = AutoCreate(settings(), controller, never)
    leaving = asyncio.ensure_future(auto.create(["t"]))
    staying = asyncio.ensure_future(auto.create(["t"]))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    controller.hold.set()
    assert await soon(staying) == {"t": ErrorCode.NONE}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (created(code=ErrorCode.TOPIC_ALREADY_EXISTS), ErrorCode.NONE),
        (created(code=ErrorCode.INVALID_REPLICATION_FACTOR), ErrorCode.INVALID_REPLICATION_FACTOR),
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
    ],
)
async def test_how_it_went_is_told(answer: Any, outcome: ErrorCode) -> None:
    auto = AutoCreate(settings(), FakeController(answer), never)
    assert await soon(auto.create(["t"])) == {"t": outcome}


async def test_the_offsets_topic_has_settings_of_its_own() -> None:
    controller = FakeController(created())
    chosen = settings("offsets.topic.num.partitions=7", "num.partitions=3")
    auto = AutoCreate(chosen, controller, never)
    await soon(auto.create(["__consumer_offsets", "t"]))
    topics = {r.topics[0].name: r.topics[0] for r in controller.requests}
    offsets = topics["__consumer_offsets"]
    assert offsets.num_partitions == 7
    assert {c.name: c.value for c in offsets.configs}["cleanup.policy"] == "compact"
    assert (topics["t"].num_partitions, topics["t"].configs) == (-1, [])


FROM_FILE = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
"""
INTERNAL = ("__consumer_offsets", "__transaction_state", "__diskless_metadata")


@pytest.mark.parametrize(
    ("given", "is_whole_cluster", "replicas", "isr"),
    [
        ("", True, [1, 1, 1], ["1", "1"]),
        ("", False, [3, 3, 3], ["2", "2"]),
        ("offsets.topic.replication.factor=3", True, [3, 1, 1], ["1", "1"]),
        ("diskless.metadata.topic.min.isr=2", True, [1, 1, 1], ["1", "2"]),
    ],
)
async def test_internal_topics_have_one_replica_where_there_is_one_node(
    tmp_path: Path, given: str, is_whole_cluster: bool, replicas: list[int], isr: list[str]
) -> None:
    """Unless it is configured, and never in a cluster."""
    file = tmp_path / "server.properties"
    file.write_text(FROM_FILE + given)
    controller = FakeController(created())
    auto = AutoCreate(load_settings(file, {}, []), controller, lambda: is_whole_cluster)
    for name in INTERNAL:
        await soon(auto.create([name]))
    topics = [request.topics[0] for request in controller.requests]
    assert [topic.replication_factor for topic in topics] == replicas
    configs = [{c.name: c.value for c in topic.configs} for topic in topics[1:]]
    assert [found["min.insync.replicas"] for found in configs] == isr


# Producer ids


def block(start: int, count: int = 2) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=count)


def producer_ids(controller: FakeController) -> ProducerIds:
    broker: Any = SimpleNamespace(node_id=1, broker_epoch=9)
    return ProducerIds(broker, controller)


async def test_ids_come_in_blocks_and_never_twice() -> None:
    controller = FakeController(block(100), block(700), block(300))
    ids = producer_ids(controller)
    found = await soon(asyncio.gather(*(ids.next() for _ in range(6))))
    assert found == [100, 101, 700, 701, 300, 301]
    assert len(controller.requests) == 3
    assert (controller.requests[0].broker_id, controller.requests[0].broker_epoch) == (1, 9)


@pytest.mark.parametrize(
    "refusal",
    [
        KafkaError(ErrorCode.NOT_CONTROLLER),
        AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        block(5, count=0),
    ],
)
async def test_without_a_block_clients_shall_try_again(refusal: Any) -> None:
    ids = producer_ids(FakeController(refusal, block(100)))
    with pytest.raises(KafkaError) as refused:
        await soon(ids.next())
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await soon(ids.next()) == 100


async def test_the_wait_for_an_unavailable_controller_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PRODUCER_IDS_WAIT_SECONDS_MAX", 0.01)
    controller = FakeController(block(100))
    controller.hold = asyncio.Event()
    ids = producer_ids(controller)
    many = await soon(asyncio.gather(*(ids.next() for _ in range(3)), return_exceptions=True))
    assert {refused.code for refused in many} == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    controller.hold.set()
    monkeypatch.undo()
    assert await soon(ids.next()) == 100
    assert len(controller.requests) == 1


async def test_an_abandoned_request_ends_with_the_node() -> None:
    controller = FakeController(block(100))
    controller.hold = asyncio.Event()
    ids = producer_ids(controller)
    waiting = asyncio.ensure_future(ids.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await soon(ids.close())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_caller_leaves_the_block_to_others() -> None:
    controller = FakeController(block(100))
    controller.hold = asyncio.Event()
    ids = producer_ids(controller)
    first, second = (asyncio.ensure_future(ids.next()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    controller.hold.set()
    assert await soon(second) in (100, 101)


# A broker's lifecycle

REGISTERED = BrokerRegistrationResponse(broker_epoch=5)
BEHIND = BrokerHeartbeatResponse(is_fenced=True, is_caught_up=False)
FENCED = BrokerHeartbeatResponse(is_fenced=True, is_caught_up=True)
RUNNING = BrokerHeartbeatResponse(is_fenced=False, is_caught_up=True)
MAY_GO = BrokerHeartbeatResponse(is_fenced=False, should_shut_down=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "RETRY_SECONDS", 0)


def life(controller: FakeController, *overrides: str, hopeless: str | None = None) -> Lifecycle:
    chosen = settings("broker.heartbeat.interval.ms=1", *overrides)
    return Lifecycle(chosen, "cluster", system_random(), controller, lambda: 42, lambda: hopeless)


async def join(broker: Lifecycle, previous_epoch: int = -1) -> None:
    await soon(broker.register([], {"metadata.version": (1, 2)}, [], previous_epoch))
    await soon(broker.unfence())


async def test_a_broker_registers_catches_up_and_waits_for_its_fence_to_go() -> None:
    busy = KafkaError(ErrorCode.NOT_CONTROLLER)
    refused = BrokerRegistrationResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    controller = FakeController(busy, refused, REGISTERED, BEHIND, FENCED, FENCED, RUNNING)
    broker = life(controller)
    assert not broker.serving
    await soon(broker.register([], {"metadata.version": (1, 2)}, [], previous_epoch=3))
    assert not broker.serving
    assert [request.want_fence for request in controller.requests[3:5]] == [True, True]
    await soon(broker.unfence())
    assert broker.serving
    assert broker.broker_epoch == 5
    registration, heartbeat = controller.requests[2:4]
    assert (registration.previous_broker_epoch, registration.cluster_id) == (3, "cluster")
    assert len({request.incarnation_id for request in controller.requests[:3]}) == 1
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset) == (5, 41)
    controller.answers = [MAY_GO]
    await soon(broker.leave())
    assert controller.requests[-1].want_shut_down
    assert not controller.requests[-1].want_fence
    assert not broker.serving


async def test_a_broker_of_another_cluster_says_so_at_once() -> None:
    answer = BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    broker = life(FakeController(answer))
    with pytest.raises(StorageError, match=r"INCONSISTENT_CLUSTER_ID.*cluster cluster"):
        await soon(broker.register([], {}, [], previous_epoch=-1))


async def test_a_broker_that_finds_only_other_clusters_fails_at_once() -> None:
    lost = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    broker = life(FakeController(lost), hopeless="the controllers are of another cluster")
    with pytest.raises(StorageError, match="of another cluster"):
        await soon(broker.register([], {}, [], previous_epoch=-1))


async def test_a_broker_of_an_id_that_is_taken_waits_for_the_others_session_to_end() -> None:
    taken = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    controller = FakeController(taken, taken, REGISTERED, RUNNING)
    broker = life(controller)
    await join(broker)
    assert broker.serving
    controller.answers = [MAY_GO]
    await soon(broker.leave())


async def test_a_broker_of_an_id_that_stays_taken_gives_up_and_says_why() -> None:
    taken = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    broker = life(FakeController(taken), "initial.broker.registration.timeout.ms=20")
    with pytest.raises(StorageError, match=r"DUPLICATE_BROKER_REGISTRATION.*node.id is running"):
        await soon(broker.register([], {}, [], previous_epoch=-1))
    await soon(broker.leave())  # nothing to leave


async def test_heartbeats_survive_everything() -> None:
    failures = [
        KafkaError(ErrorCode.NOT_CONTROLLER),
        RuntimeError("a bug"),
        BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
    ]
    controller = FakeController(REGISTERED, RUNNING, RUNNING, *failures, RUNNING)
    broker = life(controller)
    await join(broker)
    await eventually(lambda: len(controller.requests) > 9)
    assert broker.serving
    controller.answers = [MAY_GO]
    await soon(broker.leave())


async def test_a_broker_that_lost_its_session_does_not_count_until_it_is_let_in_again() -> None:
    controller = FakeController(REGISTERED, RUNNING)
    broker = life(controller)
    await join(broker)
    controller.answers = [FENCED]
    await eventually(lambda: not broker.serving)
    controller.answers = [RUNNING]
    await eventually(lambda: broker.serving)
    controller.answers = [MAY_GO]
    await soon(broker.leave())


async def test_a_broker_goes_even_without_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAVE_SECONDS_MAX", 0.05)
    stale = BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    for answer in (RUNNING, KafkaError(ErrorCode.NOT_CONTROLLER), stale):
        controller = FakeController(REGISTERED, RUNNING)
        broker = life(controller, "broker.session.timeout.ms=20")
        await join(broker)
        controller.answers = [answer]
        await soon(broker.leave())
        assert not broker.serving


async def test_a_broker_may_be_told_to_go_without_leave() -> None:
    controller = FakeController(REGISTERED, RUNNING)
    broker = life(controller, "controlled.shutdown.enable=false")
    await join(broker)
    await soon(broker.leave())
    assert not any(getattr(asked, "want_shut_down", False) for asked in controller.requests)
    assert not broker.serving
