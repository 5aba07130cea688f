"""The processing of one request: a draft of the group, and the consequences of the change.

The rules in ``classic.py`` and ``rebalance.py`` change the draft and record what to write, reply
and time; ``result`` returns it. Nothing here changes the machine's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skylog.groups.members import ClassicGroup, Member
from skylog.groups.records import GroupsRecord
from skylog.groups.requests import CheckSession, GroupChanged, SessionEnded, SessionSet
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from skylog.replicated.machine import Answer, CancelTimer, Effect, Parked, Result, StartTimer
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.sync_group_response import SyncGroupResponse


@dataclass(frozen=True, slots=True)
class Session:
    """A member's deadline, and the time at which its timer next checks it.

    A heartbeat moves only the deadline, not the timer, so it costs no timer work.
    """

    deadline_ms: int
    timer_ms: int


Sessions = Mapping[str, Session]


def join_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("join", group_id, member_id)


def sync_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("sync", group_id, member_id)


def touch(
    group_id: str, member_id: str, timeout_ms: int, now_ms: int, session: Session | None
) -> tuple[SessionSet, StartTimer | None]:
    """A member is alive: move its deadline, and its timer only if that is too late."""
    deadline_ms = now_ms + timeout_ms
    if session is not None and now_ms <= session.timer_ms <= deadline_ms:
        return SessionSet(group_id, member_id, deadline_ms, session.timer_ms), None
    return (
        SessionSet(group_id, member_id, deadline_ms, deadline_ms),
        StartTimer(("session", group_id, member_id), timeout_ms, CheckSession(group_id, member_id)),
    )


@dataclass(slots=True)
class Step:
    """The draft and its consequences, under construction."""

    group: ClassicGroup
    sessions: Sessions
    settings: GroupSettings
    now_ms: int
    records: list[GroupsRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    session_events: dict[str, SessionSet | SessionEnded] = field(default_factory=dict)

    def result(self, reply: Any) -> Result[Any]:
        volatile = (GroupChanged(self.group), *self.session_events.values())
        return Result(reply, tuple(self.records), volatile, tuple(self.effects))

    # Parked requests

    def park_join(self, member: Member) -> Parked:
        self.group.put(replace(member, awaiting_join=True))
        return Parked(join_key(self.group.group_id, member.member_id))

    def park_sync(self, member: Member) -> Parked:
        self.group.put(replace(member, awaiting_sync=True))
        return Parked(sync_key(self.group.group_id, member.member_id))

    def answer_join(self, member_id: str, response: JoinGroupResponse) -> None:
        """Answer a member's JoinGroup if one is parked."""
        member = self.group.members[member_id]
        if member.awaiting_join:
            self.group.put(replace(member, awaiting_join=False))
            self.effects.append(Answer(join_key(self.group.group_id, member_id), response))

    def answer_sync(self, member_id: str, response: SyncGroupResponse) -> None:
        """Answer a member's SyncGroup if one is parked."""
        member = self.group.members[member_id]
        if member.awaiting_sync:
            self.group.put(replace(member, awaiting_sync=False))
            self.effects.append(Answer(sync_key(self.group.group_id, member_id), response))

    def remove(self, member_id: str, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Remove a member from the group; its parked requests end with ``error``."""
        if member_id in self.group.members:
            self.answer_join(member_id, JoinGroupResponse(error_code=error))
            self.answer_sync(member_id, SyncGroupResponse(error_code=error))
        self.group.remove(member_id)
        self.end_session(member_id)

    # Timers

    def start_session(self, member_id: str, timeout_ms: int, *, timer_fired: bool = False) -> None:
        """Give a member ``timeout_ms`` from now; a timer that has fired cannot be reused."""
        session = None if timer_fired else self._session(member_id)
        event, timer = touch(self.group.group_id, member_id, timeout_ms, self.now_ms, session)
        self.session_events[member_id] = event
        if timer is not None:
            self.effects.append(timer)

    def end_session(self, member_id: str) -> None:
        if self._session(member_id) is not None:
            self.effects.append(CancelTimer(("session", self.group.group_id, member_id)))
        self.session_events[member_id] = SessionEnded(self.group.group_id, member_id)

    def _session(self, member_id: str) -> Session | None:
        event = self.session_events.get(member_id)
        if isinstance(event, SessionSet):
            return Session(event.deadline_ms, event.timer_ms)
        return None if event is not None else self.sessions.get(member_id)

    def start_timer(self, kind: str, delay_ms: int, request: Any) -> None:
        """A timer of the group, which replaces one of the same kind."""
        self.effects.append(StartTimer((kind, self.group.group_id), delay_ms, request))

    def cancel_timer(self, kind: str) -> None:
        self.effects.append(CancelTimer((kind, self.group.group_id)))
