"""What all brokers of a cluster understand, beyond Kafka's features.

A broker names its level among the features of its registration. It is never finalized, so that
``kafka-features`` has nothing to set: what needs a level is refused until every registered broker
has it, and a broker below it cannot register once it is in use.

=====  ============================================================================
level  what a broker of it understands
=====  ============================================================================
0      what there was before levels
1      topics with ``remote.storage.enable``: it would lead without their remote part
2      diskless topics with it: its coordinators would delete what is to be pruned, and its fetches
       would not find what was
=====  ============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skylog.controller.diskless import is_wanted
from skylog.controller.image.brokers import VersionRange
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.settings.remote_topics import REMOTE_STORAGE, was_remote
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest

SKYLOG_LEVEL: Final = "skylog.level"
LEVEL: Final = 2
REMOTE_TOPICS: Final = 1
REMOTE_DISKLESS_TOPICS: Final = 2
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
    low = _below(state, _level_needed(state, resource.name, after))
    if low:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Topic cannot be configured with remote log storage before every broker has been "
            f"upgraded; these have not: {', '.join(map(str, low[:10]))}. Unregister those that are "
            "gone.",
        )


def is_remote_by_default(state: ControllerState, name: str, overrides: Mapping[str, str]) -> bool:
    """Whether a new topic gets remote segments without asking: it is diskless, and every broker
    understands that."""
    return (
        state.settings.diskless_tiering
        and REMOTE_STORAGE not in overrides
        and is_wanted(state, name, overrides)
        and not _below(state, REMOTE_DISKLESS_TOPICS)
    )


def check_broker_level(state: ControllerState, message: BrokerRegistrationRequest) -> None:
    """A broker that does not understand remote topics stays out of a cluster that has some."""
    named = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in message.features
    }
    level = _level(named)
    if level >= LEVEL:
        return
    for resource, configs in state.image.configs.by_resource.items():
        if resource.type != ConfigResourceType.TOPIC or not was_remote(configs):
            continue
        if level < _level_needed(state, resource.name, configs):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {message.broker_id} is too old for this cluster, where topic "
                f"{resource.name} has remote.storage.enable=true.",
            )


def _level_needed(state: ControllerState, name: str, overrides: Mapping[str, str]) -> int:
    """For a remote topic, which may not exist yet."""
    topic = state.image.topic(name)
    diskless = is_wanted(state, name, overrides) if topic is None else topic.diskless_enabled
    return REMOTE_DISKLESS_TOPICS if diskless else REMOTE_TOPICS


def _below(state: ControllerState, level: int) -> list[int]:
    brokers = state.image.brokers.by_id.values()
    return [broker.broker_id for broker in brokers if _level(broker.features) < level]


def _level(features: Mapping[str, VersionRange]) -> int:
    return features.get(SKYLOG_LEVEL, (0, 0))[1]
