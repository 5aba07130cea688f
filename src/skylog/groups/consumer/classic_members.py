"""Classic members in a consumer group, during the migration.

To them the group looks like a classic one without a leader: they join, get the coordinator's
assignment from SyncGroup, and are told by heartbeats to rejoin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.embedded import decode_subscription, encode_assignment
from skylog.groups.consumer.heartbeat import (
    check_metadata_bytes,
    check_room,
    known_static,
    move,
    replace_static,
)
from skylog.groups.consumer.leave import fence
from skylog.groups.consumer.member import ClassicMetadata, ConsumerMember, MemberState
from skylog.groups.consumer.migration import downgrade, may_downgrade_by
from skylog.groups.consumer.pattern_lookup import drop_regex
from skylog.groups.consumer.reconcile import Reported
from skylog.groups.consumer.records import member_record
from skylog.groups.consumer.step import JOIN, SYNC, ConsumerStep
from skylog.groups.consumer.target import check_metadata, find_target
from skylog.groups.members import CONSUMER_PROTOCOL_TYPE
from skylog.groups.requests import Request
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from skylog.wire.messages.sync_group_response import SyncGroupResponse

_MEMBER_ID_REQUIRED_VERSION: Final = 4


# JoinGroup


def join(step: ConsumerStep, request: Request[JoinGroupRequest]) -> JoinGroupResponse:
    message, group = request.message, step.group
    _check_join(step, message)
    member_id = message.member_id or request.member_suffix
    check_room(step, member_id)
    names = {protocol.name for protocol in message.protocols}
    if not group.supports_classic(message.protocol_type, names):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member_id}'s protocols are not supported.",
        )
    dynamic = message.group_instance_id is None
    if dynamic and not message.member_id and request.version >= _MEMBER_ID_REQUIRED_VERSION:
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    subscription = _subscription(message)
    before = group.static_member(message.group_instance_id)
    member = _joining_member(step, message, member_id)
    updated = _updated(member, request, subscription)
    check_metadata_bytes(step, member, updated)
    if updated != member:
        step.records.append(member_record(group.group_id, updated))
    changed = drop_regex(step, member) or updated.topics != member.topics
    epoch = check_metadata(step, member, updated, changed=changed)
    reported = _reported(step, subscription)
    if may_downgrade_by(step, before):
        updated = _join_downgraded(step, updated, epoch, reported, changed=changed)
    else:
        target = find_target(step, member, updated, epoch)
        updated = move(step, updated, target, reported, subscription_changed=changed)
        step.end_wait(JOIN, member_id)
        step.start_session(member_id, message.session_timeout_ms)
        step.start_wait(SYNC, member_id, message.rebalance_timeout_ms)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=updated.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=updated.first_protocol[0],
    )


def _check_join(step: ConsumerStep, message: JoinGroupRequest) -> None:
    if step.settings.migration_policy == "disabled":
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {message.group_id} with the classic protocol because"
            " the group migration is disabled.",
        )


def _subscription(message: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(bytes(message.protocols[0].metadata))
    except ProtocolError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _joining_member(
    step: ConsumerStep, message: JoinGroupRequest, member_id: str
) -> ConsumerMember:
    group, instance_id = step.group, message.group_instance_id
    if instance_id is not None and message.member_id:
        return known_static(group, instance_id, member_id)
    known = group.static_member(instance_id)
    if known is not None:
        return replace_static(step, known, member_id)
    return group.members.get(member_id) or ConsumerMember(member_id)


def _updated(
    member: ConsumerMember,
    request: Request[JoinGroupRequest],
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    message = request.message
    protocols = tuple((p.name, bytes(p.metadata)) for p in message.protocols)
    return replace(
        member,
        instance_id=message.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(message.session_timeout_ms, protocols),
    )


def _reported(step: ConsumerStep, subscription: ConsumerProtocolSubscription) -> Reported:
    return [
        (topic_id, partition)
        for topic in subscription.owned_partitions
        if (topic_id := step.world.topics.topic_id(topic.topic)) is not None
        for partition in topic.partitions
    ]


def _join_downgraded(
    step: ConsumerStep,
    member: ConsumerMember,
    epoch: int,
    reported: Reported,
    *,
    changed: bool,
) -> ConsumerMember:
    """The last member of the consumer protocol has returned with the classic one."""
    group = step.group
    stale = group.target_epoch < epoch
    if not stale:  # else there is a rebalance anyway
        target = (group.target_epoch, group.target_of(member))
        member = move(step, member, target, reported, subscription_changed=changed)
    downgrade(step, [], member, rebalance=stale)
    return member


# SyncGroup, Heartbeat


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """A member of the classic protocol."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_static(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    return member


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if member.epoch != generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch"
            f" {member.epoch} of member {member.member_id}.",
        )


def sync(step: ConsumerStep, request: Request[SyncGroupRequest]) -> SyncGroupResponse:
    message, group = request.message, step.group
    member = _known(group, message.member_id, message.group_instance_id)
    _check_generation(member, message.generation_id)
    name, metadata = member.first_protocol
    if (message.protocol_type or CONSUMER_PROTOCOL_TYPE) != CONSUMER_PROTOCOL_TYPE or (
        message.protocol_name is not None and message.protocol_name != name
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # A member that has joined and is still revoking partitions finishes that first.
    behind = group.target_epoch > member.epoch
    if behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return SyncGroupResponse(error_code=_join_again(step, member))
    step.end_wait(SYNC, member.member_id)
    _beat(step, member)
    assigned = {topic_id: frozenset(found) for topic_id, found in member.assigned.items()}
    return SyncGroupResponse(
        protocol_type=message.protocol_type,
        protocol_name=message.protocol_name,
        assignment=encode_assignment(assigned, metadata, step.world.topics),
    )


def heartbeat(step: ConsumerStep, request: Request[HeartbeatRequest]) -> HeartbeatResponse:
    message, group = request.message, step.group
    member = _known(group, message.member_id, message.group_instance_id)
    _check_generation(member, message.generation_id)
    _beat(step, member)
    released = member.state is MemberState.UNRELEASED_PARTITIONS and (
        not group.is_waiting_for_others(member)
    )
    unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if member.epoch < group.target_epoch or unrevoked or released:
        return HeartbeatResponse(error_code=_join_again(step, member))
    return HeartbeatResponse()


def _beat(step: ConsumerStep, member: ConsumerMember) -> None:
    if member.classic is not None:
        step.start_session(member.member_id, member.classic.session_timeout_ms)


def _join_again(step: ConsumerStep, member: ConsumerMember) -> ErrorCode:
    """Tell a member to rejoin; from the first time on it has its rebalance time-out for that."""
    if (member.member_id, JOIN) not in step.group.waits:
        step.start_wait(JOIN, member.member_id, member.rebalance_timeout_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


# LeaveGroup


def leave(step: ConsumerStep, request: Request[LeaveGroupRequest]) -> LeaveGroupResponse:
    """Members of either protocol; administrators remove static ones by instance id alone."""
    leaving: dict[str, ConsumerMember] = {}
    responses = []
    for identity in request.message.members:
        code = ErrorCode.NONE
        try:
            member = _leaving(step.group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        responses.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
    fence(step, list(leaving.values()))
    return LeaveGroupResponse(members=responses)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id)
    static = group.static_member(instance_id)
    member_id = identity.member_id or (static.member_id if static is not None else "")
    return known_static(group, instance_id, member_id)
