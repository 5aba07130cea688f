"""ConsumerGroupHeartbeat: the one request by which members join, change, confirm and leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.leave import fence
from skylog.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
    Owned,
    Partitions,
)
from skylog.groups.consumer.pattern_lookup import RegexChange, change_regex
from skylog.groups.consumer.reconcile import Goal, Reported, reconcile
from skylog.groups.consumer.records import current_record, member_record, target_record
from skylog.groups.consumer.records import member_tombstones as tombstones_of
from skylog.groups.consumer.requests import EndRebalance, HeartbeatReply
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.consumer.target import check_metadata, find_target, subscribed_ids
from skylog.groups.requests import Request
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_MEMBER_METADATA_BYTES_MAX, GROUP_METADATA_BYTES_MAX
from skylog.replicated.machine import CancelTimer, StartTimer
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_NOT_GIVEN: Final = -1


def heartbeat(
    step: ConsumerStep, request: Request[ConsumerGroupHeartbeatRequest]
) -> HeartbeatReply:
    """A heartbeat that does not leave."""
    message, group = request.message, step.group
    member_id = message.member_id or request.member_suffix
    check_room(step, member_id)
    member = _member(step, message, member_id)
    updated = _updated(member, request)
    if updated != member:
        check_metadata_bytes(step, member, updated)
        step.records.append(member_record(group.group_id, updated))
    topics_changed = updated.topics != member.topics
    regexes = change_regex(step, member, updated)
    epoch = check_metadata(
        step,
        member,
        updated,
        changed=topics_changed or regexes.change is RegexChange.RESOLVED,
    )
    target_epoch, target = find_target(step, member, updated, epoch)
    reported = _reported(message)
    changed = topics_changed or regexes.change is not RegexChange.NONE
    updated = move(step, updated, (target_epoch, target), reported, subscription_changed=changed)
    config = step.world.config(group.group_id)
    step.start_session(member_id, config.session_timeout_ms)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
    )
    if _is_full(message) or updated.assigned != member.assigned:
        response.assignment = _assignment(updated.assigned)
    return HeartbeatReply(response, regexes.to_resolve)


def _is_full(message: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a heartbeat is full: the member (re)joins, or its last response was lost."""
    if message.member_epoch == JOIN_EPOCH:
        return True
    return (
        message.rebalance_timeout_ms != _NOT_GIVEN
        and message.topic_partitions is not None
        and not (message.subscribed_topic_names is None and message.subscribed_topic_regex is None)
    )


def _reported(message: ConsumerGroupHeartbeatRequest) -> Reported:
    if message.topic_partitions is None:
        return None
    return [(t.topic_id, partition) for t in message.topic_partitions for partition in t.partitions]


def _assignment(owned: Owned) -> Assignment:
    return Assignment([TopicPartitions(t, sorted(found)) for t, found in sorted(owned.items())])


def check_room(step: ConsumerStep, member_id: str) -> None:
    size_max = step.settings.consumer_group_size_max
    if len(step.group.members) >= size_max and member_id not in step.group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def check_metadata_bytes(
    step: ConsumerStep, member: ConsumerMember, updated: ConsumerMember
) -> None:
    """Members' metadata stays in memory, so it is limited, per member and in total."""
    more = updated.metadata_bytes - member.metadata_bytes
    if more > 0 and (
        updated.metadata_bytes > GROUP_MEMBER_METADATA_BYTES_MAX
        or step.metadata_bytes + more > GROUP_METADATA_BYTES_MAX
    ):
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, "The coordinator has no room for the subscription."
        )


# Who it is


def _member(
    step: ConsumerStep, message: ConsumerGroupHeartbeatRequest, member_id: str
) -> ConsumerMember:
    joining = message.member_epoch == JOIN_EPOCH
    if message.instance_id is not None:
        return _static_member(step, message, member_id)
    if joining:
        return step.group.members.get(member_id) or ConsumerMember(member_id)
    member = step.group.member(member_id)
    _check_epoch(member, message)
    return member


def _static_member(
    step: ConsumerStep, message: ConsumerGroupHeartbeatRequest, member_id: str
) -> ConsumerMember:
    group, instance_id = step.group, message.instance_id or ""
    known = group.static_member(instance_id)
    if message.member_epoch != JOIN_EPOCH:
        member = known_static(group, instance_id, member_id)
        _check_epoch(member, message)
        return member
    if known is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if known.classic is None and known.epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group"
            f" because the instance id is owned by {known.member_id} member.",
        )
    return replace_static(step, known, member_id)


def known_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member of an instance; refused if another member has replaced it."""
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {known.member_id}.",
        )
    return known


def replace_static(step: ConsumerStep, known: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member's new incarnation replaces the old one, with all its partitions."""
    new = replace(known, member_id=member_id, epoch=0, previous_epoch=0)
    group_id = step.group_id
    step.records += tombstones_of(group_id, known.member_id)
    step.records.append(member_record(group_id, new))
    target = step.group.target.get(known.member_id, {})
    step.records.append(target_record(group_id, member_id, target))
    step.records.append(current_record(group_id, new))
    if known.member_id != member_id:
        step.end_timers(known.member_id)
    return new


def _check_epoch(member: ConsumerMember, message: ConsumerGroupHeartbeatRequest) -> None:
    received = message.member_epoch
    if received == member.epoch:
        return
    # The response with the new epoch may have been lost: then the member owns nothing else yet.
    if received == member.previous_epoch < member.epoch and _owns_at_most(message, member.assigned):
        return
    how = "greater" if received > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({received}) than the one known by"
        f" the group coordinator ({member.epoch})."
        " The member must abandon all its partitions and rejoin.",
    )


def _owns_at_most(message: ConsumerGroupHeartbeatRequest, owned: Owned) -> bool:
    reported = _reported(message)
    if reported is None:
        return False
    return all(partition in owned.get(topic_id, {}) for topic_id, partition in reported)


def _updated(
    member: ConsumerMember, request: Request[ConsumerGroupHeartbeatRequest]
) -> ConsumerMember:
    message = request.message
    if _says_nothing_new(member, request):
        return member
    names, regex = message.subscribed_topic_names, message.subscribed_topic_regex
    timeout_ms = message.rebalance_timeout_ms
    return replace(
        member,
        instance_id=_or(message.instance_id, member.instance_id),
        rack_id=_or(message.rack_id, member.rack_id),
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == _NOT_GIVEN else timeout_ms
        ),
        assignor=_or(message.server_assignor, member.assignor),
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _says_nothing_new(
    member: ConsumerMember, request: Request[ConsumerGroupHeartbeatRequest]
) -> bool:
    """Most heartbeats are of this kind, and there are very many of them."""
    message = request.message
    return (
        message.subscribed_topic_names is None
        and message.subscribed_topic_regex is None
        and message.server_assignor is None
        and message.rack_id is None
        and message.rebalance_timeout_ms in (_NOT_GIVEN, member.rebalance_timeout_ms)
        and message.instance_id in (None, member.instance_id)
        and member.classic is None
        and (member.client_id, member.client_host) == (request.client_id, request.client_host)
    )


def _or(given: str | None, known: str | None) -> str | None:
    return known if given is None else given


# Where it goes


def move(
    step: ConsumerStep,
    member: ConsumerMember,
    target: tuple[int, Partitions],
    reported: Reported,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Reconcile a member with its target."""
    group, (target_epoch, partitions) = step.group, target
    if not subscription_changed and member.is_reconciled_to(target_epoch):
        return member
    goal = Goal(
        target_epoch,
        partitions,
        subscribed_ids(group, member, step.world.topics),
        group.owned_epoch,
        reported,
        subscription_changed,
    )
    moved = reconcile(member, goal)
    if moved == member:
        return member
    step.records.append(current_record(group.group_id, moved))
    if moved.classic is None:
        _time_rebalance(step, moved)
    return moved


def _time_rebalance(step: ConsumerStep, member: ConsumerMember) -> None:
    key = ("rebalance", step.group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        request = EndRebalance(step.group_id, member.member_id, member.epoch)
        step.effects.append(StartTimer(key, max(member.rebalance_timeout_ms, 0), request))
    else:
        step.effects.append(CancelTimer(key))


# Farewells


def leave(step: ConsumerStep, message: ConsumerGroupHeartbeatRequest) -> HeartbeatReply:
    """A member leaves for good, or a static one temporarily."""
    member_id, epoch = message.member_id, message.member_epoch
    if message.instance_id is None:
        member = step.group.member(member_id)
    else:
        member = known_static(step.group, message.instance_id, member_id)
    if message.instance_id is not None and epoch == LEAVE_STATIC_EPOCH:
        _pause(step, member)
    else:
        fence(step, [member])
    return HeartbeatReply(ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=epoch))


def _pause(step: ConsumerStep, member: ConsumerMember) -> None:
    """Its partitions are kept for it, as if its next incarnation had owned them from the start."""
    assigned = {t: dict.fromkeys(found, 0) for t, found in member.assigned.items()}
    gone = replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking={})
    step.records.append(current_record(step.group_id, gone))


def restart_timers(step: ConsumerStep, members: Iterable[ConsumerMember]) -> None:
    """A new leader restarts every member's session."""
    timeout_ms = step.world.config(step.group_id).session_timeout_ms
    for member in members:
        step.start_session(member.member_id, timeout_ms)
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            _time_rebalance(step, member)
