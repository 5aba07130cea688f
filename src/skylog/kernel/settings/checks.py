"""Rules between settings: those that Kafka checks at start, and what skylog cannot do.

An unsupported setting is refused if ignoring it would weaken security or lose data; all others that
skylog does not use are accepted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from skylog.kernel.config import Value, format_value
from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.consumer_groups import ASSIGNORS
from skylog.kernel.settings.listeners import ListenerSettings, parse_map
from skylog.kernel.settings.managed_replication import LISTENER_MAP
from skylog.kernel.settings.replication import RACK_AWARE_SELECTOR
from skylog.kernel.settings.tiered import METADATA_MANAGER
from skylog.kernel.validators import parse_host_port

if TYPE_CHECKING:
    from skylog.kernel.settings.broker import BrokerSettings

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
AUTHORIZERS: Final = ("", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]+")

# Java classes that would run inside the broker, and what skylog lacks without them.
_PLUGINS: Final[Mapping[str, str]] = {
    "alter.config.policy.class.name": "policies",
    "create.topic.policy.class.name": "policies",
    "client.quota.callback.class": "quota callbacks",
    "sasl.server.callback.handler.class": "callback handlers",
    "security.providers": "security providers",
    "ssl.engine.factory.class": "engine factories",
}
_UNSUPPORTED: Final[Mapping[str, tuple[Value, ...]]] = {
    "authorizer.class.name": AUTHORIZERS,
    "config.providers": ((),),
    "principal.builder.class": (
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    ),
    "remote.log.metadata.manager.class.name": (METADATA_MANAGER,),
    "replica.selector.class": (None, "", RACK_AWARE_SELECTOR),
}

_AT_MOST: Final = (operator.le, "at most")
_BELOW: Final = (operator.lt, "below")
_GROUP_KINDS: Final = ("consumer", "share", "streams")
Rule = tuple[str, tuple[Callable[[Any, Any], bool], str], str]

# left, how it compares, right
PAIRS: Final[tuple[Rule, ...]] = (
    ("replica.fetch.wait.max.ms", _AT_MOST, "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", _AT_MOST, "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", _AT_MOST, "group.max.session.timeout.ms"),
    ("group.streams.num.standby.replicas", _AT_MOST, "group.streams.max.standby.replicas"),
    *(
        rule
        for kind in _GROUP_KINDS
        for name in ("heartbeat.interval", "session.timeout", "assignment.interval")
        for rule in (
            (f"group.{kind}.min.{name}.ms", _AT_MOST, f"group.{kind}.max.{name}.ms"),
            (f"group.{kind}.min.{name}.ms", _AT_MOST, f"group.{kind}.{name}.ms"),
            (f"group.{kind}.{name}.ms", _AT_MOST, f"group.{kind}.max.{name}.ms"),
        )
    ),
    *(
        (f"group.{kind}.heartbeat.interval.ms", _BELOW, f"group.{kind}.session.timeout.ms")
        for kind in _GROUP_KINDS
    ),
    *(
        rule
        for name in (
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        )
        for rule in (
            (f"group.share.min.{name}", _AT_MOST, f"group.share.{name}"),
            (f"group.share.{name}", _AT_MOST, f"group.share.max.{name}"),
        )
    ),
)


def problem(name: str, value: Value, allowed: str) -> ConfigError:
    shown = "" if value is None else format_value(value)
    return ConfigError(f"Invalid value {shown} for configuration {name}: {allowed}")


def check_texts(texts: Mapping[str, str], values: Mapping[str, Value]) -> None:
    """Refuse unsupported settings, and settings whose texts contradict each other."""
    for name, plural in _PLUGINS.items():
        if values[name]:
            raise problem(name, values[name], f"skylog has no {plural}; only unset is allowed")
    for name, allowed in _UNSUPPORTED.items():
        if values[name] not in allowed:
            shown = " or ".join(format_value(value) or "empty" for value in allowed)
            raise problem(name, values[name], f"skylog supports {shown} only")
    if values["broker.id"] != values["node.id"]:
        raise problem(
            "broker.id", values["broker.id"], f"it must be equal to node.id={values['node.id']}"
        )
    if "classic" not in values["group.coordinator.rebalance.protocols"]:
        raise problem(
            "group.coordinator.rebalance.protocols",
            values["group.coordinator.rebalance.protocols"],
            "the classic protocol cannot be disabled",
        )
    assignors = values["group.consumer.assignors"]
    if not assignors or not set(assignors) <= set(ASSIGNORS):
        raise problem(
            "group.consumer.assignors", assignors, f"skylog has {' and '.join(ASSIGNORS)} only"
        )
    inter_broker = values["inter.broker.listener.name"]
    if inter_broker is not None and "security.inter.broker.protocol" in texts:
        raise problem(
            "inter.broker.listener.name",
            inter_broker,
            "only one of it and security.inter.broker.protocol may be set",
        )


def check_settings(settings: BrokerSettings) -> None:
    """Check the rules between settings; the first violation is raised."""
    for left, (holds, words), right in PAIRS:
        if not holds(settings[left], settings[right]):
            raise problem(
                left, settings[left], f"it must be {words} {right}={format_value(settings[right])}"
            )
    _check_log(settings)
    _check_network(settings)
    _check_quorum(settings)
    _check_roles(settings)
    if settings.node.is_broker:
        _check_broker_listeners(settings)
    for listener in settings.listeners:
        _check_security(listener)
    _check_http(settings)
    _check_diskless(settings)
    _check_zones(settings)
    _check_tiered(settings)


def _check_log(settings: BrokerSettings) -> None:
    for name in ("log.roll.ms", "log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = settings[name]
        if value is not None and value < 1 and (name == "log.roll.ms" or value != -1):
            allowed = "at least 1" if name == "log.roll.ms" else "-1 for unlimited, or at least 1"
            raise problem(name, value, allowed)
    jitter = settings["log.roll.jitter.ms"]
    if jitter is not None and jitter < 0:
        raise problem("log.roll.jitter.ms", jitter, "at least 0")
    threads = settings["log.cleaner.threads"]
    if threads and settings["log.cleaner.dedupe.buffer.size"] // threads <= 1 << 20:
        raise problem(
            "log.cleaner.dedupe.buffer.size",
            settings["log.cleaner.dedupe.buffer.size"],
            f"it must be more than 1 MiB for each of log.cleaner.threads={threads}",
        )
    cordoned = settings["cordoned.log.dirs"]
    unknown = [name for name in cordoned if name not in settings.node.log_dirs]
    if cordoned != ("*",) and unknown:
        raise problem(
            "cordoned.log.dirs", cordoned, f"* or some of {', '.join(settings.node.log_dirs)}"
        )


def _check_network(settings: BrokerSettings) -> None:
    network = settings.network
    if 0 < network.queued_bytes_max < network.request_bytes_max:
        raise problem(
            "queued.max.request.bytes",
            network.queued_bytes_max,
            f"it must be at least socket.request.max.bytes={network.request_bytes_max}",
        )
    key = "max.connections.per.ip.overrides"
    overrides = parse_map(key, network.connections_per_ip_overrides)
    for address, count in overrides.items():
        if not _HOST.fullmatch(address) or not re.fullmatch("[0-9]{1,9}", count):
            raise problem(key, network.connections_per_ip_overrides, "host:count,host:count")
    if network.connections_per_ip_max == 0 and not overrides:
        raise problem("max.connections.per.ip", 0, f"zero is allowed only when {key} is set")
    if 0 <= network.idle_ms_max <= network.failed_authentication_delay_ms:
        raise problem(
            "connection.failed.authentication.delay.ms",
            network.failed_authentication_delay_ms,
            f"it must be below connections.max.idle.ms={network.idle_ms_max}",
        )


def _check_quorum(settings: BrokerSettings) -> None:
    """A combined node without voters and bootstrap servers is a quorum of one."""
    node, quorum = settings.node, settings.quorum
    voters = {int(voter.partition("@")[0]) for voter in quorum.voters}
    if node.is_controller and voters and node.node_id not in voters:
        raise problem(
            "controller.quorum.voters",
            quorum.voters,
            f"it must contain node.id={node.node_id} of this controller",
        )
    if node.is_broker and node.is_controller:
        return
    if not voters and not quorum.bootstrap_servers:
        raise problem(
            "controller.quorum.bootstrap.servers",
            quorum.bootstrap_servers,
            "it or controller.quorum.voters must name the controllers as host:port, because"
            f" process.roles={','.join(node.process_roles)}",
        )
    if quorum.auto_join and not node.is_controller:
        raise problem(
            "controller.quorum.auto.join.enable",
            True,
            f"only a controller joins the quorum, and process.roles={','.join(node.process_roles)}",
        )
    if not node.is_controller and node.node_id in voters:
        raise problem(
            "controller.quorum.voters",
            quorum.voters,
            f"it must not contain node.id={node.node_id}, which is not a controller",
        )


def _check_roles(settings: BrokerSettings) -> None:
    names = settings.listener_texts.controller_names
    listening = {listener.name for listener in settings.listeners}
    key = "controller.listener.names"
    if settings.node.is_controller:
        if not set(names) <= listening:
            raise problem(key, names, f"only names in listeners: {', '.join(sorted(listening))}")
        if not settings.node.is_broker and settings.broker_listeners:
            raise problem(
                "listeners",
                settings.listener_texts.listeners,
                f"only the controller's listeners ({', '.join(names)}) with"
                " process.roles=controller",
            )
    elif set(names) & listening:
        raise problem(key, names, "no name in listeners with process.roles=broker")


def _check_broker_listeners(settings: BrokerSettings) -> None:
    listening = {listener.name for listener in settings.broker_listeners}
    texts = settings.listener_texts
    advertised = {
        entry.partition(":")[0].upper() for entry in texts.advertised or texts.listeners
    } - set(texts.controller_names)
    if not advertised:
        raise problem(
            "advertised.listeners" if texts.advertised else "listeners",
            texts.advertised or texts.listeners,
            "at least one listener that is not in controller.listener.names",
        )
    if not advertised <= listening:
        raise problem(
            "advertised.listeners",
            texts.advertised,
            f"only names in listeners: {', '.join(sorted(listening))}",
        )
    if settings.inter_broker_listener not in advertised:
        raise problem(
            "inter.broker.listener.name",
            settings.inter_broker_listener,
            f"one of the advertised listeners: {', '.join(sorted(advertised))}",
        )
    for listener in settings.broker_listeners:
        if listener.advertised and listener.advertised_host == "0.0.0.0":
            raise problem(
                "advertised.listeners",
                texts.advertised or texts.listeners,
                f"clients cannot reach 0.0.0.0; name a host for {listener.name}",
            )
    inter_broker = settings.listener(settings.inter_broker_listener)
    mechanism = settings.security.inter_broker_mechanism
    others = settings.quorum.voters or settings.quorum.bootstrap_servers
    if others and inter_broker.sasl and mechanism not in inter_broker.sasl_mechanisms:
        raise problem(
            "sasl.mechanism.inter.broker.protocol",
            mechanism,
            f"one of sasl.enabled.mechanisms: {', '.join(inter_broker.sasl_mechanisms)}",
        )


def _check_security(listener: ListenerSettings) -> None:
    """Check that a listener has what its protocol needs."""
    where = f"listener.name.{listener.name.lower()}."
    for mechanism in listener.sasl_mechanisms:
        if mechanism not in MECHANISMS:
            raise problem(
                f"{where}sasl.enabled.mechanisms",
                listener.sasl_mechanisms,
                f"skylog has {', '.join(MECHANISMS)}",
            )
    if listener.sasl and not listener.sasl_mechanisms:
        raise problem(
            f"{where}sasl.enabled.mechanisms", "", f"at least one of {', '.join(MECHANISMS)}"
        )
    if "PLAIN" in listener.sasl_mechanisms and listener.jaas("PLAIN") is None:
        raise problem(
            f"{where}plain.sasl.jaas.config",
            None,
            "PLAIN is enabled, so its users must be given as"
            ' org.apache.kafka.common.security.plain.PlainLoginModule required user_<name>="…";',
        )
    if listener.tls:
        _check_tls(listener, where)


def _check_tls(listener: ListenerSettings, where: str) -> None:
    values = listener.values
    text = values["ssl.keystore.key"] is not None
    if text != (values["ssl.keystore.certificate.chain"] is not None):
        raise ConfigError(
            f"{where}ssl.keystore.key and ssl.keystore.certificate.chain belong together: set both"
        )
    if not text and values["ssl.keystore.location"] is None:
        raise problem(
            f"{where}ssl.keystore.location",
            None,
            f"listener {listener.name} uses TLS and needs a PEM file with key and certificates, or"
            " ssl.keystore.key and ssl.keystore.certificate.chain",
        )
    stores = ["ssl.keystore"]
    if values["ssl.truststore.location"] or values["ssl.truststore.certificates"]:
        stores.append("ssl.truststore")
    for store in stores:
        kind = values[f"{store}.type"]
        if kind.upper() != "PEM":
            raise problem(f"{where}{store}.type", kind, "skylog reads PEM; convert the store")


def _check_http(settings: BrokerSettings) -> None:
    address = settings.observation.http_listener
    if address and parse_host_port(address) is None:
        raise problem("http.listener", address, "host:port with a port up to 65535, or empty")


def _check_diskless(settings: BrokerSettings) -> None:
    """No object that the orphan scan or the cleaner deletes may still be committed."""
    age_ms, grace_ms = settings.diskless.commit_age_max_ms, settings.diskless.grace_ms
    if age_ms * 2 >= grace_ms:
        raise problem(
            "diskless.commit.age.max.ms",
            age_ms,
            f"it must be below half of diskless.coordinator.orphan.scan.grace.period.ms={grace_ms}",
        )


def _check_zones(settings: BrokerSettings) -> None:
    known = {listener.name for listener in settings.broker_listeners}
    for listener in settings.managed_replication.zone_by_listener:
        if settings.node.is_broker and listener not in known:
            raise problem(
                LISTENER_MAP,
                settings.managed_replication.listener_map,
                f"{listener} is not one of the listeners {', '.join(sorted(known))}",
            )


def _check_tiered(settings: BrokerSettings) -> None:
    listener = settings.tiered.metadata_listener
    known = [listener.name for listener in settings.broker_listeners]
    if settings.tiered.enabled and settings.node.is_broker and listener not in (None, *known):
        raise problem(
            "remote.log.metadata.manager.listener.name",
            listener,
            "Should be set as a listener name within valid broker listener name list: "
            + ",".join(known),
        )
    _check_prune_delay(settings)


def _check_prune_delay(settings: BrokerSettings) -> None:
    """What only remote segments have must be in a backup that knows them."""
    is_backed_up = settings.node.is_broker and settings.diskless.storage_url
    delay_ms, interval_ms = settings.tiered.prune_delay_ms, settings.diskless.backup_interval_ms
    if settings.tiered.enabled and is_backed_up and delay_ms < 2 * interval_ms:
        raise problem(
            "diskless.tiering.prune.delay.ms",
            delay_ms,
            f"it must be at least twice diskless.metadata.backup.interval.ms={interval_ms}",
        )
