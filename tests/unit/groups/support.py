"""A group machine without a runtime: the test controls time, timers and parked requests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from skylog.groups.consumer.world import World
from skylog.groups.machine import GroupMachine
from skylog.groups.members import ClassicGroup
from skylog.groups.records import GroupRecordCodec
from skylog.groups.requests import Loaded, Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.log import KeyValue
from skylog.replicated.machine import Answer, CancelTimer, Effect, Parked, Result, StartTimer
from skylog.wire.codec import encode
from skylog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
INITIAL_DELAY_MS = 3_000


def subscription(*topics: str) -> bytes:
    return b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


def join_request(
    member_id: str = "",
    *protocols: str,
    instance_id: str | None = None,
    metadata: bytes | None = None,
    protocol_type: str = "consumer",
    group_id: str = GROUP,
    rebalance_ms: int = REBALANCE_MS,
) -> JoinGroupRequest:
    data = subscription("topic") if metadata is None else metadata
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name, data) for name in protocols or ("range",)],
    )


def commit_request(
    member_id: str = "",
    generation: int = -1,
    *,
    offset: int = 42,
    topic: str = "topic",
    metadata: str | None = "",
    group_id: str = GROUP,
    retention_ms: int = -1,
    instance_id: str | None = None,
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


@dataclass
class Call:
    """A request and, once there is one, its reply."""

    reply: Any = None
    error: ErrorCode | None = None

    @property
    def code(self) -> ErrorCode:
        """The error, raised or in the reply; fails while there is no reply."""
        assert self.answered
        return ErrorCode(self.reply.error_code) if self.error is None else self.error

    @property
    def answered(self) -> bool:
        return self.reply is not None or self.error is not None

    def settle(self, outcome: Any) -> None:
        assert not self.answered
        if isinstance(outcome, KafkaError):
            self.error = outcome.code
        else:
            self.reply = outcome


def fingerprint(machine: GroupMachine) -> str:
    """A machine's whole state as text."""
    return repr(
        (machine._groups, machine._written, list(machine._offsets.records()), machine._sessions)
    )


@dataclass
class Bench:
    """Checks for every request that ``handle`` changes nothing."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    now_ms: int = 1_700_000_000_000
    log: list[KeyValue] = field(default_factory=list)
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.machine = GroupMachine(self.settings, self.world)
        self.timers: dict[Any, tuple[int, Any]] = {}
        self._parked: dict[Any, list[Call]] = {}
        self._suffix = 0
        self._codec = GroupRecordCodec()
        self.run(Loaded())

    def run(self, request: Any) -> Call:
        before = fingerprint(self.machine)
        call = Call()
        try:
            result = self.machine.handle(request, self.now_ms)
        except KafkaError as error:
            assert fingerprint(self.machine) == before
            call.settle(error)
            return call
        assert fingerprint(self.machine) == before
        self._apply(result)
        if isinstance(result.reply, Parked):
            self._parked.setdefault(result.reply.key, []).append(call)
        elif result.reply is not None:
            call.settle(result.reply)
        for effect in result.effects:
            self._execute(effect)
        return call

    def _apply(self, result: Result[Any]) -> None:
        for record in result.records:
            self.log.append(self._codec.encode(record))
            self.machine.apply(record, len(self.log) - 1)
        for event in result.volatile:
            self.machine.apply(event, -1)

    def _execute(self, effect: Effect) -> None:
        match effect:
            case StartTimer(key, delay_ms, later):
                assert delay_ms >= 0
                self.timers[key] = (self.now_ms + delay_ms, later)
            case CancelTimer(key):
                self.timers.pop(key, None)
            case Answer(key, reply):
                for parked in self._parked.pop(key, []):
                    parked.settle(reply)

    def ask(self, message: Any, version: int = 5) -> Call:
        self._suffix += 1
        return self.run(Request(message, version, "client", "/host", f"{self._suffix:04}"))

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while True:
            due = [(at_ms, key) for key, (at_ms, _) in self.timers.items() if at_ms <= end_ms]
            if not due:
                break
            at_ms, key = min(due, key=lambda entry: entry[0])
            self.now_ms = max(self.now_ms, at_ms)
            self.run(self.timers.pop(key)[1])
        self.now_ms = end_ms

    def reload(self) -> Self:
        """The state that another broker would load from the log."""
        other = replace(self, log=list(self.log))
        other.machine = GroupMachine(self.settings, self.world)
        for offset, (key, value) in enumerate(self.log):
            record = self._codec.decode(key, value)
            if record is not None:
                other.machine.apply(record, offset)
        other.run(Loaded())
        return other

    @property
    def group(self) -> ClassicGroup:
        group = self.machine.group(GROUP)
        assert isinstance(group, ClassicGroup)
        return group

    # What clients do

    def join(self, member_id: str = "", *protocols: str, version: int = 5, **more: Any) -> Call:
        return self.ask(join_request(member_id, *protocols, **more), version)

    def new_member(self, *protocols: str, **more: Any) -> tuple[str, Call]:
        """The two joins of a dynamic member."""
        first = self.join("", *protocols, **more)
        assert first.code is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.reply.member_id
        return member_id, self.join(member_id, *protocols, **more)

    def sync(
        self,
        member_id: str,
        generation: int,
        *,
        instance_id: str | None = None,
        protocol_name: str | None = None,
        protocol_type: str | None = None,
        **assignments: bytes,
    ) -> Call:
        return self.ask(
            SyncGroupRequest(
                GROUP,
                generation,
                member_id,
                instance_id,
                protocol_type,
                protocol_name,
                [SyncGroupRequestAssignment(k, v) for k, v in assignments.items()],
            )
        )

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> Call:
        return self.ask(HeartbeatRequest(GROUP, generation, member_id, instance_id))

    def leave(self, *members: str, instance_id: str | None = None) -> Call:
        identities = [MemberIdentity(member, instance_id) for member in members]
        return self.ask(LeaveGroupRequest(GROUP, members=identities))

    def commit(self, *args: Any, version: int = 8, **more: Any) -> Call:
        return self.ask(commit_request(*args, **more), version)

    def stable(self, size: int = 1, *protocols: str, **more: Any) -> list[str]:
        """A stable group of dynamic members; the first one leads."""
        calls = [self.new_member(*protocols, **more) for _ in range(size)]
        members = [member for member, _ in calls]
        self.advance(INITIAL_DELAY_MS * 2)
        assert all(call.code is ErrorCode.NONE for _, call in calls)
        self.settle(*members)
        return members

    def settle(self, *members: str) -> None:
        """All members sync, the leader with an assignment for each."""
        generation = self.group.generation
        assignments = {member: f"part of {member}".encode() for member in members}
        calls = [
            self.sync(m, generation, **(assignments if m == self.group.leader else {}))
            for m in members
        ]
        assert [call.code for call in calls] == [ErrorCode.NONE] * len(members)
