"""Real clients authenticate: SASL and TLS in every combination, certificates, session expiry."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import shutil
import ssl
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import confluent_kafka.admin as confluent
import pytest
from aiokafka.errors import KafkaError as AiokafkaError

from skylog.kernel.errors import ConfigError
from skylog.kernel.errors import ErrorCode as Code
from skylog.testing import Broker
from skylog.wire.messages.metadata_request import MetadataRequest
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Closed, Wire
from tests.ports import free_port

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its files with a function that Python deprecates
    import kafka

PEMS = Path(__file__).parents[1] / "golden" / "tls"
pytestmark = [
    pytest.mark.foreign_clients,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CA = str(PEMS / "ca.pem")
PASSWORD = "alice's secret, with spaces & ünïcödé"
SCRAM = {
    "SCRAM-SHA-256": confluent.ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": confluent.ScramMechanism.SCRAM_SHA_512,
}
MECHANISMS = ("PLAIN", *SCRAM)
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="admin" password="admin-secret" user_admin="admin-secret" user_alice="{PASSWORD}";'
)
# Listener → protocol, as clients name it.
PROTOCOLS = {
    "SASL": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "NAMED": "SSL",
    "BOTH": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}
SETTINGS = {
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in (*PROTOCOLS, "CONTROLLER")),
    "listener.security.protocol.map": ",".join(
        f"{name}:{protocol}" for name, protocol in {**PROTOCOLS, "CONTROLLER": "PLAINTEXT"}.items()
    ),
    "inter.broker.listener.name": "SASL",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    **{
        f"listener.name.{name}.plain.sasl.jaas.config": PLAIN_JAAS
        for name in ("sasl", "both", "short")
    },
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": CA,
    "ssl.keystore.location": str(PEMS / "server.pem"),
    "listener.name.mtls.ssl.client.auth": "required",
    "listener.name.named.ssl.client.auth": "requested",
    "listener.name.named.ssl.principal.mapping.rules": r"RULE:^CN=([^,]+).*$/$1/L,DEFAULT",
    "listener.name.short.connections.max.reauth.ms": "1500",
    "connection.failed.authentication.delay.ms": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
ALICE = "User:alice"
# The certificate's name as Kafka writes it (RFC 2253).
CERTIFICATE = r"User:CN=alice,OU=dev,O=Acme\, Inc,C=DE"
_TOPICS = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        with admin(running) as client:
            for name, mechanism in SCRAM.items():
                info = confluent.ScramCredentialInfo(mechanism, 4096)
                secret = f"{PASSWORD} {name}".encode()
                change = confluent.UserScramCredentialUpsertion("alice", info, secret)
                for done in client.alter_user_scram_credentials([change]).values():
                    done.result(10)
        yield running


@contextlib.contextmanager
def admin(broker: Broker) -> Iterator[confluent.AdminClient]:
    yield confluent.AdminClient(librdkafka(broker, "SASL", "PLAIN", "admin", "admin-secret"))


def grant(broker: Broker, principal: str, topic: str) -> None:
    def acl(
        kind: confluent.ResourceType, name: str, operation: confluent.AclOperation
    ) -> confluent.AclBinding:
        return confluent.AclBinding(
            kind,
            name,
            confluent.ResourcePatternType.LITERAL,
            principal,
            "*",
            operation,
            confluent.AclPermissionType.ALLOW,
        )

    kinds, operations = confluent.ResourceType, confluent.AclOperation
    with admin(broker) as client:
        for done in client.create_topics([confluent.NewTopic(topic, 1)]).values():
            done.result(10)
        acls = [acl(kinds.TOPIC, topic, o) for o in (operations.READ, operations.WRITE)]
        acls.append(acl(kinds.GROUP, "group", operations.READ))
        acls.append(acl(kinds.BROKER, "kafka-cluster", operations.IDEMPOTENT_WRITE))
        for done in client.create_acls(acls).values():
            done.result(10)


def secret_of(mechanism: str) -> str:
    return PASSWORD if mechanism == "PLAIN" else f"{PASSWORD} {mechanism}"


# Three clients, each of which sends two records and reads them again


class Addressed(Protocol):
    """A broker in this process or in another one."""

    def address(self, listener: str, /) -> str: ...


def librdkafka(
    broker: Addressed,
    listener: str,
    mechanism: str | None = None,
    user: str = "alice",
    password: str | None = None,
    certificate: str | None = None,
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.address(listener),
        "security.protocol": PROTOCOLS[listener],
        "ssl.ca.location": CA,
        "log_level": 0,
        "error_cb": lambda _: None,
    }
    if mechanism is not None:
        config |= {
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password or secret_of(mechanism),
        }
    if certificate is not None:
        path = str(PEMS / f"{certificate}.pem")
        config |= {"ssl.certificate.location": path, "ssl.key.location": path}
    return config


def with_librdkafka(broker: Addressed, topic: str, *how: Any, **more: Any) -> list[bytes]:
    config = librdkafka(broker, *how, **more)
    producer = confluent_kafka.Producer({**config, "linger.ms": 0})
    failures: list[Any] = []
    for value in (b"one", b"two"):
        producer.produce(topic, value, on_delivery=lambda e, _: failures.append(e) if e else None)
    assert producer.flush(20) == 0
    assert not failures
    consumer = confluent_kafka.Consumer({**config, "group.id": "group"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = []
    for message in consumer.consume(2, 20):
        assert message.error() is None
        found.append(message.value())
    consumer.close()
    return found


def context(certificate: str | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=CA)
    if certificate is not None:
        made.load_cert_chain(PEMS / f"{certificate}.pem")
    return made


def python_settings(
    broker: Addressed,
    listener: str,
    mechanism: str | None = None,
    user: str = "alice",
    password: str | None = None,
    certificate: str | None = None,
) -> dict[str, Any]:
    """Settings that aiokafka and kafka-python share."""
    config: dict[str, Any] = {
        "bootstrap_servers": broker.address(listener),
        "security_protocol": PROTOCOLS[listener],
    }
    if "SSL" in PROTOCOLS[listener]:
        config["ssl_context"] = context(certificate)
    if mechanism is not None:
        config |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password or secret_of(mechanism),
        }
    return config


def with_aiokafka(broker: Addressed, topic: str, *how: Any, **more: Any) -> list[bytes]:
    config = python_settings(broker, *how, **more)

    async def run() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            for value in (b"one", b"two"):
                await producer.send_and_wait(topic, value)
        consumer = aiokafka.AIOKafkaConsumer(**config, auto_offset_reset="earliest")
        async with consumer:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            return [(await consumer.getone()).value for _ in range(2)]

    return asyncio.run(run())


def with_kafka_python(broker: Addressed, topic: str, *how: Any, **more: Any) -> list[bytes]:
    config = python_settings(broker, *how, **more)
    producer = kafka.KafkaProducer(**config)
    try:
        for value in (b"one", b"two"):
            producer.send(topic, value).get(20)
    finally:
        producer.close()
    consumer = kafka.KafkaConsumer(
        **config, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=20_000
    )
    try:
        consumer.assign([kafka.TopicPartition(topic, 0)])
        return [record.value for record in itertools.islice(consumer, 2)]
    finally:
        consumer.close()


RoundTrip = Callable[..., list[bytes]]
CLIENTS: dict[str, RoundTrip] = {
    "librdkafka": with_librdkafka,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
}
round_trips = pytest.mark.parametrize("round_trip", CLIENTS.values(), ids=CLIENTS)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("kafka", "aiokafka", "asyncio"):
        caplog.set_level(logging.CRITICAL + 1, logger=name)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Clients leave sockets and transports to the garbage collector: collect them here, where that
    is expected, and not during a later test."""
    yield
    gc.collect()


@round_trips
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL", "BOTH"])
def test_users_with_passwords(
    broker: Broker, round_trip: RoundTrip, listener: str, mechanism: str
) -> None:
    topic = next(_TOPICS)
    grant(broker, ALICE, topic)
    assert round_trip(broker, topic, listener, mechanism) == [b"one", b"two"]


@round_trips
def test_tls_without_a_certificate_is_anonymous(broker: Broker, round_trip: RoundTrip) -> None:
    topic = next(_TOPICS)
    grant(broker, "User:ANONYMOUS", topic)
    assert round_trip(broker, topic, "TLS") == [b"one", b"two"]


@round_trips
@pytest.mark.parametrize(("listener", "principal"), [("MTLS", CERTIFICATE), ("NAMED", ALICE)])
def test_a_certificate_is_a_principal(
    broker: Broker, round_trip: RoundTrip, listener: str, principal: str
) -> None:
    topic = next(_TOPICS)
    grant(broker, principal, topic)
    assert round_trip(broker, topic, listener, certificate="client") == [b"one", b"two"]


@pytest.mark.parametrize(
    ("listener", "principal"),
    [("MTLS", ALICE), ("NAMED", CERTIFICATE), ("NAMED", "User:Alice"), ("MTLS", "User:alic")],
)
def test_another_principals_permission_does_not_help(
    broker: Broker, listener: str, principal: str
) -> None:
    topic = next(_TOPICS)
    grant(broker, principal, topic)
    client = confluent.AdminClient(librdkafka(broker, listener, certificate="client"))
    seen = client.list_topics(topic, timeout=20).topics[topic]
    assert seen.error is not None
    assert seen.error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


# The process that users start has another event loop, with its own TLS


@dataclass
class Started:
    addresses: dict[str, str]

    def address(self, listener: str, /) -> str:
        return self.addresses[listener]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addressed]:
    directory = tmp_path_factory.mktemp("tls") / "data"
    listeners = {name: f"127.0.0.1:{free_port()}" for name in ("MTLS", "BOTH")}
    settings = {
        **SETTINGS,
        "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items())
        + ",CONTROLLER://127.0.0.1:0",
        "inter.broker.listener.name": "BOTH",
        "super.users": f"User:admin;User:alice;{CERTIFICATE}",
    }
    unused = ("listener.name.sasl.", "listener.name.short.", "listener.name.named.")
    settings = {key: value for key, value in settings.items() if not key.startswith(unused)}
    with BrokerProcess(directory, settings):
        yield Started(listeners)


@round_trips
@pytest.mark.parametrize(
    ("listener", "more"), [("MTLS", {"certificate": "client"}), ("BOTH", {"mechanism": "PLAIN"})]
)
def test_the_process_that_users_start(
    started: Addressed, round_trip: RoundTrip, listener: str, more: dict[str, str]
) -> None:
    assert round_trip(started, next(_TOPICS), listener, **more) == [b"one", b"two"]


# Failed authentication


def fails_in_librdkafka(config: dict[str, Any]) -> confluent_kafka.KafkaError:
    """The first error that librdkafka reports."""
    errors: list[confluent_kafka.KafkaError] = []
    client = confluent.AdminClient({**config, "error_cb": errors.append})
    for _ in range(400):
        client.poll(0.05)
        found = [e for e in errors if e.code() != confluent_kafka.KafkaError._ALL_BROKERS_DOWN]
        if found:
            return found[0]
    raise AssertionError("no error")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
def test_wrong_credentials(broker: Broker, mechanism: str, user: str, password: str) -> None:
    config = librdkafka(broker, "SASL", mechanism, user, password)
    error = fails_in_librdkafka(config)
    assert error.code() == confluent_kafka.KafkaError._AUTHENTICATION
    settings = python_settings(broker, "SASL", mechanism, user, password)
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(**settings, bootstrap_timeout_ms=300)
    with pytest.raises(AiokafkaError):
        asyncio.run(_connect(settings))


async def _connect(settings: dict[str, Any]) -> None:
    producer = aiokafka.AIOKafkaProducer(**settings)
    try:
        await producer.start()
    finally:
        await producer.stop()


def test_the_password_of_one_mechanism_is_not_that_of_another(broker: Broker) -> None:
    config = librdkafka(broker, "SASL", "SCRAM-SHA-256", password=secret_of("SCRAM-SHA-512"))
    assert fails_in_librdkafka(config).code() == confluent_kafka.KafkaError._AUTHENTICATION


def test_a_deleted_user_is_refused(broker: Broker) -> None:
    mechanism = SCRAM["SCRAM-SHA-256"]
    info = confluent.ScramCredentialInfo(mechanism, 4096)
    with admin(broker) as client:
        change = confluent.UserScramCredentialUpsertion("guest", info, b"guest-secret")
        client.alter_user_scram_credentials([change])["guest"].result(10)
        config = librdkafka(broker, "SASL", "SCRAM-SHA-256", "guest", "guest-secret")
        assert confluent.AdminClient(config).list_topics(timeout=20).brokers
        gone = confluent.UserScramCredentialDeletion("guest", mechanism)
        client.alter_user_scram_credentials([gone])["guest"].result(10)
    assert fails_in_librdkafka(config).code() == confluent_kafka.KafkaError._AUTHENTICATION


@pytest.mark.parametrize("certificate", [None, "stranger"])
def test_a_listener_that_requires_a_certificate_of_its_authority(
    broker: Broker, certificate: str | None
) -> None:
    # With TLS 1.3 a client learns of it only when it reads.
    with (
        pytest.raises((OSError, Closed)),
        Wire(broker.address("MTLS"), tls=context(certificate)) as wire,
    ):
        wire.ask(MetadataRequest())


def test_plaintext_to_a_tls_listener_and_back(broker: Broker) -> None:
    with Wire(broker.address("TLS")) as wire, pytest.raises(Closed):
        wire.ask(MetadataRequest())
    with pytest.raises(OSError):
        Wire(broker.address("SASL"), tls=context(None))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_of_tls(broker: Broker, version: ssl.TLSVersion) -> None:
    chosen = context(None)
    chosen.minimum_version = chosen.maximum_version = version
    with Wire(broker.address("TLS"), tls=chosen) as wire:
        assert wire.ask(MetadataRequest()).brokers
        assert wire.socket.version() == version.name.replace("_", ".")


def test_old_versions_of_tls_are_refused(broker: Broker) -> None:
    old = context(None)
    with pytest.warns(DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError):
        Wire(broker.address("TLS"), tls=old)


# Certificates change


def served_name(broker: Broker, ca: str) -> object:
    trusting = ssl.create_default_context(cafile=ca)
    trusting.check_hostname = False
    with Wire(broker.address("TLS"), tls=trusting) as wire:
        assert wire.ask(MetadataRequest()).brokers
        subject = wire.socket.getpeercert()["subject"]
    return dict(pair[0] for pair in subject)["commonName"]


def test_a_renewed_certificate_is_loaded(tmp_path: Path) -> None:
    store = tmp_path / "server.pem"
    shutil.copy(PEMS / "server.pem", store)
    settings = {
        "listeners": "TLS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "TLS:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "TLS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
    }
    with Broker(settings) as broker, Wire(broker.address("TLS"), tls=context(None)) as earlier:
        assert served_name(broker, CA) == "localhost"
        # An invalid file changes nothing.
        store.write_text("not a certificate")
        with pytest.raises(ConfigError):
            broker.run(broker.node.reload_certificates())
        assert served_name(broker, CA) == "localhost"
        shutil.copy(PEMS / "renewed.pem", store)
        broker.run(broker.node.reload_certificates())
        assert served_name(broker, CA) == "renewed"
        assert earlier.ask(MetadataRequest()).brokers  # connections outlive their certificate


# Sessions end


def authenticate(wire: Wire, user: str = "alice", password: str = PASSWORD) -> Any:
    shaken = wire.ask(SaslHandshakeRequest("PLAIN"))
    if shaken.error_code:
        return shaken
    return wire.ask(SaslAuthenticateRequest(f"\0{user}\0{password}".encode()))


def test_a_session_ends_unless_it_is_renewed(broker: Broker) -> None:
    with Wire(broker.address("SHORT")) as wire:
        assert 0 < authenticate(wire).session_lifetime_ms <= 1500
        with pytest.raises(Closed):
            while True:
                wire.ask(MetadataRequest())


def test_a_session_may_be_renewed(broker: Broker) -> None:
    with Wire(broker.address("SHORT")) as first, Wire(broker.address("SHORT")) as second:
        authenticate(first)
        authenticate(second)
        assert authenticate(second).session_lifetime_ms > 0
        # Too soon after the last authentication.
        assert authenticate(second).error_code == Code.ILLEGAL_SASL_STATE
        with pytest.raises(Closed):
            while True:
                first.ask(MetadataRequest())
                second.ask(MetadataRequest())


@pytest.mark.parametrize(
    ("user", "password"), [("alice", "wrong"), ("admin", "admin-secret")], ids=["wrong", "other"]
)
def test_renewal_as_another_user_fails(broker: Broker, user: str, password: str) -> None:
    with Wire(broker.address("SHORT")) as wire:
        authenticate(wire)
        answer = authenticate(wire, user, password)
        assert answer.error_code == Code.SASL_AUTHENTICATION_FAILED
        assert wire.is_closed()


def test_librdkafka_renews_its_sessions(broker: Broker) -> None:
    topic = next(_TOPICS)
    grant(broker, ALICE, topic)
    errors: list[Any] = []
    config = librdkafka(broker, "SHORT", "SCRAM-SHA-256") | {"error_cb": errors.append}
    producer = confluent_kafka.Producer({**config, "linger.ms": 0})
    delivered: list[int] = []

    def told(error: Any, message: Any) -> None:
        if error:
            errors.append(error)
        else:
            delivered.append(message.timestamp()[1])

    # For at least two session lifetimes, by the producer's clock.
    while not delivered or delivered[-1] - delivered[0] < 3500:
        producer.produce(topic, b"value", on_delivery=told)
        producer.flush(20)
    assert not errors
