"""The changes between two images, for consumers that load a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from skylog.controller.image.delta import Delta

if TYPE_CHECKING:
    from skylog.controller.image.cluster import ClusterImage

Key = TypeVar("Key")


def difference(before: ClusterImage, after: ClusterImage) -> Delta:
    """The delta from one image to the other."""
    delta = Delta()
    _topics(before, after, delta)
    delta.configs.update(_changed(before.configs.by_resource, after.configs.by_resource))
    delta.brokers.update(_changed(before.brokers.by_id, after.brokers.by_id))
    delta.controllers.update(_changed(before.brokers.controllers, after.brokers.controllers))
    delta.features.update(_changed(before.features.levels, after.features.levels))
    delta.quotas.update(_changed(before.quotas.by_entity, after.quotas.by_entity))
    for user in _changed(before.scram.by_user, after.scram.by_user):
        known = before.scram.by_user.get(user, {}), after.scram.by_user.get(user, {})
        delta.scram.update((user, mechanism) for mechanism in _changed(*known))
    for acl_id in _changed(before.acls.by_id, after.acls.by_id):
        if acl_id in before.acls.by_id:
            delta.acls_removed[acl_id] = before.acls.by_id[acl_id]
        if acl_id in after.acls.by_id:
            delta.acls_added[acl_id] = after.acls.by_id[acl_id]
    return delta


def _topics(before: ClusterImage, after: ClusterImage, delta: Delta) -> None:
    for topic_id, topic in before.topics.by_id.items():
        if topic_id not in after.topics.by_id:
            delta.topic_deleted(topic)
    for topic_id, topic in after.topics.by_id.items():
        known = before.topics.by_id.get(topic_id)
        if known is None:
            delta.topic_created(topic)
        for index in _changed({} if known is None else known.partitions, topic.partitions):
            delta.partition_changed(topic_id, index)


def _changed(before: Mapping[Key, object], after: Mapping[Key, object]) -> set[Key]:
    gone = before.keys() - after.keys()
    return gone | {key for key, value in after.items() if before.get(key) != value}
