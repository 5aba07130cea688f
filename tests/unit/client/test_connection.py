"""Connections: versions, pipelining, authentication, and failures."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest
import uvloop

from skylog.client.connection import ClientConnection, open_connection
from skylog.client.settings import Address, ClientSettings, SaslLogin, parse_bootstrap
from skylog.kernel import limits
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.secret import Secret
from skylog.kernel.system import System
from skylog.security.authentication import Authentication, SaslSettings
from skylog.security.plain import PlainServer, PlainUsers
from skylog.security.scram import ScramMechanism, ScramServer, create_credential
from skylog.wire.apis import ApiKey
from skylog.wire.messages.metadata_request import MetadataRequest
from skylog.wire.messages.metadata_response import MetadataResponse
from skylog.wire.messages.produce_request import ProduceRequest
from tests.unit.client.support import HANG_UP, SILENCE, FakeBroker, running, settings

CLOCK = ManualClock()
SYSTEM = System(CLOCK, random.Random(1), InlineExecutor())


async def connect(broker: FakeBroker, **changes: object) -> ClientConnection:
    return await open_connection(broker.address, settings(broker, **changes), SYSTEM)


async def test_the_newest_common_version_is_spoken() -> None:
    broker = FakeBroker()
    broker.versions[ApiKey.METADATA] = (1, 9)
    async with running(broker):
        connection = await connect(broker)
        answer = await connection.request(MetadataRequest(topics=[]))
        assert isinstance(answer, MetadataResponse)
        assert answer.cluster_id == "cluster"
        await connection.request(MetadataRequest(topics=[]), version_max=4)
        await connection.close()
    assert [(key, version) for key, version, _ in broker.asked] == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.METADATA, 9),
        (ApiKey.METADATA, 4),
    ]


@pytest.mark.parametrize(
    ("offered", "minimum"), [((0, 0), 1), ((99, 120), 0), (None, 0)], ids=["old", "new", "none"]
)
async def test_no_common_version_is_said_before_anything_is_sent(
    offered: tuple[int, int] | None, minimum: int
) -> None:
    broker = FakeBroker()
    if offered is None:
        del broker.scripts[ApiKey.METADATA]
    else:
        broker.versions[ApiKey.METADATA] = offered
    async with running(broker):
        connection = await connect(broker)
        with pytest.raises(KafkaError, match="METADATA") as refused:
            await connection.request(MetadataRequest(topics=[]), version_min=minimum)
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert not refused.value.ambiguous
        await connection.close()
    assert not broker.requests(ApiKey.METADATA)


async def test_an_old_broker_is_asked_in_its_own_version() -> None:
    broker = FakeBroker()
    broker.api_versions_max = 2
    async with running(broker):
        connection = await connect(broker)
        await connection.close()
    assert [version for _, version, _ in broker.asked] == [4, 2]


async def test_many_requests_are_under_way_at_once() -> None:
    broker = FakeBroker()
    gate = asyncio.Event()

    async def wait(request: MetadataRequest) -> MetadataResponse:
        await gate.wait()
        return broker.metadata(request)

    broker.on(ApiKey.METADATA, wait)
    async with running(broker):
        connection = await connect(broker)
        names = ["t", "u", "v"]
        broker.partitions = dict.fromkeys(names, 1)
        asked = [
            asyncio.ensure_future(connection.request(MetadataRequest(topics=None))) for _ in names
        ]
        await asyncio.sleep(0)
        assert connection.busy
        gate.set()
        assert len(await asyncio.gather(*asked)) == 3
        assert not connection.busy
        await connection.close()


async def test_an_abandoned_request_does_not_confuse_the_next() -> None:
    broker = FakeBroker()
    gate = asyncio.Event()

    async def wait(request: MetadataRequest) -> MetadataResponse:
        await gate.wait()
        return broker.metadata(request)

    broker.on(ApiKey.METADATA, wait)
    async with running(broker):
        connection = await connect(broker)
        first = asyncio.ensure_future(connection.request(MetadataRequest(topics=None)))
        await asyncio.sleep(0)
        first.cancel()
        second = asyncio.ensure_future(connection.request(MetadataRequest(topics=[])))
        await asyncio.sleep(0)
        gate.set()
        assert (await second).topics == []
        assert first.cancelled()
        await connection.close()


@pytest.mark.parametrize(
    "answer",
    [HANG_UP, b"", b"\xff" * 10, b"\x00\x00\x00\x00\x7f\xff\xff\xff"],
    ids=["hang up", "empty", "garbage", "huge array"],
)
async def test_what_may_have_happened_is_not_known_after_a_broken_answer(answer: object) -> None:
    broker = FakeBroker()
    broker.on(ApiKey.METADATA, answer)
    async with running(broker):
        connection = await connect(broker)
        with pytest.raises(KafkaError) as failed:
            await connection.request(MetadataRequest(topics=[]))
        assert failed.value.code is ErrorCode.NETWORK_EXCEPTION
        assert failed.value.ambiguous
        assert not connection.usable
        with pytest.raises(KafkaError, match="closed") as refused:
            await connection.request(MetadataRequest(topics=[]))
        assert not refused.value.ambiguous
        await connection.close()


async def test_no_answer_in_time_ends_the_connection() -> None:
    broker = FakeBroker()
    broker.on(ApiKey.METADATA, SILENCE)
    async with running(broker):
        connection = await connect(broker, request_timeout_ms=20)
        with pytest.raises(KafkaError, match="did not answer METADATA") as late:
            await connection.request(MetadataRequest(topics=[]))
        assert late.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert late.value.ambiguous
        assert not connection.usable
        await connection.close()


async def test_an_answer_that_is_too_large_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker()
    async with running(broker):
        monkeypatch.setattr(limits, "CLIENT_RESPONSE_BYTES_MAX", 2000)
        connection = await connect(broker)
        broker.partitions = {"t": 10}
        await connection.request(MetadataRequest(topics=None))
        broker.partitions = {"t": 200}
        with pytest.raises(KafkaError, match="2000 are allowed"):
            await connection.request(MetadataRequest(topics=None))
        await connection.close()


async def test_requests_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_IN_FLIGHT_REQUESTS_MAX", 2)
    broker = FakeBroker()
    gate = asyncio.Event()
    arrived = asyncio.Event()

    async def wait(request: MetadataRequest) -> MetadataResponse:
        arrived.set()
        await gate.wait()
        return broker.metadata(request)

    broker.on(ApiKey.METADATA, wait)
    async with running(broker):
        connection = await connect(broker)
        asked = [
            asyncio.ensure_future(connection.request(MetadataRequest(topics=[]))) for _ in range(5)
        ]
        await arrived.wait()
        assert len(connection._waiting) == 2
        gate.set()
        await asyncio.gather(*asked)
        await connection.close()


async def test_a_request_without_answer() -> None:
    broker = FakeBroker()
    broker.on(ApiKey.PRODUCE, SILENCE)
    async with running(broker):
        connection = await connect(broker)
        await connection.send(ProduceRequest(acks=0))
        assert not connection.busy
        await connection.request(MetadataRequest(topics=[]))
        await connection.close()
    assert len(broker.requests(ApiKey.PRODUCE)) == 1


async def test_no_broker_listens() -> None:
    broker = FakeBroker()
    async with running(broker):
        pass
    with pytest.raises(KafkaError, match=r"no connection to 127\.0\.0\.1:") as refused:
        await connect(broker)
    assert refused.value.code is ErrorCode.NETWORK_EXCEPTION
    assert refused.value.retriable


# Authentication-----------------------------------------------------------------------------


def with_sasl(broker: FakeBroker, reauth_ms: int = 0) -> None:
    """Answer as a broker's listener does."""
    rng = random.Random(3)
    users = PlainUsers({"alice": Secret("secret")}, rng)
    stored = create_credential(ScramMechanism.SHA_256, Secret("secret"), rng)
    mechanisms = {
        "PLAIN": lambda: PlainServer(users),
        "SCRAM-SHA-256": lambda: ScramServer(
            ScramMechanism.SHA_256, lambda _, name: stored if name == "alice" else None, "n", b"k"
        ),
    }
    state = Authentication(SaslSettings(mechanisms, dict.fromkeys(mechanisms, reauth_ms)))
    broker.on(ApiKey.SASL_HANDSHAKE, lambda request: state.handshake(request.mechanism, 1, 0))
    broker.on(
        ApiKey.SASL_AUTHENTICATE, lambda request: state.authenticate(bytes(request.auth_bytes), 0)
    )


def login(mechanism: str, password: str = "secret") -> SaslLogin:
    return SaslLogin(mechanism, "alice", Secret(password))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_client_logs_in(mechanism: str) -> None:
    broker = FakeBroker()
    with_sasl(broker)
    async with running(broker):
        connection = await connect(broker, sasl=login(mechanism))
        await connection.request(MetadataRequest(topics=[]))
        await connection.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_wrong_password_is_final(mechanism: str) -> None:
    broker = FakeBroker()
    with_sasl(broker)
    async with running(broker):
        with pytest.raises(KafkaError, match="Authentication failed") as refused:
            await connect(broker, sasl=login(mechanism, "wrong"))
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not refused.value.retriable


async def test_a_mechanism_that_is_not_offered_is_named() -> None:
    broker = FakeBroker()
    with_sasl(broker)
    async with running(broker):
        with pytest.raises(KafkaError, match="does not offer SCRAM-SHA-512; it offers PLAIN"):
            await connect(broker, sasl=login("SCRAM-SHA-512"))


async def test_a_session_is_given_up_before_it_ends() -> None:
    broker = FakeBroker()
    with_sasl(broker, reauth_ms=10_000)
    async with running(broker):
        connection = await connect(broker, sasl=login("PLAIN"))
        assert connection.usable
        CLOCK.advance(8499)
        assert connection.usable
        CLOCK.advance(2)
        assert not connection.usable
        await connection.close()


# Settings ---------------------------------------------------------------------------------

JAAS = 'x.PlainLoginModule required username="alice" password="secret";'


def test_settings_are_read_from_properties() -> None:
    found = ClientSettings.of(
        {
            "bootstrap.servers": "a:1, [::1]:2",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS,
        }
    )
    assert found.bootstrap == (Address("a", 1), Address("::1", 2))
    assert [str(address) for address in found.bootstrap] == ["a:1", "[::1]:2"]
    assert found.sasl == login("PLAIN")
    assert found.tls is None
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, "bootstrap.servers is empty"),
        ({"bootstrap.servers": "a"}, "allowed is host:port"),
        ({"bootstrap.servers": "a:b"}, "allowed is host:port"),
        ({"bootstrap.servers": "a:65536"}, "allowed is host:port"),
        ({"bootstrap.servers": "a:1", "security.protocol": "HTTP"}, "allowed are PLAINTEXT"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"}, "sasl.jaas.config is not"),
        (
            {
                "bootstrap.servers": "a:1",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.jaas.config": "x required;",
            },
            "needs username and password",
        ),
        (
            {
                "bootstrap.servers": "a:1",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.jaas.config": JAAS,
            },
            "sasl.mechanism is 'GSSAPI'",
        ),
    ],
)
def test_settings_that_cannot_work_say_why(properties: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ClientSettings.of(properties)
    assert parse_bootstrap("a:65535") == (Address("a", 65535),)


def test_a_connection_that_is_given_up_as_it_opens_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvloop closes the socket of a cancelled connect without telling the protocol."""
    monkeypatch.setattr(limits, "CLIENT_CLOSE_SECONDS_MAX", 0.01)
    made = ClientConnection.connection_made

    async def give_up() -> None:
        broker = FakeBroker()
        async with running(broker), asyncio.timeout(30):
            opening = asyncio.ensure_future(connect(broker))

            def cancel(self: ClientConnection, transport: asyncio.BaseTransport) -> None:
                made(self, transport)
                opening.cancel()

            monkeypatch.setattr(ClientConnection, "connection_made", cancel)
            await asyncio.wait({opening})
            assert opening.cancelled()

    uvloop.run(give_up())


async def test_closing_does_not_wait_for_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that keeps its end open and reads nothing any more."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        address = Address(*silent.getsockname())
        chosen = ClientSettings((address,), connect_timeout_ms=60_000)
        opening = asyncio.ensure_future(open_connection(address, chosen, SYSTEM))
        accepted, _ = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
        with accepted:
            opening.cancel()
            async with asyncio.timeout(30):
                await asyncio.wait({opening})
        assert opening.cancelled()
