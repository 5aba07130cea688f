"""The rebalance of a group from one generation to the next; ``machine.py`` has the transition
table."""

from __future__ import annotations

from dataclasses import replace

from skylog.groups.members import GroupState, Member
from skylog.groups.records import group_record
from skylog.groups.requests import CheckSession, EndInitialDelay, EndJoin, EndSync
from skylog.groups.step import Step
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from skylog.wire.messages.sync_group_response import SyncGroupResponse

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


def rebalance_or_complete(step: Step) -> None:
    """A member joined, changed or left: start a rebalance, or continue the current one."""
    if step.group.state is PREPARING:
        complete_join_if_all_there(step)
    else:
        prepare_rebalance(step)


def prepare_rebalance(step: Step) -> None:
    group = step.group
    if group.state is COMPLETING:
        propagate_assignment(step, {}, ErrorCode.REBALANCE_IN_PROGRESS)
    if group.pending_syncs:
        group.pending_syncs.clear()
        step.cancel_timer("sync")
    initial = group.state is EMPTY
    group.transition(PREPARING, step.now_ms)
    if initial:
        # The first of many members that start together: give the others time to join.
        delay_ms = step.settings.initial_rebalance_delay_ms
        _wait_for_more(step, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.all_joined:
        complete_join(step)
    else:
        _wait_for_joins(step)


def complete_join_if_all_there(step: Step) -> None:
    group = step.group
    if group.state is PREPARING and group.previous_state is not EMPTY and group.all_joined:
        complete_join(step)


def complete_join(step: Step) -> None:
    """The time to join is over, or all have joined: start the next generation with those that
    have."""
    group = step.group
    step.cancel_timer("join")
    for member in list(group.members.values()):
        if not member.awaiting_join and member.instance_id is None:
            step.remove(member.member_id)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none has joined: their sessions decide.
        _wait_for_joins(step)
        return
    group.next_generation(step.now_ms)
    if group.state is EMPTY:
        step.records.append(group_record(group))
        return
    for member_id in list(group.members):
        step.answer_join(member_id, join_response(step, member_id))
        member = group.members[member_id]
        step.start_session(member_id, member.session_timeout_ms)
        group.put(replace(member, is_new=False))
        group.pending_syncs[member_id] = None
    group.sync_deadline_ms = step.now_ms + group.rebalance_timeout_ms
    step.start_timer("sync", group.rebalance_timeout_ms, EndSync(group.group_id))


def join_response(step: Step, member_id: str) -> JoinGroupResponse:
    """The current generation; its leader gets the list of members."""
    group = step.group
    members: list[JoinGroupResponseMember] = []
    if group.leader == member_id:
        members = [_described(m, group.protocol_name) for m in group.members.values()]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member_id,
        members=members,
    )


def _described(member: Member, protocol_name: str | None) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        metadata=member.metadata(protocol_name),
    )


def propagate_assignment(step: Step, assignments: dict[str, bytes], error: ErrorCode) -> None:
    """Give every member its assignment, empty by default, and answer waiting SyncGroups."""
    group, known = step.group, error is ErrorCode.NONE
    for member_id, member in list(group.members.items()):
        assignment = assignments.get(member_id, b"")
        group.put(replace(member, assignment=assignment))
        if member.awaiting_sync:
            response = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if known else None,
                protocol_name=group.protocol_name if known else None,
                assignment=assignment,
            )
            step.answer_sync(member_id, response)
            step.start_session(member_id, member.session_timeout_ms)


def _wait_for_joins(step: Step) -> None:
    timeout_ms = step.group.rebalance_timeout_ms
    step.group.join_deadline_ms = step.now_ms + timeout_ms
    step.start_timer("join", timeout_ms, EndJoin(step.group.group_id))


def _wait_for_more(step: Step, delay_ms: int, remaining_ms: int) -> None:
    group = step.group
    group.new_member_added = False
    group.join_deadline_ms = step.now_ms + delay_ms
    step.start_timer("join", delay_ms, EndInitialDelay(group.group_id, delay_ms, remaining_ms))


# Timers


def end_initial_delay(step: Step, timer: EndInitialDelay) -> None:
    group = step.group
    if group.state is not PREPARING or group.previous_state is not EMPTY:
        return
    if step.now_ms < group.join_deadline_ms <= step.now_ms + timer.delay_ms:
        step.start_timer("join", group.join_deadline_ms - step.now_ms, timer)
    elif group.new_member_added and timer.remaining_ms > 0:
        delay_ms = min(step.settings.initial_rebalance_delay_ms, timer.remaining_ms)
        _wait_for_more(step, delay_ms, max(timer.remaining_ms - timer.delay_ms, 0))
    else:
        complete_join(step)


def end_join(step: Step, timer: EndJoin) -> None:
    group = step.group
    if group.state is not PREPARING or group.previous_state is EMPTY:
        return
    if step.now_ms < group.join_deadline_ms <= step.now_ms + group.rebalance_timeout_ms:
        step.start_timer("join", group.join_deadline_ms - step.now_ms, timer)
    else:
        complete_join(step)


def end_sync(step: Step, timer: EndSync) -> None:
    """Remove members that joined a generation but never synced."""
    group = step.group
    if group.state not in (COMPLETING, STABLE) or not group.pending_syncs:
        return
    if step.now_ms < group.sync_deadline_ms <= step.now_ms + group.rebalance_timeout_ms:
        step.start_timer("sync", group.sync_deadline_ms - step.now_ms, timer)
        return
    for member_id in list(group.pending_syncs):
        step.remove(member_id)
    prepare_rebalance(step)


def check_session(step: Step, timer: CheckSession) -> None:
    """A member's timer has fired: its session has expired, unless it was alive since."""
    session = step.sessions.get(timer.member_id)
    if session is None:
        return
    member = step.group.members.get(timer.member_id)
    if step.now_ms < session.deadline_ms:
        # A clock that was set back must not keep a dead member for hours.
        remaining_ms = min(session.deadline_ms - step.now_ms, _session_ms_max(step, member))
        step.start_session(timer.member_id, remaining_ms, timer_fired=True)
    elif member is not None and member.excused_from_heartbeat:
        step.end_session(timer.member_id)
    else:
        _expire(step, timer.member_id)


def _session_ms_max(step: Step, member: Member | None) -> int:
    if member is None:
        return step.settings.session_timeout_ms_max
    return max(member.session_timeout_ms, step.settings.new_member_join_timeout_ms)


def _expire(step: Step, member_id: str) -> None:
    group = step.group
    was_member = member_id in group.members
    step.remove(member_id)
    if group.state is PREPARING:
        if group.all_joined:
            complete_join(step)
    elif was_member and group.state in (COMPLETING, STABLE):
        prepare_rebalance(step)
