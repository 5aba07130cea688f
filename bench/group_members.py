"""Members of consumer groups that only send heartbeats, in both protocols."""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final

from skylog.client.assignor import (
    PROTOCOL_TYPE,
    RANGE,
    assign_range,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from skylog.client.connection import ClientConnection
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from skylog.wire.schema import Message

TOPIC: Final = "groups"
PARTITIONS: Final = 20
REBALANCE_TIMEOUT_MS: Final = 300_000
CLASSIC_SESSION_MS: Final = 45_000
# heartbeat.interval.ms of Java's clients; in the consumer protocol the broker sets it.
CLASSIC_INTERVAL_SECONDS: Final = 3.0
LEAVE_EPOCH: Final = -1
# The coordinator is not available yet.
_NOT_YET: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_REJOIN: Final = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.MEMBER_ID_REQUIRED,
)


@dataclass(slots=True)
class Group:
    """One group, as its members see it."""

    name: str
    members: list[Member] = field(default_factory=list)
    # The epoch that all members must leave before the group counts as settled.
    epoch_before: int = 0
    topic_id: Any = None
    # The connection of all members, if they can share one.
    connection: ClientConnection | None = None

    @property
    def settled(self) -> bool:
        """All members know of the same epoch, and each partition has one owner."""
        epochs = {member.epoch for member in self.members}
        if len(epochs) != 1 or epochs.pop() <= self.epoch_before:
            return False
        owned = [partition for member in self.members for partition in member.owned]
        return (
            all(member.owned for member in self.members)
            and len(owned) == PARTITIONS
            and len(set(owned)) == PARTITIONS
        )


class Member(ABC):
    """One member; ``epoch`` is the generation in the classic protocol."""

    def __init__(self, group: Group, connection: ClientConnection) -> None:
        self.group = group
        self.connection = connection
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self.interval_seconds = CLASSIC_INTERVAL_SECONDS
        self.heartbeats = 0

    @abstractmethod
    async def join(self) -> None: ...

    @abstractmethod
    async def beat(self) -> None:
        """One heartbeat, and what its response asks for."""

    @abstractmethod
    async def leave(self) -> None: ...

    async def ask(self, request: Message, timeout_ms: int = 0) -> Any:
        while True:
            answer = await self.connection.request(request, timeout_ms=timeout_ms)
            if answer.error_code not in _NOT_YET:
                return answer
            await asyncio.sleep(0.1)

    def fail(self, code: int) -> None:
        raise SystemExit(f"{self.group.name}: {ErrorCode(code).name}")


class ConsumerMember(Member):
    """Of the consumer protocol (KIP-848)."""

    def __init__(self, group: Group, connection: ClientConnection) -> None:
        super().__init__(group, connection)
        self.id = str(uuid.uuid4())

    async def join(self) -> None:
        await self._tell(
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )

    async def beat(self) -> None:
        await self._tell()

    async def leave(self) -> None:
        self.epoch = LEAVE_EPOCH
        await self.ask(ConsumerGroupHeartbeatRequest(self.group.name, self.id, self.epoch))

    async def _tell(self, **more: Any) -> None:
        """Take the assignment, and report it to the coordinator at once."""
        while True:
            request = ConsumerGroupHeartbeatRequest(self.group.name, self.id, self.epoch, **more)
            answer: ConsumerGroupHeartbeatResponse = await self.ask(request)
            self.heartbeats += 1
            if answer.error_code:
                self.fail(answer.error_code)
            self.epoch = answer.member_epoch
            self.interval_seconds = answer.heartbeat_interval_ms / 1000
            if answer.assignment is None:
                return
            given = [one for t in answer.assignment.topic_partitions for one in t.partitions]
            if self.owned == frozenset(given):
                return
            self.owned = frozenset(given)
            owned = [TopicPartitions(self.group.topic_id, sorted(given))] if given else []
            more = {"topic_partitions": owned}


class ClassicMember(Member):
    """Of the classic protocol, with eager range assignments."""

    def __init__(self, group: Group, connection: ClientConnection) -> None:
        super().__init__(group, connection)
        self.id = ""

    async def join(self) -> None:
        while True:
            request = JoinGroupRequest(
                self.group.name,
                CLASSIC_SESSION_MS,
                REBALANCE_TIMEOUT_MS,
                self.id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(RANGE, encode_subscription([TOPIC]))],
            )
            joined: JoinGroupResponse = await self.ask(request, REBALANCE_TIMEOUT_MS)
            self.id = joined.member_id
            if not joined.error_code and await self._sync(joined):
                return
            if joined.error_code and joined.error_code not in _REJOIN:
                self.fail(joined.error_code)

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        shares = []
        if joined.leader == joined.member_id:
            wanted = {member.member_id: [TOPIC] for member in joined.members}
            shares = [
                SyncGroupRequestAssignment(member, encode_assignment(partitions))
                for member, partitions in assign_range({TOPIC: PARTITIONS}, wanted).items()
            ]
        request = SyncGroupRequest(
            self.group.name,
            joined.generation_id,
            self.id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=shares,
        )
        answer = await self.ask(request, REBALANCE_TIMEOUT_MS)
        if answer.error_code in _REJOIN:
            return False
        if answer.error_code:
            self.fail(answer.error_code)
        self.epoch = joined.generation_id
        self.owned = frozenset(found.partition for found in decode_assignment(answer.assignment))
        return True

    async def beat(self) -> None:
        answer = await self.ask(HeartbeatRequest(self.group.name, self.epoch, self.id))
        self.heartbeats += 1
        if answer.error_code in _REJOIN:
            await self.join()
        elif answer.error_code:
            self.fail(answer.error_code)

    async def leave(self) -> None:
        identity = MemberIdentity(self.id)
        await self.ask(LeaveGroupRequest(self.group.name, members=[identity]))
