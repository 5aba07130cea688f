"""Membership in a consumer group of the classic protocol, with an eager range assignment.

==========  ===========================================  ============================
state       event                                        then
==========  ===========================================  ============================
OUT         ``join``                                     JoinGroup, SyncGroup; STABLE
STABLE      heartbeat: REBALANCE_IN_PROGRESS             ``rejoin`` is set
STABLE      heartbeat: UNKNOWN_MEMBER_ID, FENCED_…       OUT without id, ``rejoin``
STABLE      heartbeat: ILLEGAL_GENERATION                OUT, ``rejoin`` is set
any         ``leave``                                    LeaveGroup; OUT
==========  ===========================================  ============================
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from skylog.client.assignor import (
    PROTOCOL_TYPE,
    RANGE,
    assign_range,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import Member
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from skylog.wire.messages.sync_group_response import SyncGroupResponse
from skylog.wire.schema import Message

# The group has moved on; the member must rejoin.
_REJOIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
_ID_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A member's time-outs."""

    group_id: str
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3000


class GroupMember:
    """One member; ``rejoin`` means that the assignment is no longer valid."""

    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._lane = cluster.new_lane()
        self._member_id = ""
        self._generation = -1
        self._heart: asyncio.Task[None] | None = None
        self.rejoin = True
        self.failure: KafkaError | None = None

    @property
    def identity(self) -> Member:
        return Member(self._member_id, self._generation)

    async def join(self, topics: Collection[str]) -> list[TopicPartition]:
        """Take part in rebalances until there is an assignment."""
        await self._stop_heart()
        while True:
            joined = await self._join(topics)
            if joined is None:
                continue
            try:
                assignment = await self._sync(joined)
            except KafkaError as error:
                await self._again(error)
                continue
            self.rejoin = False
            self._heart = asyncio.ensure_future(self._beat())
            return assignment

    async def _join(self, topics: Collection[str]) -> JoinGroupResponse | None:
        protocol = JoinGroupRequestProtocol(RANGE, encode_subscription(topics))
        request = JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        answer: JoinGroupResponse = await self._ask(
            request, timeout_ms=self._settings.rebalance_timeout_ms
        )
        error = error_of(answer.error_code, f"group {self._settings.group_id}")
        if error is None:
            self._member_id, self._generation = answer.member_id, answer.generation_id
            return answer
        if error.code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return None
        await self._again(error)
        return None

    async def _again(self, error: KafkaError) -> None:
        """Prepare to rejoin, unless the error is definite."""
        self.note(error)
        if error.code not in _REJOIN:
            raise error
        await asyncio.sleep(self._cluster.backoff(0))

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = await self._assign(joined)
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        answer: SyncGroupResponse = await self._ask(
            request, timeout_ms=self._settings.rebalance_timeout_ms
        )
        check(answer.error_code, f"group {self._settings.group_id}")
        return decode_assignment(answer.assignment)

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """The leader assigns partitions to all members."""
        wanted = {entry.member_id: decode_subscription(entry.metadata) for entry in joined.members}
        topics = {topic for topics in wanted.values() for topic in topics}
        await self._cluster.refresh(sorted(topics))
        known = self._cluster.metadata.topics
        counts = {topic: len(known[topic].partitions) for topic in topics if topic in known}
        return [
            SyncGroupRequestAssignment(member, encode_assignment(partitions))
            for member, partitions in assign_range(counts, wanted).items()
        ]

    async def _beat(self) -> None:
        """Send heartbeats until the coordinator requests a rejoin."""
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
        )
        while not self.rejoin:
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            try:
                answer: HeartbeatResponse = await self._ask(request)
                check(answer.error_code, f"group {self._settings.group_id}")
            except KafkaError as error:
                self.note(error)
                if error.code not in _REJOIN and not error.retriable:
                    self.failure = error
                    return

    def note(self, error: KafkaError) -> None:
        """Update the membership state after an error, including that of a commit."""
        if error.code in _ID_LOST:
            self._member_id = ""
        if error.code in _ID_LOST or error.code is ErrorCode.ILLEGAL_GENERATION:
            self._generation = -1
        if error.code in _REJOIN or error.code in _ID_LOST:
            self.rejoin = True

    async def leave(self) -> None:
        """Leave, so that the others need not wait for the session time-out; errors are ignored."""
        await self._stop_heart()
        member_id, self._member_id, self._generation, self.rejoin = self._member_id, "", -1, True
        try:
            if member_id:
                group_id = self._settings.group_id
                request = LeaveGroupRequest(group_id, members=[MemberIdentity(member_id)])
                connection = await self._cluster.coordinator(group_id, lane=self._lane)
                await connection.request(request, version_min=3)
        except KafkaError:
            return
        finally:
            await self._cluster.close_lane(self._lane)

    async def _ask(self, request: Message, timeout_ms: int = 0) -> Any:
        return await self._cluster.at_coordinator(
            self._settings.group_id,
            request,
            lambda answer: int(answer.error_code),
            timeout_ms=timeout_ms,
            lane=self._lane,
        )

    async def _stop_heart(self) -> None:
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
            await asyncio.wait([heart])
