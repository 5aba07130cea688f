"""``BrokerSettings``: all settings of a node, typed, validated and immutable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skylog.kernel.config import Value
from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.checks import check_settings, check_texts
from skylog.kernel.settings.consumer_groups import ConsumerGroupSettings
from skylog.kernel.settings.definitions import BROKER, REQUIRED
from skylog.kernel.settings.diskless import DisklessSettings
from skylog.kernel.settings.fields import bind
from skylog.kernel.settings.layers import Given, gather
from skylog.kernel.settings.listeners import (
    PREFIX,
    ListenerSettings,
    build_listeners,
    controller_listener,
    is_listener_value,
)
from skylog.kernel.settings.managed_replication import ManagedReplicationSettings
from skylog.kernel.settings.remote_topics import check_local_limits
from skylog.kernel.settings.replication import ReplicationSettings
from skylog.kernel.settings.sections import (
    AccessSettings,
    GroupSettings,
    ListenerTexts,
    LogCleanerSettings,
    LogSettings,
    NetworkSettings,
    NodeSettings,
    ObservationSettings,
    QuorumSettings,
    QuotaSettings,
    TopicSettings,
)
from skylog.kernel.settings.storage import StorageSettings
from skylog.kernel.settings.synonyms import Layers
from skylog.kernel.settings.tiered import TieredSettings, build_tiered
from skylog.kernel.settings.topics import topic_defaults
from skylog.kernel.settings.transactions import TransactionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """A node's settings.

    Sections are typed: ``settings.network.request_bytes_max``. Any setting, used or not, is also
    available under its own name, ``settings["socket.request.max.bytes"]``, or as an attribute with
    underscores for dots, ``settings.socket_request_max_bytes``.

    ``static`` holds the configured texts (what DescribeConfigs calls static), ``values`` the typed
    value of every setting, configured or default.
    """

    node: NodeSettings
    network: NetworkSettings
    quorum: QuorumSettings
    topics: TopicSettings
    log: LogSettings
    log_cleaner: LogCleanerSettings
    replication: ReplicationSettings
    groups: GroupSettings
    consumer_groups: ConsumerGroupSettings
    transactions: TransactionSettings
    quotas: QuotaSettings
    security: AccessSettings
    observation: ObservationSettings
    storage: StorageSettings
    diskless: DisklessSettings
    managed_replication: ManagedReplicationSettings
    tiered: TieredSettings
    listener_texts: ListenerTexts = field(repr=False)
    listeners: tuple[ListenerSettings, ...]
    inter_broker_listener: str
    # How controllers are reached; None if no listener name of theirs is configured.
    controller_access: ListenerSettings | None
    static: Mapping[str, str] = field(repr=False)
    values: Mapping[str, Value] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            value = self.values.get(name.replace("_", "."), self)
            if value is not self:
                return value
        raise AttributeError(f"no setting {name.replace('_', '.')}")

    @property
    def broker_listeners(self) -> tuple[ListenerSettings, ...]:
        return tuple(listener for listener in self.listeners if not listener.controller)

    @property
    def controller_listeners(self) -> tuple[ListenerSettings, ...]:
        return tuple(listener for listener in self.listeners if listener.controller)

    def listener(self, name: str) -> ListenerSettings:
        return next(listener for listener in self.listeners if listener.name == name)

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> BrokerSettings:
        """These settings with the cluster's dynamic settings for all brokers and for this one."""
        layers = Layers(dynamic_broker, dynamic_default, self.static)
        return replace(build_settings(layers.overlaid()), static=self.static)


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> BrokerSettings:
    """Load and check settings: file, SKYLOG_* variables, overrides, in increasing precedence.

    Every problem is a ConfigError that names the setting, its value and what is allowed.
    """
    given = gather(path, environ or {}, overrides, BROKER)
    _check_each(given)
    settings = build_settings({name: entry.text for name, entry in given.items()})
    if settings.node.is_broker and settings.tiered.enabled:
        check_local_limits(topic_defaults(settings))
    return settings


def _check_each(given: Mapping[str, Given]) -> None:
    for name, entry in given.items():
        key = BROKER.get(name)
        if key is None:
            continue
        try:
            key.parse(entry.text)
        except ConfigError as error:
            raise ConfigError(f"{error} ({entry.where}); allowed: {key.allowed}") from error


def build_settings(texts: Mapping[str, str]) -> BrokerSettings:
    """Typed settings from texts by name; raises ConfigError."""
    texts = dict(texts)
    _same_id(texts)
    for name in REQUIRED:
        if name not in texts:
            raise ConfigError(
                f'Missing required configuration "{name}" which has no default value; '
                f"allowed: {BROKER[name].allowed}"
            )
    values = {
        name: key.parse(texts[name]) if name in texts else key.default
        for name, key in BROKER.items()
    }
    check_texts(texts, values)
    effective = {**values, "log.dirs": values["log.dirs"] or values["log.dir"]}
    listener_texts = bind(ListenerTexts, effective)
    explicit_map = "listener.security.protocol.map" in texts
    listeners = (listener_texts, explicit_map, values, _listener_overrides(texts))
    settings = BrokerSettings(
        node=bind(NodeSettings, effective),
        network=bind(NetworkSettings, effective),
        quorum=bind(QuorumSettings, effective),
        topics=bind(TopicSettings, effective),
        log=bind(LogSettings, effective),
        log_cleaner=bind(LogCleanerSettings, effective),
        replication=bind(ReplicationSettings, effective),
        groups=bind(GroupSettings, effective),
        consumer_groups=bind(ConsumerGroupSettings, effective),
        transactions=bind(TransactionSettings, effective),
        quotas=bind(QuotaSettings, effective),
        security=bind(AccessSettings, effective),
        observation=bind(ObservationSettings, effective),
        storage=bind(StorageSettings, effective),
        diskless=bind(DisklessSettings, effective),
        managed_replication=bind(ManagedReplicationSettings, effective),
        tiered=build_tiered(texts, effective),
        listener_texts=listener_texts,
        listeners=build_listeners(*listeners),
        inter_broker_listener=listener_texts.inter_broker_name,
        controller_access=controller_listener(*listeners),
        static=texts,
        values=values,
    )
    check_settings(settings)
    return settings


def _same_id(texts: dict[str, str]) -> None:
    """broker.id is the old name of node.id: either sets both."""
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in texts:
            texts.setdefault(other, texts[name])


def _listener_overrides(
    texts: Mapping[str, str],
) -> dict[str, tuple[dict[str, Value], dict[str, str]]]:
    """Lower-case listener name to its own settings, typed if they are known."""
    found: dict[str, tuple[dict[str, Value], dict[str, str]]] = {}
    for name, text in texts.items():
        if not name.startswith(PREFIX):
            continue
        listener, _, rest = name.removeprefix(PREFIX).partition(".")
        typed, raw = found.setdefault(listener, ({}, {}))
        raw[rest] = text
        if rest in BROKER and is_listener_value(rest):
            try:
                typed[rest] = BROKER[rest].parse(text)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error}; allowed: {BROKER[rest].allowed}") from error
    return found
