"""Consumer groups for administrators: ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.member import ConsumerMember
from skylog.groups.consumer.world import Topics
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.messages.consumer_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def describe(
    group_ids: Iterable[str], groups: Mapping[str, Any], topics: Topics, default_assignor: str
) -> list[DescribedGroup]:
    return [
        _describe(group_id, groups.get(group_id), topics, default_assignor)
        for group_id in group_ids
    ]


def _describe(group_id: str, group: Any, topics: Topics, default_assignor: str) -> DescribedGroup:
    if not isinstance(group, ConsumerGroup):
        why = "not found" if group is None else "is not a consumer group"
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {why}.",
            group_id=group_id,
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    # A member owns the partitions that it revokes until it has done so.
    owned: dict[Uuid, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic_id, partitions in part.items():
            owned.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(group.target.get(member.member_id, {}), topics),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, name, sorted(found))
            for topic_id, found in sorted(partitions.items())
            if (name := topics.name(topic_id)) is not None
        ]
    )
