"""What a series of records changed, so that a broker reacts to that without scanning the image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skylog.kernel.ids import Uuid

if TYPE_CHECKING:
    from skylog.controller.image.configs import ConfigResource
    from skylog.controller.image.quotas import QuotaEntity
    from skylog.controller.image.topics import Topic
    from skylog.security.acls import AclBinding


@dataclass(slots=True)
class Delta:
    """Names of changed items; the image has the values. A topic created and deleted is in
    neither."""

    topics_created: dict[Uuid, Topic] = field(default_factory=dict)
    topics_deleted: dict[Uuid, Topic] = field(default_factory=dict)
    partitions: dict[Uuid, set[int]] = field(default_factory=dict)
    configs: set[ConfigResource] = field(default_factory=set)
    brokers: set[int] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    quotas: set[QuotaEntity] = field(default_factory=set)
    scram: set[tuple[str, int]] = field(default_factory=set)
    acls_added: dict[Uuid, AclBinding] = field(default_factory=dict)
    acls_removed: dict[Uuid, AclBinding] = field(default_factory=dict)

    def topic_created(self, topic: Topic) -> None:
        self.topics_created[topic.topic_id] = topic

    def topic_deleted(self, topic: Topic) -> None:
        self.partitions.pop(topic.topic_id, None)
        if self.topics_created.pop(topic.topic_id, None) is None:
            self.topics_deleted[topic.topic_id] = topic

    def partition_changed(self, topic_id: Uuid, partition: int) -> None:
        self.partitions.setdefault(topic_id, set()).add(partition)

    def acl_added(self, acl_id: Uuid, acl: AclBinding) -> None:
        self.acls_added[acl_id] = acl

    def acl_removed(self, acl_id: Uuid, acl: AclBinding) -> None:
        if self.acls_added.pop(acl_id, None) is None:
            self.acls_removed[acl_id] = acl

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)
