"""Connections as a client sees them: order, backpressure, closing."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest
import uvloop

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.apis import ApiKey
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.metadata_request import MetadataRequest
from tests.integration.broker_client import (
    FETCH_BY_NAME,
    PRODUCE_BY_NAME,
    Client,
    batch,
    fetch_request,
    produce_request,
    told,
    values,
)
from tests.integration.wire_client import frame, request_bytes


@pytest.fixture(scope="module", params=[asyncio, uvloop], ids=["asyncio", "uvloop"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """On the loop of tests, and on that of a server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", request.param.new_event_loop)
        broker = Broker().start()
    yield broker
    broker.stop()


def versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="test", client_software_version="1")


# Versions


def test_an_unknown_version_gets_the_supported_ones(client: Client) -> None:
    client.send(frame(struct.pack(">hhihb", 18, 999, 5, -1, 0)))
    answer = client.receive()
    correlation, code, count = struct.unpack_from(">ihi", answer)
    assert (correlation, code, count) == (5, ErrorCode.UNSUPPORTED_VERSION, 1)
    assert struct.unpack_from(">hhh", answer, 10) == (18, 0, 4)
    assert client.ask(versions()).error_code == 0


def test_produce_is_offered_from_a_version_that_is_not_served(client: Client) -> None:
    offered = {api.api_key: (api.min_version, api.max_version) for api in
               client.ask(versions()).api_keys}  # fmt: skip
    assert offered[ApiKey.PRODUCE] == (0, 13)
    client.send(frame(struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1) + bytes(14)))
    assert client.is_closed()


@pytest.mark.parametrize(
    "bad",
    [
        frame(struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1)),
        frame(struct.pack(">hhih", 9999, 0, 1, -1)),
        frame(b""),
        frame(b"\0"),
        frame(request_bytes(MetadataRequest(), 1)[:-1]),
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["version", "api", "empty", "short", "cut", "negative", "huge", "http"],
)
def test_malformed_requests_close_the_connection(client: Client, bad: bytes) -> None:
    client.send(bad)
    assert client.is_closed()


# Order


def test_answers_come_in_the_order_of_the_requests(client: Client) -> None:
    client.create("order")
    slow = request_bytes(fetch_request([("order", 0, 0)], wait_ms=30), FETCH_BY_NAME, 1)
    quick = [request_bytes(versions(), 3, number) for number in range(2, 6)]
    client.send(b"".join(map(frame, [slow, *quick])))
    for expected in range(1, 6):
        assert struct.unpack_from(">i", client.receive()) == (expected,)


def test_a_fetch_does_not_see_what_was_sent_after_it(client: Client) -> None:
    client.create("after")
    read = request_bytes(fetch_request([("after", 0, 0)], wait_ms=20), FETCH_BY_NAME, 1)
    write = request_bytes(produce_request([("after", 0, batch(b"x"))]), PRODUCE_BY_NAME, 2)
    client.send(frame(read) + frame(write))
    found = told(client.answer(ApiKey.FETCH, FETCH_BY_NAME, 1))
    assert values(found["after", 0].records) == []
    client.answer(ApiKey.PRODUCE, PRODUCE_BY_NAME, 2)
    assert values(client.fetch("after").records) == [b"x"]


def test_a_long_pipeline_is_answered_whole(client: Client) -> None:
    client.create("pipeline")
    count = 3000
    requests = [
        frame(request_bytes(produce_request([("pipeline", 0, batch(b"x"))]), PRODUCE_BY_NAME, n))
        for n in range(count)
    ]
    client.send(b"".join(requests))
    for number in range(count):
        assert struct.unpack_from(">i", client.receive()) == (number,)
    assert client.fetch("pipeline", offset=count).high_watermark == count


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    request = frame(request_bytes(versions(), 3, 1))
    for position in range(len(request)):
        client.send(request[position : position + 1])
    assert client.answer(ApiKey.API_VERSIONS, 3, 1).error_code == 0


# Backpressure


def test_a_client_that_does_not_read_costs_little(broker: Broker) -> None:
    with Client(broker.bootstrap) as filler:
        filler.create("firehose")
        for _ in range(5):
            filler.produce("firehose", bytes(900_000))
    with Client(broker.bootstrap, receive_buffer=4096) as greedy:
        count = 6
        read = fetch_request([("firehose", 0, 0)])
        for number in range(count):
            greedy.send(frame(request_bytes(read, FETCH_BY_NAME, number)))
        listener = broker.node._listeners["PLAINTEXT"]
        transports = [c._transport for c in listener._connections]
        # One response of 4.5 MB may wait to be read; the next is not built before.
        assert sum(t.get_write_buffer_size() for t in transports if t) < 6_000_000
        with Client(broker.bootstrap) as other:
            assert other.ask(versions()).error_code == 0
        for number in range(count):
            assert struct.unpack_from(">i", greedy.receive()) == (number,)


def test_requests_read_ahead_are_bounded_by_bytes(broker: Broker) -> None:
    with Client(broker.bootstrap) as client:
        client.create("ahead")
        wait = request_bytes(fetch_request([("ahead", 0, 0)], wait_ms=5000), FETCH_BY_NAME, 1)
        # Larger than what the broker reads ahead and the kernel's buffers together.
        large = frame(
            request_bytes(produce_request([("ahead", 0, batch(bytes(900_000)))]), PRODUCE_BY_NAME)
        )
        client.send(frame(wait))
        client.socket.settimeout(0.05)
        sent = 0
        view = memoryview(large * 40)
        while sent < len(view):
            try:
                sent += client.socket.send(view[sent : sent + 65536])
            except TimeoutError:
                break
        assert sent < len(view), "the broker took it all"
        waiting = [c._waiting_bytes for c in broker.node._listeners["PLAINTEXT"]._connections]
        assert max(waiting) < limits.CONNECTION_WAITING_BYTES_MAX + len(large)


def test_a_client_beyond_its_quota_is_muted(broker: Broker) -> None:
    entity = [EntityData("client-id", "wire")]
    with Client(broker.bootstrap) as admin:
        admin.create("muted")

        def quota(rate: float, *, remove: bool = False) -> None:
            change = EntryData(entity, [OpData("producer_byte_rate", rate, remove)])
            answer = admin.ask(AlterClientQuotasRequest([change], False))
            assert answer.entries[0].error_code == 0

        quota(1_000.0)
        try:
            with Client(broker.bootstrap) as client:
                request = produce_request([("muted", 0, batch(bytes(10_300)))])
                first = client.ask(request, PRODUCE_BY_NAME)
                assert first.throttle_time_ms > 0
                assert first.responses[0].partition_responses[0].error_code == 0
                connections = broker.node._listeners["PLAINTEXT"]._connections
                assert any(c._muted is not None for c in tuple(connections))
                # The response came at once, the next one after the throttle time.
                assert client.ask(versions()).error_code == 0
        finally:
            quota(0.0, remove=True)


def test_a_fetch_beyond_the_quota_gets_nothing_and_no_session(broker: Broker) -> None:
    entity = [EntityData("client-id", "wire")]
    with Client(broker.bootstrap) as client:
        client.create("thirst")
        for _ in range(3):
            client.produce("thirst", bytes(300_000))
        change = EntryData(entity, [OpData("consumer_byte_rate", 200_000.0, False)])
        client.ask(AlterClientQuotasRequest([change], False))
        try:
            before = len(broker.node._services.fetch_sessions)
            answer = client.fetch_all(("thirst", 0, 0), session=(0, 0))
            while not answer.throttle_time_ms:
                client.fetch_all(session=(answer.session_id, -1))
                answer = client.fetch_all(("thirst", 0, 0), session=(0, 0))
            assert (answer.session_id, told(answer)) == (0, {})
            assert len(broker.node._services.fetch_sessions) == before
        finally:
            with Client(broker.bootstrap) as admin:
                removal = EntryData(entity, [OpData("consumer_byte_rate", 0.0, True)])
                admin.ask(AlterClientQuotasRequest([removal], False))


# Closing


def test_a_half_closed_client_still_gets_its_responses(client: Client) -> None:
    client.create("half")
    slow = request_bytes(fetch_request([("half", 0, 0)], wait_ms=30), FETCH_BY_NAME, 1)
    client.send(frame(slow) + frame(request_bytes(versions(), 3, 2)))
    client.socket.shutdown(socket.SHUT_WR)
    assert struct.unpack_from(">i", client.receive()) == (1,)
    assert struct.unpack_from(">i", client.receive()) == (2,)
    assert client.is_closed()


def test_a_client_that_closes_is_forgotten() -> None:
    with Broker() as broker:
        with Client(broker.bootstrap) as client:
            client.ask(versions())
            client.socket.shutdown(socket.SHUT_WR)
            assert client.is_closed()
        with Client(broker.bootstrap) as client:
            client.ask(versions())
            assert len(broker.node._listeners["PLAINTEXT"]) == 1


def test_a_failing_handler_closes_only_its_connection(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    services = broker.node._services
    with Client(broker.bootstrap) as victim, monkeypatch.context() as patch:
        patch.setattr(services.image, "topic_names", fail)
        victim.send(frame(request_bytes(MetadataRequest(None), 9)))
        assert victim.is_closed()
    assert client.ask(versions()).error_code == 0
