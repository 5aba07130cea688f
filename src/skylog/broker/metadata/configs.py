"""Effective settings: the node's own, the cluster's dynamic ones, each topic's overrides.

A topic's effective settings are computed once and cached until metadata changes them: a produce
request finds its rules by one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from skylog.controller.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.ids import parse_node_id
from skylog.kernel.logging import get_logger, hub
from skylog.kernel.settings import describe as shown
from skylog.kernel.settings import dynamic
from skylog.kernel.settings.remote_topics import SYSTEM_STILL_NEEDED, was_remote
from skylog.kernel.settings.synonyms import Layers
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.kernel.settings.topics import log_config_values, produce_limits, topic_values
from skylog.kernel.topics import CLUSTER_METADATA, is_internal, topic_name_fault
from skylog.log.config import LogConfig
from skylog.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from skylog.wire.topic_rules import TopicRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from skylog.controller.image import ClusterImage, Delta
    from skylog.kernel.settings import BrokerSettings

log = get_logger("broker.configs")
Change = tuple[str, int, str | None]


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The effective settings of a topic."""

    rules: TopicRules
    log: LogConfig


class Configs:
    """Resolves settings against the broker's image of the cluster."""

    def __init__(self, settings: BrokerSettings, image: ClusterImage) -> None:
        self.current = settings
        self._static = settings
        self._image = image
        self._node = ConfigResource(ConfigResourceType.BROKER, str(settings.node.node_id))
        self._topics: dict[str, TopicConfig] = {}
        self._listeners: list[Callable[[BrokerSettings], None]] = []

    # Topics

    def topic(self, name: str) -> TopicConfig:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = self._resolve(name)
        return found

    def topic_rules(self, name: str) -> TopicRules:
        return self.topic(name).rules

    def log_config(self, name: str) -> LogConfig:
        return self.topic(name).log

    def deletes_records(self, name: str) -> bool:
        """Whether records may be deleted; a topic that is only compacted keeps them."""
        config = self.log_config(name)
        return config.deletes or not config.compacts

    def _resolve(self, name: str) -> TopicConfig:
        values = topic_values(self._image.topic_configs(name), self.current)
        limits = asdict(produce_limits(values, self.current))
        log_config = LogConfig.from_mapping(log_config_values(values, self.current))
        log_config = replace(log_config, remote=self._is_remote(name, log_config))
        rules = TopicRules(**limits, segment_bytes=log_config.segment_bytes)
        return TopicConfig(rules, log_config)

    def _is_remote(self, name: str, config: LogConfig) -> bool:
        """Whether a part of a topic's logs may be in the object store only."""
        topic = self._image.topic(name)
        # Diskless topics are never compacted, and those that brokers compact by default keep what
        # only remote segments have.
        is_compacted = config.compacts and not (topic is not None and topic.diskless_enabled)
        return (
            self._static.tiered.enabled
            and config.remote_storage_enable
            and not is_compacted
            and not is_internal(name)
            and name not in (METADATA_TOPIC, CLUSTER_METADATA)
        )

    def check_remote_topics(self) -> None:
        """ConfigError if topics are remote and this broker could not read what is."""
        if not self.current.tiered.enabled:
            for resource, overrides in self._image.configs.by_resource.items():
                if resource.type == ConfigResourceType.TOPIC and was_remote(overrides):
                    raise ConfigError(SYSTEM_STILL_NEEDED)

    # Changes

    def on_change(self, listener: Callable[[BrokerSettings], None]) -> None:
        """Call ``listener`` with the node's settings whenever dynamic ones change."""
        self._listeners.append(listener)

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        for topic in delta.topics_deleted.values():
            self._topics.pop(topic.name, None)
        for resource in delta.configs:
            if resource.type == ConfigResourceType.TOPIC:
                self._topics.pop(resource.name, None)
        if self._touches_node(delta):
            self._topics.clear()
            self._apply_dynamic()

    def changed_topics(self, delta: Delta) -> Iterable[str]:
        """The topics whose settings a delta changed."""
        if self._touches_node(delta):
            return self._image.topic_names()
        return [r.name for r in delta.configs if r.type == ConfigResourceType.TOPIC]

    def _touches_node(self, delta: Delta) -> bool:
        return self._node in delta.configs or CLUSTER_DEFAULT in delta.configs

    def _apply_dynamic(self) -> None:
        layers = self._layers()
        try:
            self.current = self._static.with_dynamic(layers.dynamic_default, layers.dynamic_broker)
        except ConfigError as error:
            # It was validated before it was written, but this node's static settings may differ.
            log.error("dynamic settings cannot be used here", why=str(error))
            return
        for listener in self._listeners:
            listener(self.current)

    def _layers(self) -> Layers:
        configs = self._image.configs
        return Layers(configs.of(self._node), configs.of(CLUSTER_DEFAULT), self._static.static)

    def check_broker_change(self, name: str, changes: Sequence[Change]) -> None:
        """Refuse a change of dynamic settings that this broker could not follow."""
        if name:
            self._require_this_node(name)
        resource = self._node if name else CLUSTER_DEFAULT
        texts = dynamic.apply_changes(self._image.configs.of(resource), changes)
        dynamic.validate_broker_configs(texts, self._layers(), per_broker=bool(name))

    def alter_loggers(self, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
        dynamic.validate_logger_changes(self._static.node.node_id, name, changes, hub())
        if not validate_only:
            dynamic.apply_logger_changes(changes, hub())

    def _require_this_node(self, name: str) -> None:
        expected = self._static.node.node_id
        number = parse_node_id(name)
        if number is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
            )
        if number != expected:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {expected}, but received {name}",
            )

    # Descriptions

    def configured(self, kind: ConfigResourceType) -> list[str]:
        """The resources of a kind that have their own settings."""
        return sorted(r.name for r in self._image.configs.by_resource if r.type == kind)

    def describe(
        self,
        kind: ConfigResourceType,
        name: str,
        keys: Collection[str] | None,
        *,
        synonyms: bool,
        documentation: bool,
    ) -> list[DescribeConfigsResourceResult]:
        """The settings of a resource as DescribeConfigs answers them."""
        return [
            _result(entry, synonyms=synonyms, documentation=documentation)
            for entry in self._entries(kind, name, keys)
        ]

    def _entries(
        self, kind: ConfigResourceType, name: str, keys: Collection[str] | None
    ) -> list[shown.ConfigEntry]:
        overrides: Mapping[str, str] = self._image.configs.of(ConfigResource(kind, name))
        layers = self._layers()
        if kind is ConfigResourceType.TOPIC:
            fault = topic_name_fault(name)
            if fault is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
            if self._image.topic(name) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return shown.describe_topic_configs(overrides, self.current, layers, keys)
        if kind is ConfigResourceType.BROKER:
            if not name:
                return shown.describe_default_broker_configs(layers, keys)
            self._require_this_node(name)
            return shown.describe_broker_configs(self.current, layers, keys)
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind.name} name must not be empty")
        if kind is ConfigResourceType.BROKER_LOGGER:
            self._require_this_node(name)
            levels = {logger: level.name for logger, level in hub().levels().items()}
            return shown.describe_logger_configs(levels, keys)
        if kind is ConfigResourceType.GROUP:
            return shown.describe_group_configs(overrides, self.current, layers, keys)
        return shown.describe_client_metrics_configs(overrides, keys)


def _result(
    entry: shown.ConfigEntry, *, synonyms: bool, documentation: bool
) -> DescribeConfigsResourceResult:
    others: list[Any] = []
    if synonyms:
        others = [DescribeConfigsSynonym(s.name, s.value, s.source) for s in entry.synonyms]
    return DescribeConfigsResourceResult(
        entry.name,
        entry.value,
        entry.read_only,
        entry.source,
        entry.sensitive,
        others,
        entry.type,
        entry.documentation if documentation else None,
    )
