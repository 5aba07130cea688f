"""The requests of members of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Each function changes a step's draft and returns the reply; rebalances are in ``rebalance.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skylog.groups.members import ClassicGroup, GroupState, Member, Protocols
from skylog.groups.rebalance import (
    complete_join_if_all_there,
    join_response,
    prepare_rebalance,
    propagate_assignment,
    rebalance_or_complete,
)
from skylog.groups.records import group_record
from skylog.groups.requests import Request
from skylog.groups.step import Step
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_PENDING_MEMBERS_MAX
from skylog.replicated.machine import Parked
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from skylog.wire.messages.sync_group_response import SyncGroupResponse

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)
NO_MEMBER_ID: Final = ""
# From these versions on, a new member must first fetch its id; a static leader may skip assigning.
_MEMBER_ID_REQUIRED_VERSION: Final = 4
_SKIP_ASSIGNMENT_VERSION: Final = 9

JoinReply = JoinGroupResponse | Parked
SyncReply = SyncGroupResponse | Parked


# JoinGroup


def join(step: Step, request: Request[JoinGroupRequest]) -> JoinReply:
    message, group = request.message, step.group
    if not _has_room_for(step, message.member_id):
        step.remove(message.member_id)
        return join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
    names = [protocol.name for protocol in message.protocols]
    if not group.supports(message.protocol_type, names):
        return join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message.member_id)
    if message.member_id == NO_MEMBER_ID:
        return _join_new(step, request)
    if message.member_id in group.pending_joins:
        if message.group_instance_id is not None:
            # Only a dynamic member is ever told to rejoin with an id.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return _add(step, request, message.member_id)
    try:
        group.check_member(message.member_id, message.group_instance_id)
    except KafkaError as error:
        return join_error(error.code, message.member_id)
    return _rejoin(step, message, group.members[message.member_id])


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def _has_room_for(step: Step, member_id: str) -> bool:
    group, size_max = step.group, step.settings.group_size_max
    if group.state is EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is PREPARING:
        # Counting waiting members lets a group over its limit drop the latest ones.
        awaiting = member is not None and member.awaiting_join
        return awaiting or group.joins_awaited < size_max
    return member is not None or len(group.members) < size_max


def _join_new(step: Step, request: Request[JoinGroupRequest]) -> JoinReply:
    message, group = request.message, step.group
    instance_id = message.group_instance_id
    prefix = request.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{request.member_suffix}"
    if instance_id is not None:
        old_id = group.static_members.get(instance_id)
        if old_id is not None:
            return _replace_static(step, request, old_id, member_id)
    elif request.version >= _MEMBER_ID_REQUIRED_VERSION:
        if len(group.pending_joins) >= GROUP_PENDING_MEMBERS_MAX:
            # Members that never rejoin are removed when their sessions time out; until then, others
            # retry.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        group.pending_joins[member_id] = None
        step.start_session(member_id, message.session_timeout_ms)
        return join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    return _add(step, request, member_id)


def _add(step: Step, request: Request[JoinGroupRequest], member_id: str) -> JoinReply:
    message, group = request.message, step.group
    if group.state is PREPARING and group.previous_state is EMPTY:
        group.new_member_added = True
    parked = step.park_join(
        Member(
            member_id=member_id,
            instance_id=message.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=message.rebalance_timeout_ms,
            session_timeout_ms=message.session_timeout_ms,
            protocol_type=message.protocol_type,
            protocols=_protocols(message),
            is_new=True,
        )
    )
    # A member without a response sends no heartbeats: without its own limit, each attempt of a
    # client that gives up and retries would stay in the group.
    step.start_session(member_id, step.settings.new_member_join_timeout_ms)
    rebalance_or_complete(step)
    return parked


def _rejoin(step: Step, message: JoinGroupRequest, member: Member) -> JoinReply:
    group = step.group
    changed = member.protocols != _protocols(message)
    is_leader = group.leader == member.member_id
    # A leader that rejoins a stable group wants new assignments, even with the same metadata.
    if group.state is PREPARING or changed or (group.state is STABLE and is_leader):
        return _update(step, message, member)
    return join_response(step, member.member_id)


def _update(step: Step, message: JoinGroupRequest, member: Member) -> JoinReply:
    parked = step.park_join(_updated(member, message))
    rebalance_or_complete(step)
    return parked


def _updated(member: Member, message: JoinGroupRequest) -> Member:
    return replace(
        member,
        protocols=_protocols(message),
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        session_timeout_ms=message.session_timeout_ms,
    )


def _protocols(message: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in message.protocols)


def _replace_static(
    step: Step, request: Request[JoinGroupRequest], old_id: str, new_id: str
) -> JoinReply:
    """A static member has returned: it takes its old place, if possible without a rebalance."""
    group, old_leader = step.group, step.group.leader
    fenced = ErrorCode.FENCED_INSTANCE_ID
    step.answer_join(old_id, join_error(fenced, old_id))
    step.answer_sync(old_id, SyncGroupResponse(error_code=fenced))
    old = group.members[old_id]
    new = _updated(replace(old, member_id=new_id, is_new=False), request.message)
    group.replace_static(old_id, new)
    step.end_session(old_id)
    step.start_session(new_id, old.session_timeout_ms)
    if group.state is STABLE and group.select_protocol() == group.protocol_name:
        step.records.append(group_record(group))
        response = join_response(step, new_id)
        if request.version >= _SKIP_ASSIGNMENT_VERSION:
            response.skip_assignment = group.leader == new_id
        else:
            # An old client would assign if it were told that it is the leader; its assignment would
            # be ignored.
            response.leader, response.members = old_leader or "", []
        return response
    parked = step.park_join(new)
    rebalance_or_complete(step)
    return parked


# SyncGroup


def sync(step: Step, request: Request[SyncGroupRequest]) -> SyncReply:
    message, group = request.message, step.group
    member = _checked_for_sync(group, message)
    if group.state is PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.pop(message.member_id, None)
    if not group.pending_syncs:
        step.cancel_timer("sync")
    if group.state is STABLE:
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
    parked = step.park_sync(member)
    if group.leader == message.member_id:
        assignments = {a.member_id: bytes(a.assignment) for a in message.assignments}
        propagate_assignment(step, assignments, ErrorCode.NONE)
        step.records.append(group_record(group))
        group.transition(STABLE, step.now_ms)
    return parked


def _checked_for_sync(group: ClassicGroup, message: SyncGroupRequest) -> Member:
    if group.state is EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(message.member_id, message.group_instance_id)
    if message.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(message.protocol_type, group.protocol_type) or _differ(
        message.protocol_name, group.protocol_name
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return group.members[message.member_id]


def _differ(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual


# Heartbeat


def heartbeat(group: ClassicGroup, message: HeartbeatRequest) -> HeartbeatResponse:
    """The response to a valid heartbeat; raises otherwise."""
    group.check_member(message.member_id, message.group_instance_id)
    if message.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is PREPARING:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


# LeaveGroup


def leave(step: Step, request: Request[LeaveGroupRequest]) -> LeaveGroupResponse:
    """``members`` are those that leave, in every version."""
    responses = [_leave_one(step, identity) for identity in request.message.members]
    if any(response.error_code == ErrorCode.NONE for response in responses):
        if step.group.state in (COMPLETING, STABLE):
            prepare_rebalance(step)
        else:
            complete_join_if_all_there(step)
    return LeaveGroupResponse(members=responses)


def _leave_one(step: Step, identity: MemberIdentity) -> MemberResponse:
    group, member_id = step.group, identity.member_id
    error = ErrorCode.NONE
    try:
        if member_id == NO_MEMBER_ID:
            # An administrator removes a static member by instance id alone.
            if identity.group_instance_id is not None:
                member_id = group.static_members.get(identity.group_instance_id, NO_MEMBER_ID)
            group.check_member(member_id, None)
        elif member_id not in group.pending_joins:
            group.check_member(member_id, identity.group_instance_id)
        step.remove(member_id)
    except KafkaError as refusal:
        error = refusal.code
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=error,
    )
