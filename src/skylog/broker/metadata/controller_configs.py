"""What the controller asks about settings, answered by the rules of this node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.kernel.settings.resources import ResourceRules
from skylog.wire.messages.create_topics_response import CreatableTopicConfigs

if TYPE_CHECKING:
    from skylog.controller.settings import ConfigLayers


class ControllerConfigs(ResourceRules):
    """Implements the controller's ``ConfigSchema``."""

    def describe_topic(self, layers: ConfigLayers) -> Sequence[CreatableTopicConfigs]:
        return [
            CreatableTopicConfigs(e.name, e.value, e.read_only, e.source, e.sensitive)
            for e in self.topic_entries(layers)
        ]
