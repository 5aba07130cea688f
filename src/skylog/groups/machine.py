"""The state machine of one partition of ``__consumer_offsets``: its groups and their offsets.

===================  ==============================================================================
state of a group     goes to
===================  ==============================================================================
Empty                PreparingRebalance: a member joins · gone: deleted, or its offsets expired
PreparingRebalance   CompletingRebalance: all members joined, or the time to join is over ·
                     Empty: nobody joined
CompletingRebalance  Stable: the leader synced · PreparingRebalance: a member came, changed or
                     went, or did not sync in time
Stable               PreparingRebalance: a member came, changed or went, or the leader rejoined
===================  ==============================================================================

A generation is written when its leader has synced, and when a group has become empty. All between
(who has joined, who waits for what, whose session ends when) is volatile: a new leader of the
partition starts from the last generation written, and what its members send does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from skylog.groups import classic, offsets, rebalance, views
from skylog.groups.members import ClassicGroup, GroupState
from skylog.groups.records import (
    GroupRecord,
    GroupsRecord,
    OffsetRecord,
    group_from,
    group_tombstone,
    new_group_record,
)
from skylog.groups.requests import (
    CheckSession,
    EndInitialDelay,
    EndJoin,
    EndSync,
    ExpireOffsets,
    GroupChanged,
    Loaded,
    Request,
    SessionEnded,
    SessionSet,
    TopicsDeleted,
)
from skylog.groups.settings import GroupSettings
from skylog.groups.step import Session, Step, touch
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    GROUP_MEMBER_METADATA_BYTES_MAX,
    GROUP_METADATA_BYTES_MAX,
    GROUP_PASS_GROUPS_MAX,
    GROUP_PASS_RECORDS_BYTES_MAX,
)
from skylog.replicated.machine import Effect, Result, StartTimer
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.group_metadata_key import GroupMetadataKey
from skylog.wire.messages.group_metadata_value import GroupMetadataValue
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.leave_group_request import LeaveGroupRequest
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.offset_commit_request import OffsetCommitRequest
from skylog.wire.messages.offset_delete_request import OffsetDeleteRequest
from skylog.wire.messages.offset_fetch_request import OffsetFetchRequestGroup
from skylog.wire.messages.sync_group_request import SyncGroupRequest

GroupRequest = (
    Request[Any]
    | Loaded
    | CheckSession
    | EndInitialDelay
    | EndJoin
    | EndSync
    | ExpireOffsets
    | TopicsDeleted
)
# In a batch, next to the names in its key.
_TOMBSTONE_OVERHEAD_BYTES: Final = 64


class GroupMachine:
    """Classic groups and committed offsets; see ``replicated/machine.py`` for the contract."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._groups: dict[str, ClassicGroup] = {}
        # The last record of each group, from which a new leader would start.
        self._written: dict[str, GroupMetadataValue] = {}
        self._offsets = offsets.Offsets()
        self._sessions: dict[str, dict[str, Session]] = {}
        # Of the members of all groups.
        self._metadata_bytes = 0

    def handle(self, request: GroupRequest, now_ms: int) -> Result[Any]:
        match request:
            case Request():
                return self._handle_client(request, now_ms)
            case Loaded():
                return self._loaded(now_ms)
            case ExpireOffsets() | TopicsDeleted():
                return self._remove_offsets(request, now_ms)
            case _:
                return self._handle_timer(request, now_ms)

    def apply(self, record: Any, offset: int) -> None:
        match record:
            case GroupChanged(group):
                self._put(group)
            case SessionSet(group_id, member_id, deadline_ms, timer_ms):
                sessions = self._sessions.setdefault(group_id, {})
                sessions[member_id] = Session(deadline_ms, timer_ms)
            case SessionEnded(group_id, member_id):
                sessions = self._sessions.get(group_id, {})
                if sessions.pop(member_id, None) is not None and not sessions:
                    del self._sessions[group_id]
            case OffsetRecord():
                self._offsets.apply(record)
                if record.value is not None:  # a group without members may commit, too
                    self._groups.setdefault(record.key.group, ClassicGroup(record.key.group))
            case GroupRecord():
                self._apply_group(record)

    def snapshot(self) -> Iterator[GroupsRecord]:
        for group_id, value in self._written.items():
            yield GroupRecord(GroupMetadataKey(group_id), value)
        yield from self._offsets.records()

    # For looking at

    def group(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def offsets_of(self, group_id: str) -> offsets.TopicOffsets:
        return self._offsets.of_group(group_id)

    def _apply_group(self, record: GroupRecord) -> None:
        group_id = record.key.group
        if record.value is not None:
            self._written[group_id] = record.value
            self._put(group_from(group_id, record.value))
            return
        self._written.pop(group_id, None)
        group = self._groups.pop(group_id, None)
        self._metadata_bytes -= group.metadata_bytes if group is not None else 0
        self._sessions.pop(group_id, None)

    def _put(self, group: ClassicGroup) -> None:
        old = self._groups.get(group.group_id)
        self._metadata_bytes += group.metadata_bytes - (old.metadata_bytes if old else 0)
        self._groups[group.group_id] = group

    # Clients' requests

    def _handle_client(self, request: Request[Any], now_ms: int) -> Result[Any]:
        message = request.message
        match message:
            case HeartbeatRequest():
                return self._heartbeat(message, now_ms)
            case OffsetCommitRequest():
                return self._commit(request, now_ms)
            case OffsetFetchRequestGroup():
                return Result(offsets.fetch(message, self._offsets.of_group(message.group_id)))
            case JoinGroupRequest():
                return self._join(request, now_ms)
            case SyncGroupRequest():
                step = self._step(self._known(message.group_id), now_ms)
                return step.result(classic.sync(step, request))
            case LeaveGroupRequest():
                step = self._step(self._known(message.group_id), now_ms)
                return step.result(classic.leave(step, request))
            case _:
                return self._administer(message, request.version)

    def _administer(self, message: Any, version: int) -> Result[Any]:
        match message:
            case ListGroupsRequest():
                return Result(views.list_groups(message, self._groups.values()))
            case DescribeGroupsRequest():
                return Result(views.describe_groups(message.groups, version, self._groups))
            case DeleteGroupsRequest():
                return self._delete_groups(message)
            case OffsetDeleteRequest():
                group = self._known(message.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
                known = self._offsets.of_group(message.group_id)
                response, records = offsets.delete(message, group, known)
                return Result(response, records)
            case _:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def _step(self, group: ClassicGroup, now_ms: int) -> Step:
        sessions = self._sessions.get(group.group_id, {})
        return Step(group.draft(), sessions, self._settings, now_ms)

    def _known(
        self, group_id: str, unknown: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID
    ) -> ClassicGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(unknown, f"Group {group_id} not found.")
        return group

    def _join(self, request: Request[JoinGroupRequest], now_ms: int) -> Result[Any]:
        group_id, member_id = request.message.group_id, request.message.member_id
        group = self._groups.get(group_id)
        if group is None and member_id != classic.NO_MEMBER_ID:
            return Result(classic.join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        if not self._has_room_for(request.message, group):
            return Result(classic.join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id))
        step = self._step(group or ClassicGroup(group_id, state_since_ms=now_ms), now_ms)
        if group is None:
            step.records.append(new_group_record(group_id, now_ms))
        return step.result(classic.join(step, request))

    def _has_room_for(self, message: JoinGroupRequest, group: ClassicGroup | None) -> bool:
        """A member's metadata stays in memory, so it is limited, alone and in sum."""
        size = sum(len(p.name) + len(p.metadata) for p in message.protocols)
        known = group.members.get(message.member_id) if group is not None else None
        more = size - known.metadata_bytes if known is not None else size
        return size <= GROUP_MEMBER_METADATA_BYTES_MAX and (
            more <= 0 or self._metadata_bytes + more <= GROUP_METADATA_BYTES_MAX
        )

    def _heartbeat(self, message: HeartbeatRequest, now_ms: int) -> Result[Any]:
        """The most frequent of all requests: it makes no draft and, mostly, no timer."""
        group = self._known(message.group_id)
        response = classic.heartbeat(group, message)
        event, timers = self._heard_of(group, message.member_id, now_ms)
        return Result(response, volatile=(event,), effects=timers)

    def _heard_of(
        self, group: ClassicGroup, member_id: str, now_ms: int
    ) -> tuple[SessionSet, tuple[Effect, ...]]:
        session = self._sessions.get(group.group_id, {}).get(member_id)
        timeout_ms = group.members[member_id].session_timeout_ms
        event, timer = touch(group.group_id, member_id, timeout_ms, now_ms, session)
        return event, () if timer is None else (timer,)

    def _commit(self, request: Request[OffsetCommitRequest], now_ms: int) -> Result[Any]:
        message = request.message
        group = self._groups.get(message.group_id)
        offsets.check_commit(group, request)
        response, records = offsets.commit(message, self._settings, now_ms)
        if group is None or group.state is GroupState.EMPTY:
            return Result(response, records)
        event, timers = self._heard_of(group, message.member_id, now_ms)
        return Result(response, records, (event,), timers)

    def _delete_groups(self, message: DeleteGroupsRequest) -> Result[Any]:
        response, records = DeleteGroupsResponse(), list[GroupsRecord]()
        for group_id in dict.fromkeys(message.groups_names):
            group = self._groups.get(group_id)
            error = ErrorCode.NONE
            if group is None:
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.state is not GroupState.EMPTY:
                error = ErrorCode.NON_EMPTY_GROUP
            else:
                records += offsets.all_tombstones(group_id, self._offsets.of_group(group_id))
                records.append(group_tombstone(group_id))
            response.results.append(DeletableGroupResult(group_id, error))
        return Result(response, records)

    # Timers

    def _loaded(self, now_ms: int) -> Result[Any]:
        """Members' sessions begin anew, as nobody knows when they were last heard of."""
        records: list[GroupsRecord] = []
        volatile: list[Any] = []
        effects: list[Effect] = [self._next_expiry()]
        for group in self._groups.values():
            if not group.members:
                continue
            step = self._step(group, now_ms)
            for member in group.members.values():
                step.start_session(member.member_id, member.session_timeout_ms)
            if len(group.members) > self._settings.group_size_max:
                rebalance.prepare_rebalance(step)
            result = step.result(None)
            records += result.records
            volatile += result.volatile
            effects += result.effects
        return Result(None, records, volatile, effects)

    def _handle_timer(
        self, timer: CheckSession | EndInitialDelay | EndJoin | EndSync, now_ms: int
    ) -> Result[Any]:
        group = self._groups.get(timer.group_id)
        if group is None:
            return Result(None)
        step = self._step(group, now_ms)
        match timer:
            case CheckSession():
                rebalance.check_session(step, timer)
            case EndInitialDelay():
                rebalance.end_initial_delay(step, timer)
            case EndJoin():
                rebalance.end_join(step, timer)
            case EndSync():
                rebalance.end_sync(step, timer)
        return step.result(None)

    def _next_expiry(self) -> StartTimer:
        return StartTimer("expiry", self._settings.offsets_check_interval_ms, ExpireOffsets())

    def _remove_offsets(self, request: ExpireOffsets | TopicsDeleted, now_ms: int) -> Result[Any]:
        """One bounded part of a pass over all groups; a timer brings the next part at once."""
        group_ids = tuple(self._groups) if request.rest is None else request.rest
        records: list[GroupsRecord] = []
        done, room = 0, GROUP_PASS_RECORDS_BYTES_MAX
        for group_id in group_ids[:GROUP_PASS_GROUPS_MAX]:
            group = self._groups.get(group_id)
            removed = [] if group is None else self._removed(request, group, now_ms)
            fitting = _fitting(removed, room)
            records += fitting
            room -= sum(map(_tombstone_bytes, fitting))
            if len(fitting) < len(removed):
                break  # the next part begins with the rest of this group
            done += 1
        rest = group_ids[done:]
        effects: tuple[Effect, ...] = ()
        match request:
            case ExpireOffsets():
                more = StartTimer("expiry", 0, ExpireOffsets(rest))
                effects = (more if rest else self._next_expiry(),)
            case TopicsDeleted(topics) if rest:
                effects = (StartTimer(("deleted", topics), 0, TopicsDeleted(topics, rest)),)
        return Result(None, records, effects=effects)

    def _removed(
        self, request: ExpireOffsets | TopicsDeleted, group: ClassicGroup, now_ms: int
    ) -> list[GroupsRecord]:
        known = self._offsets.of_group(group.group_id)
        if isinstance(request, TopicsDeleted):
            return [*offsets.topic_tombstones(group.group_id, known, request.topics)]
        records: list[GroupsRecord] = [
            *offsets.expired_tombstones(group, known, self._settings.offsets_retention_ms, now_ms)
        ]
        nothing_left = len(records) == sum(map(len, known.values()))
        if nothing_left and group.state is GroupState.EMPTY:
            records.append(group_tombstone(group.group_id))
        return records


def _fitting(records: list[GroupsRecord], bytes_max: int) -> list[GroupsRecord]:
    """The first of the records, up to the one that fills the room."""
    fitting: list[GroupsRecord] = []
    for record in records:
        if bytes_max <= 0:
            break
        bytes_max -= _tombstone_bytes(record)
        fitting.append(record)
    return fitting


def _tombstone_bytes(record: GroupsRecord) -> int:
    names = len(record.key.group.encode())
    if isinstance(record, OffsetRecord):
        names += len(record.key.topic)
    return _TOMBSTONE_OVERHEAD_BYTES + names
