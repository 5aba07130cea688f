"""What all brokers of a cluster understand, beyond Kafka's features.

A broker names its level among the features of its registration. It is never finalized, so that
``kafka-features`` has nothing to set: what needs a level is refused until every registered broker
has it, and a broker below it cannot register once it is in use.

=====  ============================================================================
level  what a broker of it understands
=====  ============================================================================
0      what there was before levels
1      topics with ``remote.storage.enable``: it would lead without their remote part
=====  ============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skylog.controller.image.brokers import VersionRange
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.settings.remote_topics import was_remote
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest

SKYLOG_LEVEL: Final = "skylog.level"
LEVEL: Final = 1
REMOTE_TOPICS: Final = 1
# What a broker of this version registers.
BROKER_FEATURES: Final[Mapping[str, VersionRange]] = {
    **SUPPORTED_FEATURES,
    SKYLOG_LEVEL: (0, LEVEL),
}


def check_remote_topic(
    state: ControllerState, resource: ConfigResource, after: Mapping[str, str]
) -> None:
    """No topic is remote before every broker understands it."""
    if resource.type != ConfigResourceType.TOPIC or not was_remote(after):
        return
    low = [
        str(broker.broker_id)
        for broker in state.image.brokers.by_id.values()
        if _level(broker.features) < REMOTE_TOPICS
    ]
    if low:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Topic cannot be configured with remote log storage before every broker has been "
            f"upgraded; these have not: {', '.join(low[:10])}. Unregister those that are gone.",
        )


def check_broker_level(state: ControllerState, message: BrokerRegistrationRequest) -> None:
    """A broker that does not understand remote topics stays out of a cluster that has some."""
    named = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in message.features
    }
    if _level(named) >= REMOTE_TOPICS:
        return
    for resource, configs in state.image.configs.by_resource.items():
        if resource.type == ConfigResourceType.TOPIC and was_remote(configs):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {message.broker_id} is too old for this cluster, where topic "
                f"{resource.name} has remote.storage.enable=true.",
            )


def _level(features: Mapping[str, VersionRange]) -> int:
    return features.get(SKYLOG_LEVEL, (0, 0))[1]
