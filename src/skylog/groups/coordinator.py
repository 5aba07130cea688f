"""The group coordinator of a broker: one machine per partition of ``__consumer_offsets`` it leads.

A method per API takes the request and its caller, and always responds: an error of a machine or its
log becomes the error code in the field where that API has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from skylog.groups import responses
from skylog.groups.consumer.apis import ConsumerGroupApis, MayDescribe
from skylog.groups.consumer.requests import TopicsChanged
from skylog.groups.consumer.world import World
from skylog.groups.machine import GroupMachine, GroupRequest
from skylog.groups.records import GroupRecordCodec
from skylog.groups.requests import ClientContext, Loaded, Request, TopicsDeleted
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.log.producers import TransactionEnd
from skylog.replicated.lifecycle import COORDINATOR_REFUSALS
from skylog.replicated.log import RuntimeLog
from skylog.replicated.machine import InTransaction
from skylog.replicated.partitioning import partition_of
from skylog.replicated.runtime import MachineKind, Runtime
from skylog.replicated.timers import LoopTimers, Timers
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_describe_response import (
    DescribedGroup as ConsumerDescribedGroup,
)
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest
from skylog.wire.messages.leave_group_response import LeaveGroupResponse
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_groups_response import ListGroupsResponse
from skylog.wire.messages.offset_commit_request import OffsetCommitRequest
from skylog.wire.messages.offset_commit_response import OffsetCommitResponse
from skylog.wire.messages.offset_delete_request import OffsetDeleteRequest
from skylog.wire.messages.offset_delete_response import OffsetDeleteResponse
from skylog.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from skylog.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from skylog.wire.messages.sync_group_response import SyncGroupResponse

_log = get_logger("groups.coordinator")
_RELOAD_DELAY_MS: Final = 1_000


class GroupCoordinator:
    """Finds the machine of a group and answers for it. All calls come from the event loop."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        rng: Random,
        timers: Timers | None = None,
        world: World | None = None,
    ) -> None:
        world = World() if world is None else world
        # The topic's partition count, once it exists; until then, the configured one.
        self.partition_count = settings.offsets_topic_partitions
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._timers: Timers = LoopTimers() if timers is None else timers
        self._runtimes: dict[int, Runtime[GroupRequest]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._kind: MachineKind[GroupRequest] = MachineKind(
            name="group coordinator",
            create=lambda: GroupMachine(settings, world),
            codec=GroupRecordCodec(),
            refusals=COORDINATOR_REFUSALS,
            loaded_request=Loaded(),
            write_timeout_ms=settings.write_timeout_ms,
        )
        self._consumers = ConsumerGroupApis(settings, self, world.topics, clock)

    # Partitions

    def partition_for(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` whose leader coordinates the group."""
        return partition_of(group_id, self.partition_count)

    def partition_led(self, index: int, log: RuntimeLog) -> None:
        """This broker now leads the partition: load its groups, in the background."""
        self.partition_resigned(index)
        runtime = Runtime(
            self._kind,
            log,
            self._clock,
            self._timers,
            on_failure=lambda error: self._reload_later(index, runtime, error),
        )
        self._runtimes[index] = runtime
        self._load(index, runtime)

    def partition_resigned(self, index: int) -> None:
        """This broker no longer leads the partition."""
        runtime = self._runtimes.pop(index, None)
        if runtime is not None:
            runtime.unload()

    def topics_deleted(self, topics: Iterable[tuple[str, Uuid]]) -> None:
        """Delete the offsets of deleted topics, in the background."""
        self._tell_all(TopicsDeleted(tuple(topics)))

    def topics_changed(self, names: Iterable[str]) -> None:
        """Topics were created, deleted or got partitions: groups that use them are updated."""
        self._tell_all(TopicsChanged(frozenset(names)))

    def _tell_all(self, request: TopicsDeleted | TopicsChanged) -> None:
        for runtime in self._runtimes.values():
            self.start(self._tell(runtime, request))

    async def loaded(self) -> None:
        """Wait until nothing is being loaded."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        for index in tuple(self._runtimes):
            self.partition_resigned(index)
        await self.loaded()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _load(self, index: int, runtime: Runtime[GroupRequest]) -> None:
        self.start(self._try_load(index, runtime))

    async def _try_load(self, index: int, runtime: Runtime[GroupRequest]) -> None:
        try:
            if self._runtimes.get(index) is runtime:
                await runtime.load()
        except Exception as error:  # noqa: BLE001 - any error: retried
            self._reload_later(index, runtime, error)

    def _reload_later(self, index: int, runtime: Runtime[GroupRequest], error: Exception) -> None:
        _log.error("offsets partition had to be unloaded", partition=index, why=str(error))
        self._timers.start(_RELOAD_DELAY_MS, lambda: self._reload(index, runtime))

    def _reload(self, index: int, runtime: Runtime[GroupRequest]) -> None:
        if self._runtimes.get(index) is runtime:
            self._load(index, runtime)

    async def _tell(
        self, runtime: Runtime[GroupRequest], request: TopicsDeleted | TopicsChanged
    ) -> None:
        try:
            await runtime.submit(request)
        except KafkaError as error:
            if isinstance(request, TopicsDeleted):  # a machine sees the rest when it is loaded
                _log.warning("offsets of deleted topics are kept", why=str(error))

    async def submit(self, group_id: str, request: Request[Any]) -> Any:
        """Ask the machine of a group; raises KafkaError, NOT_COORDINATOR if it is not here."""
        runtime = self._runtimes.get(self.partition_for(group_id))
        if runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return await runtime.submit(request)

    def _request(self, message: Any, context: ClientContext) -> Request[Any]:
        return Request(
            message, context.version, context.client_id or "", _shown(context.client_host)
        )

    # Members

    async def join_group(
        self, message: JoinGroupRequest, context: ClientContext
    ) -> JoinGroupResponse:
        member_id, version = message.member_id, context.version
        timeout_ms, limits = message.session_timeout_ms, self._settings
        if not message.group_id:
            response = responses.join_error(ErrorCode.INVALID_GROUP_ID, member_id)
        elif not limits.session_timeout_ms_min <= timeout_ms <= limits.session_timeout_ms_max:
            response = responses.join_error(ErrorCode.INVALID_SESSION_TIMEOUT, member_id)
        else:
            if version == 0:  # which has no timeout for a rebalance
                message.rebalance_timeout_ms = timeout_ms
            request = replace(self._request(message, context), member_suffix=self._member_suffix())
            try:
                response = await self.submit(message.group_id, request)
            except KafkaError as error:
                response = responses.join_error(responses.client_code(error), "")
        return responses.fit_join(response, version)

    def _member_suffix(self) -> str:
        raw = bytearray(self._rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    async def sync_group(
        self, message: SyncGroupRequest, context: ClientContext
    ) -> SyncGroupResponse:
        if not message.group_id:
            return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            found: SyncGroupResponse = await self.submit(
                message.group_id, self._request(message, context)
            )
        except KafkaError as error:
            return SyncGroupResponse(error_code=responses.client_code(error))
        return found

    async def heartbeat(
        self, message: HeartbeatRequest, context: ClientContext
    ) -> HeartbeatResponse:
        if not message.group_id:
            return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            found: HeartbeatResponse = await self.submit(
                message.group_id, self._request(message, context)
            )
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return HeartbeatResponse()  # its session restarts in any case
            return HeartbeatResponse(error_code=responses.client_code(error))
        return found

    async def leave_group(
        self, message: LeaveGroupRequest, context: ClientContext
    ) -> LeaveGroupResponse:
        if not message.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        message = responses.leaving_members(message, context.version)
        try:
            found = await self.submit(message.group_id, self._request(message, context))
        except KafkaError as error:
            found = responses.leave_error(message, error)
        return responses.fit_leave(found, context.version)

    async def consumer_group_heartbeat(
        self,
        message: ConsumerGroupHeartbeatRequest,
        context: ClientContext,
        may_describe: MayDescribe,
    ) -> ConsumerGroupHeartbeatResponse:
        """``may_describe`` says whether the member may describe a topic."""
        request = self._request(message, context)
        if not message.member_id:  # which later versions bring themselves
            request = replace(request, member_suffix=str(Uuid(self._rng.randbytes(16))))
        return await self._consumers.heartbeat(request, may_describe)

    # Offsets

    async def offset_commit(
        self,
        message: OffsetCommitRequest,
        context: ClientContext,
        transaction: InTransaction | None = None,
    ) -> OffsetCommitResponse:
        """Topics have both name and id: the caller has resolved them and removed unknown ones."""
        request = replace(self._request(message, context), transaction=transaction)
        try:
            found: OffsetCommitResponse = await self.submit(message.group_id, request)
        except KafkaError as error:
            return responses.commit_error(message, responses.client_code(error))
        return found

    async def end_transaction(self, index: int, end: TransactionEnd) -> None:
        """Write a marker to a partition: its producer's offsets become valid, or are dropped."""
        runtime = self._runtimes.get(index)
        if runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        await runtime.submit(end)

    async def offset_fetch(
        self, message: OffsetFetchRequest, context: ClientContext
    ) -> OffsetFetchResponse:
        groups, stable = responses.fetched_groups(message, context.version), message.require_stable
        found = await asyncio.gather(
            *(self.fetch_offsets(group, context, require_stable=stable) for group in groups)
        )
        return responses.fetch_response(list(found), context.version)

    async def fetch_offsets(
        self,
        group: OffsetFetchRequestGroup,
        context: ClientContext,
        *,
        require_stable: bool = False,
    ) -> OffsetFetchResponseGroup:
        """The offsets of one group, by topic name. Replies never show what could still be lost;
        ``require_stable`` also omits what a transaction may be about to change."""
        request = replace(self._request(group, context), require_stable=require_stable)
        try:
            found: OffsetFetchResponseGroup = await self.submit(group.group_id, request)
        except KafkaError as error:
            code = responses.client_code(error)
            if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:  # which old consumers do not expect
                code = ErrorCode.NOT_COORDINATOR
            return responses.fetch_error(group, code, context.version)
        return found

    async def offset_delete(
        self, message: OffsetDeleteRequest, context: ClientContext
    ) -> OffsetDeleteResponse:
        if not message.group_id:
            return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            found: OffsetDeleteResponse = await self.submit(
                message.group_id, self._request(message, context)
            )
        except KafkaError as error:
            return OffsetDeleteResponse(error_code=responses.client_code(error))
        return found

    # Administration

    async def delete_groups(
        self, message: DeleteGroupsRequest, context: ClientContext
    ) -> DeleteGroupsResponse:
        async def one(group_ids: list[str]) -> Sequence[DeletableGroupResult]:
            request = self._request(DeleteGroupsRequest(groups_names=group_ids), context)
            try:
                response: DeleteGroupsResponse = await self.submit(group_ids[0], request)
            except KafkaError as error:
                return responses.delete_errors(group_ids, responses.client_code(error))
            return response.results

        parts = self.by_partition(dict.fromkeys(message.groups_names))
        found = await asyncio.gather(*map(one, parts))
        return DeleteGroupsResponse(results=[result for part in found for result in part])

    async def describe_groups(
        self, message: DescribeGroupsRequest, context: ClientContext
    ) -> DescribeGroupsResponse:
        async def one(group_ids: list[str]) -> Sequence[DescribedGroup]:
            request = self._request(DescribeGroupsRequest(groups=group_ids), context)
            try:
                response: DescribeGroupsResponse = await self.submit(group_ids[0], request)
            except KafkaError as error:
                return responses.describe_errors(group_ids, responses.client_code(error))
            return response.groups

        found = await asyncio.gather(*map(one, self.by_partition(message.groups)))
        return DescribeGroupsResponse(groups=[group for part in found for group in part])

    async def describe_consumer_groups(
        self, message: ConsumerGroupDescribeRequest, context: ClientContext
    ) -> list[ConsumerDescribedGroup]:
        return await self._consumers.describe(self._request(message, context))

    def by_partition(self, group_ids: Iterable[str]) -> list[list[str]]:
        parts: dict[int, list[str]] = {}
        for group_id in group_ids:
            parts.setdefault(self.partition_for(group_id), []).append(group_id)
        return list(parts.values())

    async def list_groups(
        self, message: ListGroupsRequest, context: ClientContext
    ) -> ListGroupsResponse:
        request = self._request(message, context)
        outcomes = await asyncio.gather(
            *(runtime.submit(request) for runtime in tuple(self._runtimes.values())),
            return_exceptions=True,
        )
        response = ListGroupsResponse()
        for outcome in outcomes:
            if isinstance(outcome, KafkaError):
                if outcome.code is not ErrorCode.NOT_COORDINATOR:
                    return ListGroupsResponse(error_code=responses.client_code(outcome))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                response.groups += outcome.groups
        return response


def _shown(host: str) -> str:
    """An address as Kafka shows and stores it: with Java's prefix for addresses without a name."""
    return f"/{host}"
