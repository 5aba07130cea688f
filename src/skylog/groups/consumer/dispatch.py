"""Passes requests and timers to the rules of consumer groups, and collects the results."""

from __future__ import annotations

from typing import Any

from skylog.groups.consumer import classic_members, heartbeat, leave, migration, pattern_lookup
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from skylog.groups.consumer.requests import (
    EndRebalance,
    EndWait,
    MetadataChecked,
    RegexesResolved,
    Resolving,
    WaitSet,
)
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.members import ClassicGroup, GroupState
from skylog.groups.records import group_tombstone
from skylog.groups.requests import CheckSession, Request
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.leave_group_request import LeaveGroupRequest
from skylog.wire.messages.sync_group_request import SyncGroupRequest

ConsumerTimer = EndRebalance | EndWait | RegexesResolved
ConsumerNote = MetadataChecked | Resolving | WaitSet


def handle_heartbeat(
    step: ConsumerStep,
    request: Request[ConsumerGroupHeartbeatRequest],
    group: ClassicGroup | ConsumerGroup | None,
) -> Result[Any]:
    """``group`` is what exists under the group's id; the step's is new unless it is the same."""
    message = request.message
    leaving = message.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)
    if not isinstance(group, ConsumerGroup):
        _begin(step, group, message.member_epoch)
    if leaving:
        return step.result(heartbeat.leave(step, message))
    return step.result(heartbeat.heartbeat(step, request))


def _begin(step: ConsumerStep, group: ClassicGroup | None, epoch: int) -> None:
    """Create a consumer group, replacing a classic one if there is one."""
    if epoch != JOIN_EPOCH:
        if group is not None:
            why = f"Group {step.group_id} is not a consumer group."
        else:
            prefix = "Group" if epoch < 0 else "Consumer group"
            why = f"{prefix} {step.group_id} not found."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, why)
    if group is None:
        return
    if group.state is GroupState.EMPTY:
        step.records.append(group_tombstone(step.group_id))
        return
    migration.check_upgrade(group, step.settings)
    migration.upgrade(group, step)


def handle_classic(step: ConsumerStep, request: Request[Any]) -> Result[Any]:
    """A request of the classic protocol to a consumer group."""
    match request.message:
        case HeartbeatRequest():
            return step.result(classic_members.heartbeat(step, request))
        case JoinGroupRequest():
            return step.result(classic_members.join(step, request))
        case SyncGroupRequest():
            return step.result(classic_members.sync(step, request))
        case LeaveGroupRequest():
            return step.result(classic_members.leave(step, request))
        case _:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def handle_timer(step: ConsumerStep, timer: CheckSession | ConsumerTimer) -> Result[Any]:
    match timer:
        case CheckSession():
            leave.check_session(step, timer)
        case EndRebalance():
            leave.end_rebalance(step, timer)
        case EndWait():
            leave.end_wait(step, timer)
        case RegexesResolved():
            pattern_lookup.resolved(step, timer)
    return step.result(None)


def take_note(group: ConsumerGroup, note: ConsumerNote) -> None:
    match note:
        case MetadataChecked():
            group.metadata_checked = note.checked
        case Resolving():
            group.resolving, group.resolve_from_ms = note.resolving, note.from_ms
        case WaitSet(_, member_id, kind, None):
            group.waits.pop((member_id, kind), None)
        case WaitSet(_, member_id, kind, deadline_ms):
            if deadline_ms is not None:
                group.waits[member_id, kind] = deadline_ms
