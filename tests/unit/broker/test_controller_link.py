"""The link to the active controller: found, lost, found again, and timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.metadata import controller_link
from skylog.broker.metadata.controller_link import ControllerLink
from skylog.client.settings import Address
from skylog.controller.image import ClusterImage
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.quorum.voters import Endpoint
from skylog.wire.apis import ApiKey
from skylog.wire.codec import encode
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from skylog.wire.messages.envelope_response import EnvelopeResponse
from skylog.wire.messages.topic_record import TopicRecord
from tests.unit.broker.support import soon
from tests.waiting import eventually

FIRST, SECOND = (Endpoint("CONTROLLER", "127.0.0.1", port) for port in (1, 2))
HEARTBEAT = BrokerHeartbeatRequest(1, 5, 0, False, False)
LOST = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connection was lost", ambiguous=True)
REFUSED = KafkaError(ErrorCode.NETWORK_EXCEPTION, "nobody listens")
ELSEWHERE = BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
GOOD = BrokerHeartbeatResponse(is_fenced=False)


class FakeQuorum:
    def __init__(self) -> None:
        self.is_leader = False
        self.leader_endpoint: Endpoint | None = FIRST
        self.high_watermark = 0
        self.listeners: list[Callable[[int], None]] = []

    def on_high_watermark(self, listener: Callable[[int], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def advance(self, offset: int) -> None:
        self.high_watermark = offset
        for listener in tuple(self.listeners):
            listener(offset)


class FakeLines:
    """Connections that answer from a list, whichever node is asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, str, Any]] = []
        self.dropped: list[Address] = []
        self.silent = False

    async def connection(self, address: Address, lane: str) -> Any:
        async def request(message: Any, **_versions: Any) -> Any:
            self.asked.append((address.port, lane, message))
            if self.silent:
                await asyncio.Event().wait()
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, BaseException):
                raise answer
            return answer() if callable(answer) else answer

        return SimpleNamespace(request=request, address=address)

    def drop(self, address: Address) -> None:
        self.dropped.append(address)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_link, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(controller_link, "LOOK_SECONDS", 0.01)


def new_link(
    lines: FakeLines,
    quorum: FakeQuorum,
    *,
    local: Any = None,
    image: ClusterImage | None = None,
    timeout_ms: int = 3_000,
) -> ControllerLink:
    node: Any = SimpleNamespace(heartbeat_interval_ms=timeout_ms, request_timeout_ms=timeout_ms)
    found: Any = ControllerLink(local, quorum, lines, image or ClusterImage(), node)  # type: ignore[arg-type]
    return found  # type: ignore[no-any-return]


async def test_the_request_is_retried_until_there_is_a_leader() -> None:
    lines = FakeLines(ELSEWHERE, REFUSED, LOST, GOOD)
    link = new_link(lines, FakeQuorum())
    assert await soon(link.submit(HEARTBEAT, 1)) is GOOD
    assert [(port, lane) for port, lane, _ in lines.asked] == [(1, "heartbeat")] * 4


async def test_another_leader_is_asked_at_its_own_address() -> None:
    quorum = FakeQuorum()

    def moves() -> Any:
        quorum.leader_endpoint = SECOND
        return ELSEWHERE

    lines = FakeLines(moves, GOOD)
    await soon(new_link(lines, quorum).submit(HEARTBEAT, 1))
    assert [port for port, _, _ in lines.asked] == [1, 2]


async def test_a_leader_that_says_nothing_is_left_when_another_one_leads() -> None:
    quorum, lines = FakeQuorum(), FakeLines(GOOD)
    lines.silent = True
    node_link = new_link(lines, quorum)
    asking = asyncio.ensure_future(node_link.submit(CreateTopicsRequest(), 7))
    await eventually(lambda: bool(lines.asked))
    lines.silent, quorum.leader_endpoint = False, SECOND
    await soon(asking)
    assert [port for port, _, _ in lines.asked] == [1, 2]
    assert lines.dropped == [Address("127.0.0.1", 1)]


@pytest.mark.parametrize(
    ("answers", "leader", "ambiguous"),
    [((GOOD,), None, False), ((REFUSED,), FIRST, False), ((LOST, REFUSED), FIRST, True)],
)
async def test_what_may_have_been_done_is_not_told_as_undone(
    answers: tuple[Any, ...], leader: Endpoint | None, ambiguous: bool
) -> None:
    quorum = FakeQuorum()
    quorum.leader_endpoint = leader
    with pytest.raises(KafkaError) as given_up:
        await soon(new_link(FakeLines(*answers), quorum, timeout_ms=100).submit(HEARTBEAT, 1))
    assert given_up.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert given_up.value.ambiguous is ambiguous


async def test_a_login_that_fails_is_told_at_once() -> None:
    wrong = KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong password")
    lines = FakeLines(wrong)
    with pytest.raises(KafkaError) as failed:
        await soon(new_link(lines, FakeQuorum()).submit(HEARTBEAT, 1))
    assert failed.value is wrong
    assert len(lines.asked) == 1


async def test_the_controller_of_this_process_is_called_while_it_leads() -> None:
    quorum, lines = FakeQuorum(), FakeLines(GOOD)
    outcomes: list[Any] = [KafkaError(ErrorCode.NOT_CONTROLLER), "here"]

    async def decide(_request: Any, _version: int) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    quorum.is_leader = True
    link = new_link(lines, quorum, local=SimpleNamespace(decide=decide))
    assert link.is_here
    assert await soon(link.submit(HEARTBEAT, 1)) == "here"  # it was still loading at first
    assert lines.asked == []
    quorum.is_leader = False
    assert not link.is_here
    assert await soon(link.submit(HEARTBEAT, 1)) is GOOD


async def test_a_created_topic_shows_before_its_creation_is_answered() -> None:
    quorum, image = FakeQuorum(), ClusterImage()
    created = CreateTopicsResponse(topics=[CreatableTopicResult("t")])
    link = new_link(FakeLines(created), quorum, image=image)
    asking = asyncio.ensure_future(link.submit(CreateTopicsRequest([CreatableTopic("t")]), 7))
    await eventually(lambda: bool(quorum.listeners))
    quorum.advance(4)
    await asyncio.sleep(0)
    assert not asking.done()
    image.apply(TopicRecord("t", Uuid(b"\1" * 16)))
    quorum.advance(5)
    assert await soon(asking) is created
    assert quorum.listeners == []


def client() -> Any:
    return SimpleNamespace(
        principal="User:alice",
        host="10.0.0.1",
        api_key=ApiKey.CREATE_TOPICS,
        version=7,
        correlation_id=3,
        client_id="c",
    )


async def here() -> Any:
    return "here"


async def test_a_forwarded_request_is_answered_when_this_node_shows_what_it_did() -> None:
    quorum = FakeQuorum()
    answer = CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=36)])
    packed = EnvelopeResponse(b"\0\0\0\3\0" + encode(answer, 7), metadata_offset=9)
    lines = FakeLines(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER), packed)
    asking = asyncio.ensure_future(new_link(lines, quorum).forward(client(), b"frame", here))
    await eventually(lambda: bool(quorum.listeners))
    quorum.advance(8)
    await asyncio.sleep(0)
    assert not asking.done()
    quorum.advance(9)
    assert (await soon(asking)).topics[0].error_code == 36
    assert {lane for _, lane, _ in lines.asked} == {"forwarding"}
    assert lines.asked[0][2].request_data == b"frame"


async def test_a_node_that_becomes_the_controller_answers_by_itself() -> None:
    quorum = FakeQuorum()
    quorum.leader_endpoint = None
    link = new_link(FakeLines(GOOD), quorum, local=SimpleNamespace())
    asking = asyncio.ensure_future(link.forward(client(), b"frame", here))
    await asyncio.sleep(0.005)
    quorum.is_leader = True
    assert await soon(asking) == "here"


async def test_a_version_that_the_controller_does_not_know_is_told_as_that() -> None:
    lines = FakeLines(EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    with pytest.raises(KafkaError) as failed:
        await soon(new_link(lines, FakeQuorum()).forward(client(), b"frame", here))
    assert failed.value.code is ErrorCode.UNSUPPORTED_VERSION  # its client is disconnected


@pytest.mark.parametrize(
    "answer",
    [
        EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        EnvelopeResponse(error_code=9999),
        EnvelopeResponse(b"\0"),
        KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED),
    ],
)
async def test_errors_between_nodes_are_hidden_from_clients(answer: Any) -> None:
    with pytest.raises(KafkaError) as failed:
        await soon(new_link(FakeLines(answer), FakeQuorum()).forward(client(), b"frame", here))
    assert failed.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
