"""The records of consumer groups, in Kafka's format: how they are built and applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from skylog.groups.consumer.consumer_group import NO_EPOCH, ConsumerGroup, ResolvedRegex
from skylog.groups.consumer.member import (
    LEAVE_EPOCH,
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    Owned,
    Partitions,
)
from skylog.wire.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from skylog.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from skylog.wire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from skylog.wire.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from skylog.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from skylog.wire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from skylog.wire.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from skylog.wire.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from skylog.wire.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from skylog.wire.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from skylog.wire.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from skylog.wire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from skylog.wire.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from skylog.wire.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from skylog.wire.schema import Message


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record of a consumer group; a tombstone if ``value`` is None."""

    key: Any
    value: Any | None


# The key and value classes of each record type.
KEY_CLASSES: Final[Mapping[int, tuple[type[Message], type[Message]]]] = {
    cls.API_KEY: (cls, value)
    for cls, value in (
        (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    )
}


# Making them


def member_record(group_id: str, member: ConsumerMember) -> ConsumerRecord:
    """A member's subscription."""
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            member.classic.session_timeout_ms,
            [ClassicProtocol(name, data) for name, data in member.classic.protocols],
        )
    return ConsumerRecord(
        ConsumerGroupMemberMetadataKey(group_id, member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=classic,
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> ConsumerRecord:
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return ConsumerRecord(ConsumerGroupMetadataKey(group_id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> ConsumerRecord:
    topics = [TopicPartition(topic_id, sorted(found)) for topic_id, found in target.items()]
    return ConsumerRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        ConsumerGroupTargetAssignmentMemberValue(topics),
    )


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> ConsumerRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return ConsumerRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def current_record(group_id: str, member: ConsumerMember) -> ConsumerRecord:
    """A member's current assignment."""
    return ConsumerRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.revoking),
        ),
    )


def _topic_partitions(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id, list(found), list(found.values()))
        for topic_id, found in owned.items()
    ]


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> ConsumerRecord:
    return ConsumerRecord(
        ConsumerGroupRegularExpressionKey(group_id, regex),
        ConsumerGroupRegularExpressionValue(
            sorted(resolved.topics), resolved.version, resolved.timestamp_ms
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> ConsumerRecord:
    return ConsumerRecord(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def partition_metadata_tombstone(group_id: str) -> ConsumerRecord:
    return ConsumerRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        ConsumerRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        ConsumerRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group: ConsumerGroup, replaced: Mapping[str, str]) -> list[ConsumerRecord]:
    """The tombstones of a group; ``replaced`` has members whose id has changed."""
    group_id = group.group_id
    member_ids = [replaced.get(member_id, member_id) for member_id in group.members]
    owned, target, metadata = (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupMemberMetadataKey,
    )
    return [
        *(ConsumerRecord(owned(group_id, member_id), None) for member_id in member_ids),
        *(ConsumerRecord(target(group_id, member_id), None) for member_id in member_ids),
        ConsumerRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *(ConsumerRecord(metadata(group_id, member_id), None) for member_id in member_ids),
        *(regex_tombstone(group_id, regex) for regex in group.regexes),
        partition_metadata_tombstone(group_id),
        ConsumerRecord(ConsumerGroupMetadataKey(group_id), None),
    ]


def group_records(group: ConsumerGroup) -> Iterator[ConsumerRecord]:
    """All records that rebuild a group."""
    group_id, members = group.group_id, group.members.values()
    for member in members:
        yield member_record(group_id, member)
    for regex, resolved in group.regexes.items():
        yield regex_record(group_id, regex, resolved)
    yield epoch_record(group_id, group.epoch, group.metadata_hash)
    for member_id, target in group.target.items():
        yield target_record(group_id, member_id, target)
    yield target_epoch_record(group_id, group.target_epoch, group.target_timestamp_ms)
    for member in members:
        yield current_record(group_id, member)


# What they change


def apply_record(group: ConsumerGroup, record: ConsumerRecord) -> None:
    """Apply a record to a group; the group's own tombstone is handled by the caller."""
    key, value = record.key, record.value
    match key:
        case ConsumerGroupMetadataKey():
            if value is not None:
                group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ConsumerGroupPartitionMetadataKey():
            group.has_partition_metadata = value is not None
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.target_epoch = NO_EPOCH if value is None else value.assignment_epoch
            group.target_timestamp_ms = 0 if value is None else value.assignment_timestamp
        case ConsumerGroupTargetAssignmentMemberKey():
            _apply_target(group, key.member_id, value)
        case ConsumerGroupMemberMetadataKey():
            _apply_member(group, key.member_id, value)
        case ConsumerGroupCurrentMemberAssignmentKey():
            _apply_current(group, key.member_id, value)
        case ConsumerGroupRegularExpressionKey():
            _apply_regex(group, key.regular_expression, value)


def _apply_target(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None
) -> None:
    if value is None:
        group.target.pop(member_id, None)
    else:
        group.target[member_id] = {
            t.topic_id: frozenset(t.partitions) for t in value.topic_partitions
        }


def _apply_member(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(member_id)
        return
    stored, classic = value.classic_member_metadata, None
    if stored is not None:
        protocols = tuple((p.name, bytes(p.metadata)) for p in stored.supported_protocols)
        classic = ClassicMetadata(stored.session_timeout_ms, protocols)
    group.put(
        replace(
            group.members.get(member_id) or ConsumerMember(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )
    )


def _apply_current(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(member_id)
    if value is None:
        if member is not None:  # its last tombstone follows
            group.put(
                replace(
                    member,
                    epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    assigned={},
                    revoking={},
                )
            )
        return
    group.put(
        replace(
            member or ConsumerMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _owned(topics: Iterable[TopicPartitions], epoch: int) -> Owned:
    """Records of releases before assignment epochs have none: the member's own epoch is used."""
    found: dict[Any, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or ()
        if len(epochs) != len(topic.partitions):
            epochs = [max(epoch, 0)] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def _apply_regex(
    group: ConsumerGroup, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is None:
        group.regexes.pop(regex, None)
    else:
        group.regexes[regex] = ResolvedRegex(
            frozenset(value.topics), value.version, value.timestamp
        )
