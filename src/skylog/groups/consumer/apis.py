"""The APIs of consumer groups on a coordinator: requests are validated here, decided in the
machine.

The machine says which patterns to resolve; that is done here, in steps, since there may be very
many topics.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, Protocol

from skylog.groups import responses
from skylog.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from skylog.groups.consumer.re2 import matcher
from skylog.groups.consumer.requests import HeartbeatReply, RegexesResolved
from skylog.groups.consumer.world import Topics
from skylog.groups.requests import Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_REGEX_NAMES_PER_TURN
from skylog.kernel.logging import get_logger
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

_log = get_logger("groups.consumer")
# From this version on, members choose their ids.
_MEMBER_ID_VERSION: Final = 1
MayDescribe = Callable[[str], bool]


class Machines(Protocol):
    """The machines of a coordinator."""

    async def submit(self, group_id: str, request: Any) -> Any: ...

    def by_partition(self, group_ids: Iterable[str]) -> list[list[str]]: ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this in the background."""
        ...


class ConsumerGroupApis:
    """Always responds: an error of the machine becomes the error code of the response."""

    def __init__(
        self, settings: GroupSettings, machines: Machines, topics: Topics, clock: Clock
    ) -> None:
        self._settings = settings
        self._machines = machines
        self._topics = topics
        self._clock = clock

    async def heartbeat(
        self, request: Request[ConsumerGroupHeartbeatRequest], may_describe: MayDescribe
    ) -> ConsumerGroupHeartbeatResponse:
        """``may_describe`` says whether the member may describe a topic."""
        group_id = request.message.group_id
        try:
            check_heartbeat(request.message, request.version, self._settings.consumer_assignors)
            reply: HeartbeatReply = await self._machines.submit(group_id, request)
        except KafkaError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=responses.client_code(error), error_message=error.message or None
            )
        if reply.regexes:
            self._machines.start(self._resolve(group_id, reply.regexes, may_describe))
        return reply.response

    async def describe(
        self, request: Request[ConsumerGroupDescribeRequest]
    ) -> list[DescribedGroup]:
        async def one(group_ids: list[str]) -> Sequence[DescribedGroup]:
            part = Request(ConsumerGroupDescribeRequest(group_ids=group_ids), request.version)
            try:
                found: ConsumerGroupDescribeResponse = await self._machines.submit(
                    group_ids[0], part
                )
            except KafkaError as error:
                code = responses.client_code(error)
                return [DescribedGroup(code, group_id=group_id) for group_id in group_ids]
            return found.groups

        group_ids = [group_id for group_id in request.message.group_ids if group_id]
        parts = await asyncio.gather(*map(one, self._machines.by_partition(group_ids)))
        described = [group for part in parts for group in part]
        if len(group_ids) < len(request.message.group_ids):
            described.append(DescribedGroup(ErrorCode.INVALID_GROUP_ID, group_id=""))
        return described

    async def _resolve(
        self, group_id: str, regexes: Sequence[str], may_describe: MayDescribe
    ) -> None:
        try:
            await self._machines.submit(
                group_id, await self._matches(group_id, regexes, may_describe)
            )
        except Exception as error:  # noqa: BLE001 - any error: the group must not wait
            _log.error("matching topics not kept", group=group_id, why=str(error))
            with contextlib.suppress(KafkaError):
                await self._machines.submit(group_id, RegexesResolved(group_id))

    async def _matches(
        self, group_id: str, regexes: Sequence[str], may_describe: MayDescribe
    ) -> RegexesResolved:
        begun_ms, version = self._clock.now_ms(), self._topics.version
        found: dict[str, frozenset[str]] = {}
        names = list(self._topics.names())
        for regex in regexes:
            matched: list[str] = []
            matches = matcher(regex)
            for begin in range(0, len(names), GROUP_REGEX_NAMES_PER_TURN):
                part = names[begin : begin + GROUP_REGEX_NAMES_PER_TURN]
                matched += [name for name in part if matches(name) and may_describe(name)]
                await asyncio.sleep(0)  # yield to other tasks
            found[regex] = frozenset(matched)
        return RegexesResolved(group_id, version, begun_ms, found)


def check_heartbeat(
    message: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> None:
    """Refuse invalid requests."""
    epoch = message.member_epoch
    if version >= _MEMBER_ID_VERSION or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_text(message.member_id, "MemberId")
    _check_text(message.group_id, "GroupId")
    _check_text(message.instance_id, "InstanceId")
    _check_text(message.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        _check_joining(message)
    elif epoch == LEAVE_STATIC_EPOCH and message.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if message.server_assignor is not None and message.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {message.server_assignor} is not supported."
            f" Supported assignors: {', '.join(assignors)}.",
        )


def _check_joining(message: ConsumerGroupHeartbeatRequest) -> None:
    if message.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if message.topic_partitions is None or message.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if message.subscribed_topic_names is None and message.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must"
            " be non-null when (re-)joining."
        )


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
