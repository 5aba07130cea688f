"""Which topics are diskless, and which coordinator each of their partitions has.

A partition gets its coordinator when it is created and keeps it; having one makes it diskless. The
setting ``diskless.enable`` says the same, for users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from skylog.controller.draws import Draws
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.image.topics import Partition
from skylog.controller.state import ControllerState
from skylog.kernel.config import is_true
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import DISKLESS_METADATA

DISKLESS_ENABLE: Final = "diskless.enable"


def is_wanted(state: ControllerState, name: str, overrides: Mapping[str, str]) -> bool:
    """Whether a new topic will be diskless; an internal topic never is."""
    if not is_true(state.configs.topic_value(DISKLESS_ENABLE, state.layers(overrides))):
        return False
    if name.startswith("__"):
        if DISKLESS_ENABLE in overrides:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"The internal topic {name} cannot be diskless."
            )
        return False
    return True


def with_coordinators(
    state: ControllerState, partitions: Sequence[Partition], draws: Draws
) -> list[Partition]:
    """Distribute new partitions over the coordinators, starting at a random one."""
    metadata = state.image.topic(DISKLESS_METADATA)
    if metadata is None:
        _require_room_for_coordinators(state)
    count = len(metadata.partitions) if metadata else state.settings.diskless_coordinators
    first = draws.randrange(count)
    return [
        replace(partition, diskless_coordinator=(first + number) % count)
        for number, partition in enumerate(partitions)
    ]


def _require_room_for_coordinators(state: ControllerState) -> None:
    """The first diskless topic also creates the coordinators' topic, without which nothing can
    be written."""
    wanted = state.settings.diskless_metadata_replicas
    if state.is_one_node and not state.settings.diskless_metadata_replicas_chosen:
        wanted = min(wanted, 1)
    brokers = sum(1 for _ in state.usable_brokers())
    if brokers < wanted:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A diskless topic needs {DISKLESS_METADATA}, which cannot have "
            f"diskless.metadata.topic.replication.factor={wanted} replicas: only {brokers} "
            "broker(s) are registered and take partitions.",
        )


def check_unchanged(
    state: ControllerState, resource: ConfigResource, after: Mapping[str, str]
) -> None:
    """A topic's type cannot change; turning a classic topic diskless is a migration."""
    if resource.type != ConfigResourceType.TOPIC:
        return
    topic = state.image.topic(resource.name)
    if topic is None:
        return
    wanted = is_true(state.configs.topic_value(DISKLESS_ENABLE, state.layers(after)))
    enabled = topic.diskless_enabled
    if DISKLESS_ENABLE in after and wanted != enabled:
        to = "diskless" if wanted else "classic"
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Topic {resource.name} exists and cannot become {to}."
        )
    if DISKLESS_ENABLE not in after and enabled:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{DISKLESS_ENABLE} of {resource.name} cannot be removed."
        )
