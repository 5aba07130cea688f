"""The state machine of one partition of ``__consumer_offsets``: its groups and their offsets.

===================  ==============================================================================
state of a group     goes to
===================  ==============================================================================
Empty                PreparingRebalance: a member joins · gone: deleted, or its offsets expired
PreparingRebalance   CompletingRebalance: all members joined, or the time to join is over ·
                     Empty: no member joined
CompletingRebalance  Stable: the leader synced · PreparingRebalance: a member came, changed or
                     went, or did not sync in time
Stable               PreparingRebalance: a member came, changed or went, or the leader rejoined
===================  ==============================================================================

This is the table of classic groups; the one of consumer groups, whose every step is a record, is in
``consumer/reconcile.py``.

A generation is written when its leader has synced, and when a group has become empty. Everything in
between (joined members, parked requests, session deadlines) is volatile: a new leader of the
partition starts from the last written generation, and its members' requests rebuild the rest.
"""

from __future__ import annotations

from typing import Any

from skylog.groups import classic, offsets, passes, rebalance, views
from skylog.groups.consumer import commits, dispatch
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.heartbeat import restart_timers
from skylog.groups.consumer.requests import (
    EndRebalance,
    EndWait,
    MetadataChecked,
    RegexesResolved,
    TopicsChanged,
)
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.consumer.views import describe as describe_consumer_groups
from skylog.groups.consumer.world import World
from skylog.groups.members import ClassicGroup
from skylog.groups.passes import AnyGroup, is_empty
from skylog.groups.records import (
    GroupsRecord,
    new_group_record,
)
from skylog.groups.requests import (
    CheckSession,
    EndInitialDelay,
    EndJoin,
    EndSync,
    ExpireOffsets,
    Loaded,
    Request,
    SessionSet,
    TopicsDeleted,
)
from skylog.groups.settings import GroupSettings
from skylog.groups.step import Step, touch
from skylog.groups.tables import GroupTables
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    GROUP_MEMBER_METADATA_BYTES_MAX,
    GROUP_METADATA_BYTES_MAX,
)
from skylog.log.producers import TransactionEnd
from skylog.replicated.machine import Effect, Result
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
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
    | TopicsChanged
    | TransactionEnd
    | dispatch.ConsumerTimer
)


class GroupMachine(GroupTables):
    """Groups and committed offsets; see ``replicated/machine.py`` for the contract."""

    def __init__(self, settings: GroupSettings, world: World | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._world = World() if world is None else world

    def handle(self, request: GroupRequest, now_ms: int) -> Result[Any]:
        match request:
            case Request():
                return self._handle_client(request, now_ms)
            case Loaded():
                return self._loaded(now_ms)
            case ExpireOffsets() | TopicsDeleted():
                return self._remove_offsets(request, now_ms)
            case TopicsChanged():
                return self._look_again(request)
            case TransactionEnd():
                return Result(None, transaction=request)
            case _:
                return self._handle_timer(request, now_ms)

    # Clients' requests

    def _handle_client(self, request: Request[Any], now_ms: int) -> Result[Any]:
        message = request.message
        match message:
            case ConsumerGroupHeartbeatRequest():
                group = self._groups.get(message.group_id)
                step = self._consumer_step(message.group_id, now_ms)
                return dispatch.handle_heartbeat(step, request, group)
            case OffsetCommitRequest():
                return self._commit(request, now_ms)
            case OffsetFetchRequestGroup():
                return self._fetch(message, require_stable=request.require_stable)
            case HeartbeatRequest() | JoinGroupRequest() | SyncGroupRequest() | LeaveGroupRequest():
                return self._handle_classic(request, now_ms)
            case _:
                return self._administer(message, request.version)

    def _handle_classic(self, request: Request[Any], now_ms: int) -> Result[Any]:
        """A request of the classic protocol, from a member of either kind of group."""
        message = request.message
        group = self._groups.get(message.group_id)
        if isinstance(group, ConsumerGroup) and group.members:
            return dispatch.handle_classic(self._consumer_step(message.group_id, now_ms), request)
        match message:
            case JoinGroupRequest():
                return self._join(request, now_ms)
            case HeartbeatRequest():
                return self._heartbeat(message, now_ms)
            case SyncGroupRequest():
                step = self._step(self._known(message.group_id), now_ms)
                return step.result(classic.sync(step, request))
            case _:
                step = self._step(self._known(message.group_id), now_ms)
                return step.result(classic.leave(step, request))

    def _administer(self, message: Any, version: int) -> Result[Any]:
        match message:
            case ListGroupsRequest():
                return Result(views.list_groups(message, self._groups.values()))
            case DescribeGroupsRequest():
                return Result(views.describe_groups(message.groups, version, self._groups))
            case ConsumerGroupDescribeRequest():
                topics, default = self._world.topics, self._settings.consumer_assignors[0]
                found = describe_consumer_groups(message.group_ids, self._groups, topics, default)
                return Result(ConsumerGroupDescribeResponse(groups=found))
            case DeleteGroupsRequest():
                return self._delete_groups(message)
            case OffsetDeleteRequest():
                return self._delete_offsets(message)
            case _:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def _step(self, group: ClassicGroup, now_ms: int) -> Step:
        sessions = self._sessions.get(group.group_id, {})
        return Step(group.draft(), sessions, self._settings, now_ms)

    def _consumer_step(self, group_id: str, now_ms: int) -> ConsumerStep:
        group = self._groups.get(group_id)
        return ConsumerStep(
            group if isinstance(group, ConsumerGroup) else ConsumerGroup(group_id),
            self._sessions.get(group_id, {}),
            self._settings,
            self._world,
            now_ms,
            self._metadata_bytes,
        )

    def _known(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return group

    def _join(self, request: Request[JoinGroupRequest], now_ms: int) -> Result[Any]:
        group_id, member_id = request.message.group_id, request.message.member_id
        before = self._groups.get(group_id)
        group = before if isinstance(before, ClassicGroup) else None
        if group is None and member_id != classic.NO_MEMBER_ID:
            return Result(classic.join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        if not self._has_room_for(request.message, group):
            return Result(classic.join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id))
        step = self._step(group or ClassicGroup(group_id, state_since_ms=now_ms), now_ms)
        if group is None:
            if before is not None:  # a consumer group without members is replaced
                step.records += passes.tombstones(before)
            step.records.append(new_group_record(group_id, now_ms))
        return step.result(classic.join(step, request))

    def _has_room_for(self, message: JoinGroupRequest, group: ClassicGroup | None) -> bool:
        """A member's metadata stays in memory, so it is limited, per member and in total."""
        size = sum(len(p.name) + len(p.metadata) for p in message.protocols)
        known = group.members.get(message.member_id) if group is not None else None
        more = size - known.metadata_bytes if known is not None else size
        return size <= GROUP_MEMBER_METADATA_BYTES_MAX and (
            more <= 0 or self._metadata_bytes + more <= GROUP_METADATA_BYTES_MAX
        )

    def _heartbeat(self, message: HeartbeatRequest, now_ms: int) -> Result[Any]:
        """The most frequent request: it makes no draft and, mostly, no timer."""
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
        if request.transaction is not None:
            offsets.check_commit_in_transaction(group, request)
            response, records = offsets.commit(message, self._settings, now_ms)
            return Result(response, records, transaction=request.transaction)
        offsets.check_commit(group, request)
        response, records = offsets.commit(message, self._settings, now_ms)
        if not isinstance(group, ClassicGroup) or is_empty(group):
            return Result(response, records)
        event, timers = self._heard_of(group, message.member_id, now_ms)
        return Result(response, records, (event,), timers)

    def _fetch(self, message: OffsetFetchRequestGroup, *, require_stable: bool) -> Result[Any]:
        group = self._groups.get(message.group_id)
        if isinstance(group, ConsumerGroup):
            commits.check_fetch(group, message.member_id, message.member_epoch)
        known = self._offsets.of_group(message.group_id)
        unstable = self._offsets.pending.of_group(message.group_id) if require_stable else ()
        return Result(offsets.fetch(message, known, unstable))

    def _delete_offsets(self, message: OffsetDeleteRequest) -> Result[Any]:
        group = self._groups.get(message.group_id)
        if group is None:
            why = f"Group {message.group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, why)
        known = self._offsets.of_group(message.group_id)
        pending = self._offsets.pending.of_group(message.group_id)
        response, records = offsets.delete(message, group, known, pending)
        return Result(response, records)

    def _delete_groups(self, message: DeleteGroupsRequest) -> Result[Any]:
        response, records = DeleteGroupsResponse(), list[GroupsRecord]()
        for group_id in dict.fromkeys(message.groups_names):
            group = self._groups.get(group_id)
            error = ErrorCode.NONE
            if group is None:
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif not is_empty(group):
                error = ErrorCode.NON_EMPTY_GROUP
            else:
                records += offsets.all_tombstones(group_id, self._offsets)
                records += passes.tombstones(group)
            response.results.append(DeletableGroupResult(group_id, error))
        return Result(response, records)

    # Timers

    def _loaded(self, now_ms: int) -> Result[Any]:
        """Members' sessions restart, because their last heartbeats are unknown."""
        records: list[GroupsRecord] = []
        volatile: list[Any] = []
        effects: list[Effect] = [passes.next_expiry(self._settings)]
        for group in self._groups.values():
            if not group.members:
                continue
            result = self._restarted(group, now_ms)
            records += result.records
            volatile += result.volatile
            effects += result.effects
        return Result(None, records, volatile, effects)

    def _restarted(self, group: AnyGroup, now_ms: int) -> Result[Any]:
        if isinstance(group, ConsumerGroup):
            consumer_step = self._consumer_step(group.group_id, now_ms)
            restart_timers(consumer_step, group.members.values())
            return consumer_step.result(None)
        step = self._step(group, now_ms)
        for member in group.members.values():
            step.start_session(member.member_id, member.session_timeout_ms)
        if len(group.members) > self._settings.group_size_max:
            rebalance.prepare_rebalance(step)
        return step.result(None)

    def _handle_timer(
        self,
        timer: CheckSession | EndInitialDelay | EndJoin | EndSync | dispatch.ConsumerTimer,
        now_ms: int,
    ) -> Result[Any]:
        group = self._groups.get(timer.group_id)
        if group is None:
            return Result(None)
        if isinstance(group, ConsumerGroup):
            match timer:
                case CheckSession() | EndRebalance() | EndWait() | RegexesResolved():
                    step = self._consumer_step(timer.group_id, now_ms)
                    return dispatch.handle_timer(step, timer)
            return Result(None)
        return self._handle_classic_timer(group, timer, now_ms)

    def _handle_classic_timer(self, group: ClassicGroup, timer: Any, now_ms: int) -> Result[Any]:
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

    # Passes

    def _remove_offsets(self, request: ExpireOffsets | TopicsDeleted, now_ms: int) -> Result[Any]:
        def removed(group_id: str) -> list[GroupsRecord]:
            group = self._groups.get(group_id)
            if group is None:
                return []
            if isinstance(request, TopicsDeleted):
                return [*offsets.topic_tombstones(group_id, self._offsets, request.topics)]
            return passes.expired(group, self._offsets, self._settings, now_ms)

        group_ids = tuple(self._groups) if request.rest is None else request.rest
        return passes.remove_offsets(request, group_ids, removed, self._settings)

    def _look_again(self, request: TopicsChanged) -> Result[Any]:
        """The next heartbeat of each group that uses one of these topics detects the change."""
        notes = [
            MetadataChecked(group.group_id, checked=False)
            for group in self._groups.values()
            if isinstance(group, ConsumerGroup)
            and group.metadata_checked
            and any(map(group.is_subscribed_to, request.names))
        ]
        return Result(None, volatile=notes)
