"""The group's target assignment: computed when its epoch was bumped, at most as often as
configured."""

from __future__ import annotations

from skylog.groups.consumer.assignors import ASSIGNORS, Subscriber
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.hashing import metadata_hash
from skylog.groups.consumer.member import ConsumerMember, Partitions
from skylog.groups.consumer.records import (
    epoch_record,
    partition_metadata_tombstone,
    target_epoch_record,
    target_record,
)
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.consumer.world import Topics
from skylog.kernel.ids import Uuid


def check_metadata(
    step: ConsumerStep, member: ConsumerMember, updated: ConsumerMember, *, changed: bool
) -> int:
    """The group's epoch, a new one if subscriptions or their topics have changed."""
    group = step.group
    if not changed and group.metadata_checked:
        return group.epoch
    found = metadata_hash(group.subscribed_after([member], updated), step.world.topics)
    epoch = group.epoch
    if changed or found != group.metadata_hash:
        epoch += 1
        step.records.append(epoch_record(group.group_id, epoch, found))
    step.metadata_checked()
    if group.has_partition_metadata:
        step.records.append(partition_metadata_tombstone(group.group_id))
    return epoch


def find_target(
    step: ConsumerStep, member: ConsumerMember, updated: ConsumerMember, epoch: int
) -> tuple[int, Partitions]:
    """The epoch and target assignment that apply to a member now."""
    group = step.group
    if group.target_epoch >= epoch or not _may_compute(step):
        return group.target_epoch, group.target_of(updated)
    default = step.settings.consumer_assignors[0]
    assignor = ASSIGNORS[group.preferred_assignor(default, member, updated)]
    replaced = group.static_members.get(updated.instance_id or "")
    members = {m: found for m, found in group.members.items() if m != replaced}
    members[updated.member_id] = updated
    topics, subscriptions = step.world.topics, _Subscriptions(group, step.world.topics)
    subscribers = {
        member_id: Subscriber(
            subscriptions.of(found),
            group.target_of(updated) if found is updated else group.target.get(member_id, {}),
            found.instance_id,
        )
        for member_id, found in members.items()
    }
    counts = {t: topics.partition_count(t) for t in subscriptions.topic_ids()}
    target = assignor(subscribers, counts)
    for member_id, found in target.items():
        if found != group.target.get(member_id) or member_id not in group.members:
            step.records.append(target_record(group.group_id, member_id, found))
    step.records.append(target_epoch_record(group.group_id, epoch, step.now_ms))
    return epoch, target[updated.member_id]


def _may_compute(step: ConsumerStep) -> bool:
    """A target is kept for a minimum time, unless its age is unknown."""
    interval_ms = step.world.config(step.group_id).assignment_interval_ms
    since_ms = step.group.target_timestamp_ms
    return not since_ms or not interval_ms or step.now_ms >= since_ms + interval_ms


class _Subscriptions:
    """The topics of members by id; most members want the same, so each subscription is resolved
    once."""

    def __init__(self, group: ConsumerGroup, topics: Topics) -> None:
        self._group = group
        self._topics = topics
        self._known: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}

    def of(self, member: ConsumerMember) -> frozenset[Uuid]:
        key = (member.topics, member.regex)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = subscribed_ids(self._group, member, self._topics)
        return found

    def topic_ids(self) -> set[Uuid]:
        return set().union(*self._known.values())


def subscribed_ids(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> frozenset[Uuid]:
    """The ids of the subscribed topics that exist."""
    names = member.topics
    resolved = group.regexes.get(member.regex) if member.regex else None
    if resolved is not None:
        names = names | resolved.topics
    ids = (topics.topic_id(name) for name in names)
    return frozenset(topic_id for topic_id in ids if topic_id is not None)
