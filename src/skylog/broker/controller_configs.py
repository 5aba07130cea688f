"""What the controller asks about settings, answered from the definitions of this node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skylog.controller.image.configs import ConfigResourceType
from skylog.kernel.config import format_value
from skylog.kernel.settings import dynamic
from skylog.kernel.settings.describe import describe_topic_configs
from skylog.kernel.settings.synonyms import Layers
from skylog.kernel.settings.topics import (
    topic_values,
    validate_group_configs,
    validate_topic_configs,
)
from skylog.wire.messages.create_topics_response import CreatableTopicConfigs

if TYPE_CHECKING:
    from skylog.controller.image.configs import ConfigResource
    from skylog.controller.settings import ConfigLayers
    from skylog.kernel.settings import BrokerSettings


class ControllerConfigs:
    """Implements the controller's ``ConfigSchema``."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings

    def validate(
        self, resource: ConfigResource, configs: Mapping[str, str], existing: Mapping[str, str]
    ) -> None:
        kind = ConfigResourceType.of(resource.type)
        if kind is ConfigResourceType.TOPIC:
            validate_topic_configs(configs, self._settings)
        elif kind is ConfigResourceType.GROUP:
            validate_group_configs(configs, self._settings)
        elif kind is ConfigResourceType.CLIENT_METRICS:
            dynamic.validate_client_metrics_configs(resource.name, configs)
        # A broker's settings were checked by that broker.

    def is_list(self, resource_type: int, name: str) -> bool:
        return dynamic.is_list(resource_type, name)

    def default_value(self, resource_type: int, name: str) -> str | None:
        return dynamic.default_value(resource_type, name)

    def topic_value(self, name: str, layers: ConfigLayers) -> str | None:
        value = topic_values(layers.topic, self._with(layers)).get(name)
        return None if value is None else format_value(value)

    def describe_topic(self, layers: ConfigLayers) -> Sequence[CreatableTopicConfigs]:
        texts = Layers(layers.node, layers.cluster, self._settings.static)
        return [
            CreatableTopicConfigs(e.name, e.value, e.read_only, e.source, e.sensitive)
            for e in describe_topic_configs(layers.topic, self._with(layers), texts)
        ]

    def _with(self, layers: ConfigLayers) -> BrokerSettings:
        if not layers.node and not layers.cluster:
            return self._settings
        return self._settings.with_dynamic(layers.cluster, layers.node)
