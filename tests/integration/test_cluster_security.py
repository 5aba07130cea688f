"""Nodes that authenticate to each other over TLS, and clients whose principals reach the
controller."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ConfigError, ErrorCode
from skylog.testing import Cluster
from skylog.testing.cluster import ClusterNode
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.envelope_request import EnvelopeRequest
from skylog.wire.messages.vote_request import VoteRequest
from tests.integration.cluster_support import SECONDS_MAX
from tests.integration.wire_client import Wire, request_bytes
from tests.waiting import until

PEMS = Path(__file__).parents[1] / "golden" / "tls"
CA = str(PEMS / "ca.pem")
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}
LITERAL, ALLOW = 3, 3
_USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="admin" password="admin-secret" {_USERS};'
)
SETTINGS = {
    # A busy machine must not end a session or move a leader.
    "broker.session.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "60000",
    "listener.security.protocol.map": "SECURE:SASL_SSL,CONTROLLER:SASL_SSL",
    "inter.broker.listener.name": "SECURE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.secure.plain.sasl.jaas.config": JAAS,
    "listener.name.controller.plain.sasl.jaas.config": JAAS,
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": str(PEMS / "server.pem"),
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": CA,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "connection.failed.authentication.delay.ms": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, controllers=3, settings=SETTINGS, listener="SECURE") as running:
        yield running


def wire(node: ClusterNode, user: str) -> Wire:
    tls = ssl.create_default_context(cafile=CA)
    connection = Wire(node.bootstrap, tls=tls, seconds_max=SECONDS_MAX)
    return connection.log_in(user, PASSWORDS[user])


def creation(name: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, partitions, 1)], timeout_ms=30_000)


def allow(cluster: Cluster, name: str) -> None:
    rule = AclCreation(
        ResourceType.TOPIC, name, LITERAL, "User:alice", "*", AclOperation.CREATE, ALLOW
    )
    with wire(cluster.brokers[0], "admin") as admin:
        assert admin.ask(CreateAclsRequest([rule])).results[0].error_code == 0


def test_nodes_authenticate_to_each_other_and_serve_real_clients(cluster: Cluster) -> None:
    login = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": CA,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": PASSWORDS["admin"],
    }
    admin = confluent.AdminClient(login)
    created = admin.create_topics([confluent.NewTopic("real", 4, 1)])
    created["real"].result(timeout=60)
    producer = confluent_kafka.Producer(login)
    for number in range(20):
        producer.produce("real", str(number), partition=number % 4)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        {**login, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["real"])
    found: set[bytes] = set()

    def read() -> bool:
        for message in consumer.consume(20, timeout=0.5):
            assert message.error() is None
            found.add(message.value())
        return len(found) == 20

    until(read)
    consumer.close()


def test_the_controller_authorizes_the_clients_principal(cluster: Cluster) -> None:
    for number, broker in enumerate(cluster.brokers):
        name = f"alices-{number}"
        with wire(broker, "alice") as alice:
            refused = alice.ask(creation(name)).topics[0]
            assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            allow(cluster, name)
            until(lambda a=alice, n=name: a.ask(creation(n)).topics[0].error_code in (0, 36))


def test_changes_count_against_the_clients_quota(cluster: Cluster) -> None:
    for name in ("many-1", "many-2", "many-3"):
        allow(cluster, name)
    entry = EntryData([EntityData("user", "alice")], [OpData("controller_mutation_rate", 1.0)])
    lifted = EntryData(
        [EntityData("user", "alice")], [OpData("controller_mutation_rate", 0.0, remove=True)]
    )
    with wire(cluster.brokers[0], "admin") as admin, wire(cluster.brokers[1], "alice") as alice:
        assert admin.ask(AlterClientQuotasRequest([entry])).entries[0].error_code == 0
        try:
            first = alice.ask(creation("many-1", partitions=100))
            assert first.topics[0].error_code in (0, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            second = alice.ask(creation("many-2", partitions=100))
            assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert second.throttle_time_ms > 0
            # It does not count against any other user, nor against the broker that forwarded it.
            assert admin.ask(creation("many-4", partitions=3)).topics[0].error_code == 0
        finally:
            assert admin.ask(AlterClientQuotasRequest([lifted])).entries[0].error_code == 0


def envelope(
    frame: bytes, principal: bytes | None = b"\0\0\x05User\x06alice\0\0"
) -> EnvelopeRequest:
    return EnvelopeRequest(frame, principal, b"\x7f\0\0\1")


def test_invalid_envelopes_are_refused(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    good = request_bytes(creation("enveloped"), 7)
    heartbeat = request_bytes(BrokerHeartbeatRequest(1, 1, 1, False, False), 1)
    cases = {
        "no principal": (envelope(good, None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        "no address": (
            EnvelopeRequest(good, b"\0\0\x05User\x06alice\0\0", b"\1\2"),
            ErrorCode.INVALID_REQUEST,
        ),
        "not a client's": (envelope(heartbeat), ErrorCode.INVALID_REQUEST),
        "a vote": (envelope(request_bytes(VoteRequest(), 2)), ErrorCode.INVALID_REQUEST),
        "itself": (
            envelope(request_bytes(envelope(good), 0)),
            ErrorCode.INVALID_REQUEST,
        ),
        "no header": (envelope(b"\0"), ErrorCode.UNSUPPORTED_VERSION),
        "half a request": (envelope(good[:-5]), ErrorCode.UNSUPPORTED_VERSION),
        "of the future": (
            envelope(b"\0\x13\0\x63" + good[4:]),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    }
    with wire(active, "admin") as admin:
        for name, (request, code) in cases.items():
            answer = admin.ask(request)
            assert (name, answer.error_code, answer.response_data) == (name, code, None)
        # The request in a valid one is authorized for its principal: alice may not create this.
        answer = admin.ask(envelope(good))
        assert answer.error_code == 0
        assert b"enveloped" in bytes(answer.response_data)
        assert b"\0\x1d" in bytes(answer.response_data)  # TOPIC_AUTHORIZATION_FAILED
        assert answer.metadata_offset >= 0


def test_only_nodes_may_speak_for_others(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    with wire(active, "alice") as alice:
        good = request_bytes(creation("mine"), 7)
        answer = alice.ask(envelope(good, b"\0\0\x05User\x06admin\0\0"))
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert answer.response_data is None


def test_an_inactive_controller_refuses_envelopes(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    other = next(each for each in cluster.controllers if each is not active)
    with wire(other, "admin") as admin:
        named = envelope(request_bytes(creation("there"), 7), b"\0\0\x05User\x06admin\0\0")
        answer = admin.ask(named)
        assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"sasl.mechanism.controller.protocol": "GSSAPI"}, "sasl.mechanism.controller.protocol"),
        (
            {"listener.name.controller.plain.sasl.jaas.config": JAAS.replace("username", "name")},
            "listener.name.controller.plain.sasl.jaas.config",
        ),
        ({"ssl.truststore.location": "/nowhere/ca.pem"}, "ssl.truststore.location"),
    ],
)
def test_a_failed_login_of_a_node_is_named_at_its_start(broken: dict[str, str], named: str) -> None:
    with (
        pytest.raises(ConfigError, match=named),
        Cluster(brokers=1, controllers=1, settings={**SETTINGS, **broken}, listener="SECURE"),
    ):
        pass
