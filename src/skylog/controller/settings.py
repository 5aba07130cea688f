"""The controller's fixed settings, and its interface to configs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from skylog.controller.image.brokers import VersionRange
from skylog.controller.image.configs import ConfigResource
from skylog.wire.messages.create_topics_response import CreatableTopicConfigs
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.schema import Message

if TYPE_CHECKING:
    from skylog.controller.lifting import EpochFloor

# What a Kafka 4.3 controller supports.
SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


def bootstrap_records(levels: Mapping[str, int]) -> tuple[Message, ...]:
    """The first records of a cluster with these feature levels."""
    return tuple(FeatureLevelRecord(name, level) for name, level in levels.items())


@dataclass(frozen=True, slots=True)
class ConfigLayers:
    """The sources of a topic's setting, the strongest first."""

    topic: Mapping[str, str]
    node: Mapping[str, str]
    cluster: Mapping[str, str]


class ConfigSchema(Protocol):
    """Definitions of configs outside the metadata log."""

    def validate(
        self,
        resource: ConfigResource,
        configs: Mapping[str, str],
        existing: Mapping[str, str],
        layers: ConfigLayers,
    ) -> None:
        """KafkaError or ConfigError if ``configs`` are not valid overrides of the resource. A
        topic's defaults are those of the ``layers`` below it."""
        ...

    def is_list(self, resource_type: int, name: str) -> bool: ...

    def default_value(self, resource_type: int, name: str) -> str | None: ...

    def topic_value(self, name: str, layers: ConfigLayers) -> str | None:
        """A topic's effective value, from the layers, the static settings, or the default."""
        ...

    def describe_topic(self, layers: ConfigLayers) -> Sequence[CreatableTopicConfigs]:
        """All effective settings of a topic, sorted by name, as in a CreateTopics response."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaPacing:
    """How offline replicas of diskless partitions are replaced, unless set dynamically."""

    batch_size: int = 500
    interval_ms: int = 1_000
    scan_interval_ms: int = 60_000
    grace_ms: int = 60_000
    settle_ms: int = 30_000
    warning_interval_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Fixed when the controller starts."""

    node_id: int
    cluster_id: str
    # The voters, at any time.
    quorum_node_ids: Collection[int]
    # Written to an empty log: feature levels first, then the cluster's initial records.
    bootstrap: tuple[Message, ...]
    supported_features: Mapping[str, VersionRange] = field(
        default_factory=lambda: SUPPORTED_FEATURES
    )
    kraft_version: int = 1
    # Whether a broker with the same id runs in this process: then no older one can be alive.
    combined: bool = True
    # After a restore: leader epochs below it may have been used since the backup.
    epoch_floor: EpochFloor | None = None
    partition_count_default: int = 1
    replication_factor_default: int = 1
    session_timeout_ms: int = 9_000
    delete_topic_enable: bool = True
    leader_rebalance_enable: bool = True
    leader_check_interval_ms: int = 300_000
    unclean_election_interval_ms: int = 300_000
    elections_per_check_max: int = 1_000
    # The number of diskless coordinators, until their topic exists.
    diskless_coordinators: int = 1
    # Replicas of that topic, created with the first diskless topic; 0 if there is no such topic.
    diskless_metadata_replicas: int = 1
    # Whether it was set explicitly: if not, a cluster of one node uses 1 for Kafka's default.
    diskless_metadata_replicas_chosen: bool = True
    # Whether new diskless topics have remote segments, unless they say otherwise.
    diskless_tiering: bool = False
    replica_pacing: ReplicaPacing = ReplicaPacing()
