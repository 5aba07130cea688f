"""The processing of one request to a consumer group: what to write, note and time.

The group itself is only read; the records are applied once they are in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.requests import EndWait, MetadataChecked, WaitSet
from skylog.groups.consumer.world import World
from skylog.groups.records import GroupsRecord
from skylog.groups.requests import SessionEnded
from skylog.groups.settings import GroupSettings
from skylog.groups.step import Session, Sessions, touch
from skylog.replicated.machine import CancelTimer, Effect, Result, StartTimer

# What the rebalance time-out of a classic member applies to.
JOIN, SYNC = "join", "sync"


@dataclass(slots=True)
class ConsumerStep:
    """The group before the request, and the consequences under construction."""

    group: ConsumerGroup
    sessions: Sessions
    settings: GroupSettings
    world: World
    now_ms: int
    # Metadata size of the members of all groups.
    metadata_bytes: int = 0
    records: list[GroupsRecord] = field(default_factory=list)
    volatile: list[Any] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def result(self, reply: Any) -> Result[Any]:
        return Result(reply, tuple(self.records), tuple(self.volatile), tuple(self.effects))

    def metadata_checked(self) -> None:
        self.volatile.append(MetadataChecked(self.group_id))

    def start_session(self, member_id: str, timeout_ms: int, *, timer_fired: bool = False) -> None:
        session: Session | None = None if timer_fired else self.sessions.get(member_id)
        event, timer = touch(self.group_id, member_id, timeout_ms, self.now_ms, session)
        self.volatile.append(event)
        if timer is not None:
            self.effects.append(timer)

    def end_timers(self, member_id: str) -> None:
        """Drop the timers of a removed member."""
        self.volatile.append(SessionEnded(self.group_id, member_id))
        self.effects.append(CancelTimer(("session", self.group_id, member_id)))
        self.effects.append(CancelTimer(("rebalance", self.group_id, member_id)))
        for kind in (JOIN, SYNC):
            self.end_wait(kind, member_id)

    def start_wait(self, kind: str, member_id: str, timeout_ms: int) -> None:
        timeout_ms = max(timeout_ms, 0)
        deadline_ms = self.now_ms + timeout_ms
        self.volatile.append(WaitSet(self.group_id, member_id, kind, deadline_ms))
        request = EndWait(self.group_id, member_id, kind)
        self.effects.append(StartTimer((kind, self.group_id, member_id), timeout_ms, request))

    def end_wait(self, kind: str, member_id: str) -> None:
        if (member_id, kind) in self.group.waits:
            self.volatile.append(WaitSet(self.group_id, member_id, kind, None))
            self.effects.append(CancelTimer((kind, self.group_id, member_id)))
