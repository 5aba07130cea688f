"""Rules between settings: each refusal names the setting, its value and what is allowed."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ConfigError
from skylog.kernel.settings import load_settings
from skylog.kernel.settings.checks import PAIRS
from skylog.kernel.settings.definitions import BROKER

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";'
SASL = ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN")
JAAS = f"listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN}"
TLS = ("listeners=SSL://127.0.0.1:0",)
PEM = ("ssl.keystore.type=PEM", "ssl.keystore.location=server.pem")

REFUSED = [
    (
        ["diskless.commit.age.max.ms=1800000"],
        [
            "diskless.commit.age.max.ms",
            "1800000",
            "diskless.coordinator.orphan.scan.grace.period.ms=3600000",
        ],
    ),
    (["listeners=127.0.0.1:9092"], ["listeners", "NAME://host:port"]),
    (["listeners=PLAINTEXT://h:70000"], ["listeners", "70000", "65535"]),
    (["listeners=PLAINTEXT://h:1,PLAINTEXT://h:2"], ["listeners", "different name"]),
    (["listeners=PLAINTEXT://h:1,SSL://h:1"], ["listeners", "different port"]),
    (["listeners=OTHER://h:1"], ["OTHER", "listener.security.protocol.map", "SASL_SSL"]),
    (
        ["listeners=OTHER://h:1", "listener.security.protocol.map=OTHER:TLS"],
        ["listener.security.protocol.map", "TLS", "SASL_SSL"],
    ),
    (
        ["listener.security.protocol.map=PLAINTEXT"],
        ["listener.security.protocol.map", "name:value"],
    ),
    (["advertised.listeners=SSL://h:1"], ["advertised.listeners", "SSL", "PLAINTEXT"]),
    (["advertised.listeners=PLAINTEXT://0.0.0.0:1"], ["advertised.listeners", "0.0.0.0"]),
    (["listeners=PLAINTEXT://0.0.0.0:0"], ["advertised.listeners", "0.0.0.0", "PLAINTEXT"]),
    (["inter.broker.listener.name=SSL"], ["inter.broker.listener.name", "SSL", "PLAINTEXT"]),
    (
        ["inter.broker.listener.name=PLAINTEXT", "security.inter.broker.protocol=PLAINTEXT"],
        ["inter.broker.listener.name", "security.inter.broker.protocol"],
    ),
    (["controller.listener.names=OTHER,CONTROLLER"], ["controller.listener.names", "OTHER"]),
    (["controller.listener.names=PLAINTEXT,CONTROLLER"], ["listeners", "at least one listener"]),
    (["process.roles=broker"], ["controller.quorum.bootstrap.servers", "process.roles=broker"]),
    (
        ["process.roles=broker", "controller.quorum.bootstrap.servers=h:1"],
        ["controller.listener.names", "process.roles=broker"],
    ),
    (
        ["process.roles=controller", "controller.quorum.voters=1@h:1"],
        ["listeners", "process.roles=controller"],
    ),
    (["process.roles=broker,zookeeper"], ["process.roles", "zookeeper", "broker, controller"]),
    (["controller.quorum.voters=2@h:1"], ["controller.quorum.voters", "2@h:1", "node.id=1"]),
    (["controller.quorum.voters=h:1"], ["controller.quorum.voters", "h:1"]),
    (["node.id=-1"], ["node.id", "-1", "at least 0"]),
    (["group.coordinator.rebalance.protocols=consumer"], ["classic"]),
    (["log.roll.ms=0"], ["log.roll.ms", "0", "at least 1"]),
    (["log.roll.jitter.ms=-1"], ["log.roll.jitter.ms", "-1"]),
    (["log.retention.ms=0"], ["log.retention.ms", "0", "-1"]),
    (["log.retention.hours=-2"], ["log.retention.hours", "-2"]),
    (["log.cleaner.dedupe.buffer.size=1048576"], ["log.cleaner.dedupe.buffer.size", "1 MiB"]),
    (["cordoned.log.dirs=/other"], ["cordoned.log.dirs", "/other", "./skylog-data"]),
    (
        ["queued.max.request.bytes=1"],
        ["queued.max.request.bytes", "1", "socket.request.max.bytes=104857600"],
    ),
    (["max.connections.per.ip=0"], ["max.connections.per.ip", "0", "overrides"]),
    (["max.connections.per.ip.overrides=a:b"], ["max.connections.per.ip.overrides", "a:b"]),
    (["max.connections.per.ip.overrides=a!:1"], ["max.connections.per.ip.overrides", "a!:1"]),
    (
        ["connections.max.idle.ms=100"],
        ["connection.failed.authentication.delay.ms", "connections.max.idle.ms=100"],
    ),
    (["authorizer.class.name=com.example.Mine"], ["authorizer.class.name", "StandardAuthorizer"]),
    (["principal.builder.class=com.example.Mine"], ["principal.builder.class", "Default"]),
    (["create.topic.policy.class.name=P"], ["create.topic.policy.class.name", "policies"]),
    (["alter.config.policy.class.name=P"], ["alter.config.policy.class.name", "policies"]),
    (["config.providers=file"], ["config.providers", "file", "empty"]),
    (
        ["remote.log.metadata.manager.class.name=com.example.Mine"],
        ["remote.log.metadata.manager.class.name", "TopicBasedRemoteLogMetadataManager"],
    ),
    (
        ["remote.log.storage.system.enable=true", "remote.log.metadata.manager.listener.name=X"],
        ["remote.log.metadata.manager.listener.name", "X", "PLAINTEXT"],
    ),
    (
        ["rlmm.config.remote.log.metadata.topic.num.partition=1"],
        ["remote.log.metadata.topic.num.partition=1", "remote.log.metadata.topic.num.partitions"],
    ),
    (
        ["rlmm.config.remote.log.metadata.topic.min.isr=0"],
        ["rlmm.config.", "remote.log.metadata.topic.min.isr", "at least 1"],
    ),
    (["tiered.upload.part.bytes=5242879"], ["tiered.upload.part.bytes", "5242880"]),
    (["remote.log.reader.threads=0"], ["remote.log.reader.threads", "at least 1"]),
    (["http.listener=9464"], ["http.listener", "9464", "host:port"]),
    (["produce.validation=none"], ["produce.validation", "none", "full, header"]),
    (["log.format=xml"], ["log.format", "xml", "auto, text, json"]),
    # Security: what a protocol needs must be there.
    (["listeners=SASL_PLAINTEXT://127.0.0.1:0"], ["sasl.enabled.mechanisms", "GSSAPI", "PLAIN"]),
    ([SASL[0], "sasl.enabled.mechanisms="], ["sasl.enabled.mechanisms", "at least one"]),
    ([*SASL], ["listener.name.sasl_plaintext.plain.sasl.jaas.config", "user_"]),
    (
        [*SASL, JAAS, "controller.quorum.voters=1@h:1"],
        ["sasl.mechanism.inter.broker.protocol", "GSSAPI", "PLAIN"],
    ),
    ([*TLS], ["listener.name.ssl.ssl.keystore.location", "PEM"]),
    ([*TLS, "ssl.keystore.location=k.jks"], ["ssl.keystore.type", "JKS", "PEM"]),
    ([*TLS, "ssl.keystore.key=k"], ["ssl.keystore.key", "ssl.keystore.certificate.chain"]),
    ([*TLS, *PEM, "ssl.truststore.location=t"], ["ssl.truststore.type", "JKS", "PEM"]),
    ([*TLS, *PEM, "ssl.client.auth=maybe"], ["ssl.client.auth", "maybe", "required"]),
    (["listener.name.plaintext.max.connections=x"], ["listener.name.plaintext", "x", "integer"]),
]


@pytest.mark.parametrize(("overrides", "words"), REFUSED, ids=[str(x[0][-1]) for x in REFUSED])
def test_refused(overrides: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {}, overrides)
    for word in words:
        assert word in str(caught.value)


ACCEPTED = [
    ["listeners=PLAINTEXT://:0"],
    ["listeners=PLAINTEXT://[::1]:0"],
    ["listeners=PLAINTEXT://127.0.0.1:9,A://[::1]:9",
     "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,A:PLAINTEXT"],
    ["listeners=EXTERNAL://127.0.0.1:0", "listener.security.protocol.map=EXTERNAL:PLAINTEXT"],
    ["listeners=PLAINTEXT://0.0.0.0:0", "advertised.listeners=PLAINTEXT://example.org:9092"],
    ["listeners=plaintext://127.0.0.1:0"],
    [*SASL, JAAS],
    [SASL[0], "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512"],
    [SASL[0], "listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256"],
    [*TLS, *PEM],
    [*TLS, "ssl.keystore.type=PEM", "ssl.keystore.key=k", "ssl.keystore.certificate.chain=c"],
    ["controller.quorum.voters=1@127.0.0.1:9093"],
    ["log.retention.ms=-1"],
    ["cordoned.log.dirs=*"],
    ["max.connections.per.ip=0", "max.connections.per.ip.overrides=127.0.0.1:5,::1:6"],
    ["authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
    ["http.listener="],
    ["http.listener=127.0.0.1:0"],
    ["process.roles=controller", "listeners=CONTROLLER://127.0.0.1:0",
     "controller.quorum.voters=1@h:1"],
    ["process.roles=broker", "listeners=PLAINTEXT://127.0.0.1:0",
     "controller.quorum.bootstrap.servers=h:1"],
]  # fmt: skip


@pytest.mark.parametrize("overrides", ACCEPTED, ids=[str(x[-1]) for x in ACCEPTED])
def test_accepted(overrides: list[str]) -> None:
    load_settings(None, {}, overrides)


@pytest.mark.parametrize("rule", PAIRS, ids=[f"{left}-{right}" for left, _, right in PAIRS])
def test_pairs_hold_for_defaults_and_are_checked(rule: tuple[str, object, str]) -> None:
    left, _, right = rule
    assert BROKER[left].default <= BROKER[right].default
    high = BROKER[right].default + 1
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {}, [f"{left}={high}"])
    assert str(high) in str(caught.value)


def test_listeners_are_put_together() -> None:
    settings = load_settings(
        None,
        {},
        [
            "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "advertised.listeners=PLAINTEXT://example.org:9092",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
            "connections.max.reauth.ms=10",
            "listener.name.sasl_plaintext.plain.connections.max.reauth.ms=20",
            JAAS,
        ],
    )
    plain, sasl, controller = settings.listeners
    assert (plain.advertised_host, plain.advertised_port, plain.advertised) == (
        "example.org",
        9092,
        True,
    )
    assert not sasl.advertised and sasl.sasl and not sasl.tls
    assert sasl.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert plain.sasl_mechanisms == ()
    jaas = sasl.jaas("PLAIN")
    assert jaas is not None and jaas.reveal() == PLAIN
    assert sasl.reauth_ms_max("PLAIN") == 20
    assert sasl.reauth_ms_max("SCRAM-SHA-256") == 10
    assert (controller.name, controller.controller, controller.port) == ("CONTROLLER", True, 0)
    assert settings.inter_broker_listener == "PLAINTEXT"


def test_a_node_without_a_plaintext_listener_talks_to_itself_by_its_first() -> None:
    settings = load_settings(None, {}, [*SASL, JAAS])
    assert settings.inter_broker_listener == "SASL_PLAINTEXT"
    assert settings.listener("CONTROLLER").protocol == "PLAINTEXT"
