"""The controller's view of the settings of topics, brokers, groups and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from skylog.kernel.config import ConfigSource
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.settings import dynamic
from skylog.kernel.settings.broker import BrokerSettings
from skylog.kernel.settings.definitions import TOPIC
from skylog.kernel.settings.describe import ConfigEntry
from skylog.kernel.settings.topic_facts import TOPIC_SYNONYMS
from skylog.kernel.settings.topics import validate_group_configs, validate_topic_configs


class TopicLayers(Protocol):
    """The sources of a topic's setting, the strongest first."""

    @property
    def topic(self) -> Mapping[str, str]: ...

    @property
    def node(self) -> Mapping[str, str]: ...

    @property
    def cluster(self) -> Mapping[str, str]: ...


class ResourceRules:
    """Rules of all resources under the node's current settings."""

    def __init__(self, settings: Callable[[], BrokerSettings]) -> None:
        self._settings = settings
        self._current: tuple[Mapping[str, str], Mapping[str, str], BrokerSettings] | None = None

    def validate(
        self,
        resource: tuple[int, str],
        configs: Mapping[str, str],
        existing: Mapping[str, str],
        layers: TopicLayers | None = None,
    ) -> None:
        """KafkaError unless ``configs`` may be all the overrides of the resource.

        A topic's defaults are the node's and the cluster's dynamic settings in ``layers``, then
        the static ones. A broker's settings were checked by that broker; only its name is checked
        here.
        """
        kind, name = resource
        match kind:
            case dynamic.TOPIC_RESOURCE:
                system = name.startswith("__")
                validate_topic_configs(
                    configs, self._effective(layers), existing=existing, system=system
                )
            case dynamic.BROKER_RESOURCE:
                _check_broker_name(name)
            case dynamic.CLIENT_METRICS_RESOURCE:
                dynamic.validate_client_metrics_configs(name, configs)
            case dynamic.GROUP_RESOURCE:
                if not name:
                    raise dynamic.invalid_request("Default group resources are not allowed.")
                validate_group_configs(configs, self._effective(layers))
            case _:
                raise dynamic.invalid_request(f"Unknown resource type {kind}")

    def _effective(self, layers: TopicLayers | None) -> BrokerSettings:
        if layers is None or not (layers.node or layers.cluster):
            return self._settings()
        if self._current is None or self._current[:2] != (layers.node, layers.cluster):
            node, cluster = dict(layers.node), dict(layers.cluster)
            try:
                settings = self._settings().with_dynamic(cluster, node)
            except ConfigError:  # brokers validated them, with other static settings
                settings = self._settings()
            self._current = (node, cluster, settings)
        return self._current[2]

    def is_list(self, resource_type: int, name: str) -> bool:
        return dynamic.is_list(resource_type, name)

    def default_value(self, resource_type: int, name: str) -> str | None:
        return dynamic.default_value(resource_type, name)

    def topic_value(self, name: str, layers: TopicLayers) -> str | None:
        """A topic's effective value as text."""
        return self.topic_entry(name, layers).value

    def topic_entries(self, layers: TopicLayers) -> list[ConfigEntry]:
        """All effective settings of a topic, sorted by name, as in a CreateTopics response."""
        return [
            self.topic_entry(name, layers)
            for name, key in TOPIC.items()
            if not key.internal or name in layers.topic
        ]

    def topic_entry(self, name: str, layers: TopicLayers) -> ConfigEntry:
        key = TOPIC[name]
        if name in layers.topic:
            return ConfigEntry(name, layers.topic[name], ConfigSource.TOPIC_CONFIG, key.type)
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, layers.node),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, layers.cluster),
            (ConfigSource.STATIC_BROKER_CONFIG, self._settings().static),
        ):
            for synonym in TOPIC_SYNONYMS.get(name, ()):
                if synonym.name in texts:
                    text = texts[synonym.name]
                    shown = text if synonym.factor == 1 else str(int(text) * synonym.factor)
                    return ConfigEntry(name, shown, source, key.type)
        return ConfigEntry(name, key.format(key.default), ConfigSource.DEFAULT_CONFIG, key.type)


def _check_broker_name(name: str) -> None:
    if not name:
        return
    digits = name.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
        )
    if int(name) < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
