"""What consumer groups see of the broker: topics as metadata has them, and groups' settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from skylog.broker.assembly.translate import group_settings
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.groups.consumer.world import ConsumerConfig, TopicInfo, World
from skylog.groups.coordinator import GroupCoordinator
from skylog.kernel.settings.topics import group_values

if TYPE_CHECKING:
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.metadata.publisher import MetadataPublisher
    from skylog.controller.image import ClusterImage
    from skylog.kernel.clock import Clock
    from skylog.kernel.ids import Uuid
    from skylog.kernel.rng import Random
    from skylog.kernel.settings import BrokerSettings


class ImageTopics:
    """Implements ``Topics`` over the broker's image; a version is an offset of the metadata log."""

    def __init__(self, publisher: MetadataPublisher) -> None:
        self._publisher = publisher

    @property
    def version(self) -> int:
        return self._publisher.end_offset

    @property
    def created_version(self) -> int:
        return self._publisher.topics_created_offset

    @property
    def _image(self) -> ClusterImage:
        return self._publisher.image

    def topic_id(self, name: str) -> Uuid | None:
        return self._image.topic_id(name)

    def name(self, topic_id: Uuid) -> str | None:
        return self._image.topic_name(topic_id)

    def partition_count(self, topic_id: Uuid) -> int:
        topic = self._image.topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def info(self, name: str) -> TopicInfo | None:
        topic = self._image.topic(name)
        if topic is None:
            return None
        racks = tuple(
            tuple(sorted(self._racks(topic.partitions[index].replicas)))
            for index in sorted(topic.partitions)
        )
        return TopicInfo(name, topic.topic_id, racks)

    def _racks(self, replicas: Iterable[int]) -> set[str]:
        brokers = self._image.brokers.by_id
        found = (brokers[b].rack for b in replicas if b in brokers)
        return {rack for rack in found if rack is not None}

    def names(self) -> Iterable[str]:
        return self._image.topic_names()


def open_groups(
    settings: BrokerSettings,
    publisher: MetadataPublisher,
    configs: Configs,
    clock: Clock,
    rng: Random,
) -> GroupCoordinator:
    """The group coordinator of a broker."""
    image = publisher.image

    def config(group_id: str) -> ConsumerConfig:
        overrides = image.configs.of(ConfigResource(ConfigResourceType.GROUP, group_id))
        groups = configs.current.consumer_groups
        if not overrides:
            return ConsumerConfig(
                groups.session_timeout_ms,
                groups.heartbeat_interval_ms,
                groups.assignment_interval_ms,
            )
        values = group_values(overrides, configs.current)
        return ConsumerConfig(
            values["consumer.session.timeout.ms"],
            values["consumer.heartbeat.interval.ms"],
            values["consumer.assignment.interval.ms"],
        )

    world = World(ImageTopics(publisher), config)
    return GroupCoordinator(group_settings(settings), clock, rng, world=world)
