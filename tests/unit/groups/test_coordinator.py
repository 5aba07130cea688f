"""The coordinator finds a group's machine, and returns an error if there is none."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from skylog.groups.coordinator import GroupCoordinator
from skylog.groups.requests import ClientContext
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.replicated.log import KeyValue, LoadedBatch
from skylog.replicated.partitioning import java_hash
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.offset_delete_request import OffsetDeleteRequest
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from tests.unit.groups.support import INITIAL_DELAY_MS, commit_request, join_request
from tests.unit.replicated.support import LaggingLog, ManualTimers

PARTITIONS = 4
NOT_HERE = ErrorCode.NOT_COORDINATOR


class SyncedLog(LaggingLog):
    """A log with no followers to wait for."""

    def append(self, records: Any) -> int:
        end = super().append(records)
        self.commit()
        return end


class Shell:
    """A coordinator that leads the given partitions."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.settings = GroupSettings(offsets_topic_partitions=PARTITIONS)
        self.coordinator = GroupCoordinator(
            self.settings, self.clock, random.Random(1), self.timers
        )
        self.logs = [SyncedLog() for _ in range(PARTITIONS)]

    async def lead(self, *partitions: int) -> GroupCoordinator:
        for index in partitions or range(PARTITIONS):
            self.coordinator.partition_led(index, self.logs[index])
        await self.coordinator.loaded()
        return self.coordinator

    def log_of(self, group_id: str) -> SyncedLog:
        return self.logs[self.coordinator.partition_for(group_id)]


def at(version: int) -> ClientContext:
    return ClientContext(version, "client", "127.0.0.1")


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("group", 98629247),
        ("consumer-group-with-a-long-name", -1157546098),
        ("\N{GRINNING FACE}", 1772899),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_java_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_number_is_partition_0() -> None:
    assert Shell().coordinator.partition_for("polygenelubricants") == 0


def _leave(version: int) -> LeaveGroupRequest:
    return LeaveGroupRequest("group", "m", [MemberIdentity("m", "i")] if version >= 3 else [])


def _fetch(version: int) -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopic("topic", [3])
    if version < 8:
        return OffsetFetchRequest("group", [topic])
    topics = [OffsetFetchRequestTopics("topic", partition_indexes=[3])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("group", topics=topics)])


async def errors_of(coordinator: GroupCoordinator) -> dict[str, Any]:
    """The error of every API, from its place in the response."""
    c = coordinator
    commit = await c.offset_commit(commit_request("m", 1), at(8))
    fetch1 = await c.offset_fetch(_fetch(1), at(1))
    fetch5 = await c.offset_fetch(_fetch(5), at(5))
    fetch8 = await c.offset_fetch(_fetch(8), at(8))
    described = await c.describe_groups(DescribeGroupsRequest(["group"]), at(6))
    deleted = await c.delete_groups(DeleteGroupsRequest(["group"]), at(2))
    return {
        "join": (await c.join_group(join_request("m"), at(9))).error_code,
        "sync": (await c.sync_group(SyncGroupRequest("group", 1, "m"), at(5))).error_code,
        "heartbeat": (await c.heartbeat(HeartbeatRequest("group", 1, "m"), at(4))).error_code,
        "leave": (await c.leave_group(_leave(3), at(3))).error_code,
        "leave 2": (await c.leave_group(_leave(2), at(2))).error_code,
        "commit": commit.topics[0].partitions[0].error_code,
        "fetch 1": fetch1.topics[0].partitions[0].error_code,
        "fetch 5": fetch5.error_code,
        "fetch 8": fetch8.groups[0].error_code,
        "offset delete": (await c.offset_delete(OffsetDeleteRequest("group"), at(0))).error_code,
        "describe": described.groups[0].error_code,
        "delete": deleted.results[0].error_code,
    }


async def test_a_broker_that_does_not_lead_the_partition() -> None:
    shell = Shell()
    errors = await errors_of(shell.coordinator)
    assert errors == dict.fromkeys(errors, NOT_HERE)
    listed = await shell.coordinator.list_groups(ListGroupsRequest(), at(5))
    assert (listed.error_code, listed.groups) == (ErrorCode.NONE, [])


class SlowLog(SyncedLog):
    """A log that takes until ``ready`` to be read."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = asyncio.Event()

    async def read_all(self) -> AsyncIterator[LoadedBatch]:
        await self.ready.wait()
        async for batch in super().read_all():
            yield batch


async def test_a_partition_that_is_being_loaded() -> None:
    coordinator, log = Shell().coordinator, SlowLog()
    coordinator.partition_led(coordinator.partition_for("group"), log)
    await turn()
    errors = await errors_of(coordinator)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert errors.pop("heartbeat") == ErrorCode.NONE
    assert errors == dict.fromkeys(errors, loading)
    assert (await coordinator.list_groups(ListGroupsRequest(), at(5))).error_code == loading
    log.ready.set()
    await coordinator.loaded()
    assert (await coordinator.list_groups(ListGroupsRequest(), at(5))).error_code == ErrorCode.NONE


async def test_a_group_that_does_not_exist() -> None:
    coordinator = await Shell().lead()
    assert await errors_of(coordinator) == {
        "join": ErrorCode.UNKNOWN_MEMBER_ID,
        "sync": ErrorCode.UNKNOWN_MEMBER_ID,
        "heartbeat": ErrorCode.UNKNOWN_MEMBER_ID,
        "leave": ErrorCode.NONE,
        "leave 2": ErrorCode.UNKNOWN_MEMBER_ID,
        "commit": ErrorCode.ILLEGAL_GENERATION,
        "fetch 1": ErrorCode.NONE,
        "fetch 5": ErrorCode.NONE,
        "fetch 8": ErrorCode.NONE,
        "offset delete": ErrorCode.GROUP_ID_NOT_FOUND,
        "describe": ErrorCode.GROUP_ID_NOT_FOUND,
        "delete": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    left = await coordinator.leave_group(_leave(3), at(3))
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in left.members] == [
        ("m", "i", ErrorCode.UNKNOWN_MEMBER_ID)
    ]


@pytest.mark.parametrize(
    ("group_id", "timeout_ms", "code"),
    [
        ("", 10_000, ErrorCode.INVALID_GROUP_ID),
        ("group", 5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        ("group", 1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
        ("group", 6_000, ErrorCode.MEMBER_ID_REQUIRED),
        ("group", 1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
    ],
)
async def test_what_a_join_must_have(group_id: str, timeout_ms: int, code: ErrorCode) -> None:
    coordinator = await Shell().lead()
    request = join_request(group_id=group_id)
    request.session_timeout_ms = timeout_ms
    assert (await coordinator.join_group(request, at(9))).error_code == code


async def test_the_empty_group_id() -> None:
    coordinator = await Shell().lead()
    invalid = ErrorCode.INVALID_GROUP_ID
    refused: list[Callable[[], Awaitable[Any]]] = [
        lambda: coordinator.sync_group(SyncGroupRequest(), at(5)),
        lambda: coordinator.heartbeat(HeartbeatRequest(), at(4)),
        lambda: coordinator.leave_group(LeaveGroupRequest(), at(5)),
        lambda: coordinator.offset_delete(OffsetDeleteRequest(), at(0)),
    ]
    assert [(await send()).error_code for send in refused] == [invalid] * len(refused)
    # Old clients commit without a group id, and still may.
    commit = await coordinator.offset_commit(commit_request(group_id=""), at(8))
    assert commit.topics[0].partitions[0].error_code == ErrorCode.NONE
    deleted = await coordinator.delete_groups(DeleteGroupsRequest([""]), at(2))
    assert deleted.results[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
async def test_no_protocol_is_null_where_it_can_be(version: int, name: str | None) -> None:
    coordinator = await Shell().lead()
    response = await coordinator.join_group(join_request("stranger"), at(version))
    assert response.protocol_name == name


async def test_version_0_has_the_session_timeout_for_rebalances_too() -> None:
    shell = Shell()
    coordinator = await shell.lead()
    join = asyncio.create_task(coordinator.join_group(join_request(rebalance_ms=-1), at(0)))
    await turn()
    shell.timers.advance(INITIAL_DELAY_MS)
    response = await join
    assert response.error_code == ErrorCode.NONE
    prefix, *suffix = response.member_id.split("-")
    assert (prefix, [len(part) for part in suffix]) == ("client", [8, 4, 4, 4, 12])
    runtime = coordinator._runtimes[coordinator.partition_for("group")]
    group = runtime.machine.group("group")  # type: ignore[union-attr]
    assert group.rebalance_timeout_ms == 10_000


async def test_requests_for_many_groups_reach_every_partition() -> None:
    shell = Shell()
    coordinator = await shell.lead()
    names = [f"group-{number}" for number in range(20)]
    assert {coordinator.partition_for(name) for name in names} == set(range(PARTITIONS))
    for name in names:
        await coordinator.offset_commit(commit_request(group_id=name), at(8))
    listed = await coordinator.list_groups(ListGroupsRequest(), at(5))
    assert sorted(group.group_id for group in listed.groups) == sorted(names)
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in names]
    fetched = await coordinator.offset_fetch(OffsetFetchRequest(groups=groups), at(9))
    assert [group.group_id for group in fetched.groups] == names
    assert all(group.topics[0].partitions[0].committed_offset == 42 for group in fetched.groups)
    described = await coordinator.describe_groups(DescribeGroupsRequest([*names, "none"]), at(6))
    assert {group.group_id for group in described.groups} == {*names, "none"}
    coordinator.partition_resigned(0)
    deleted = await coordinator.delete_groups(DeleteGroupsRequest([*names, names[0]]), at(2))
    assert {result.group_id: result.error_code for result in deleted.results} == {
        name: ErrorCode.NONE if coordinator.partition_for(name) else NOT_HERE for name in names
    }
    assert len(deleted.results) == len(names)


async def test_fetching_nothing_and_everything_in_old_versions() -> None:
    coordinator = await Shell().lead()
    await coordinator.offset_commit(commit_request(), at(8))
    everything = await coordinator.offset_fetch(OffsetFetchRequest("group", None), at(5))
    assert everything.topics[0].partitions[0].committed_offset == 42
    assert everything.groups == []
    nothing = await coordinator.offset_fetch(OffsetFetchRequest("group", []), at(5))
    assert nothing.topics == []


async def test_a_commit_is_answered_once_it_is_below_the_high_watermark() -> None:
    shell = Shell()
    log = LaggingLog()
    shell.coordinator.partition_led(shell.coordinator.partition_for("group"), log)
    await shell.coordinator.loaded()
    commit = asyncio.create_task(shell.coordinator.offset_commit(commit_request(), at(8)))
    await turn()
    assert log.end_offset == 1
    assert not commit.done()
    log.commit()
    assert (await commit).topics[0].partitions[0].error_code == ErrorCode.NONE


async def test_resigning_ends_what_waits() -> None:
    shell = Shell()
    coordinator = await shell.lead()
    join = asyncio.create_task(coordinator.join_group(join_request(), at(3)))
    await turn()
    coordinator.partition_resigned(coordinator.partition_for("group"))
    response = await join
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # the group was written
    assert (await coordinator.join_group(join_request(), at(3))).error_code == NOT_HERE


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), ErrorCode.UNKNOWN_SERVER_ERROR),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_a_log_that_refuses_and_a_log_that_fails(
    failure: KafkaError, code: ErrorCode
) -> None:
    shell = Shell()
    coordinator = await shell.lead()
    await coordinator.offset_commit(commit_request(offset=1), at(8))
    shell.log_of("group").failure = failure
    refused = await coordinator.offset_commit(commit_request(offset=2), at(8))
    assert refused.topics[0].partitions[0].error_code == code
    shell.timers.advance(1_000)
    await coordinator.loaded()
    fetched = await coordinator.offset_fetch(_everything(), at(8))
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 1


def _everything() -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("group", topics=None)])


async def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    shell = Shell()
    log = shell.log_of("group")
    bad: list[KeyValue] = [(bytes.fromhex("0001 0001 67 0001 74 00000003"), b"")]
    log.append(bad)
    coordinator = await shell.lead()
    join = await coordinator.join_group(join_request(), at(3))
    assert join.error_code == NOT_HERE
    log.batches[0] = [(b"\x7f\xff", b"")]
    shell.timers.advance(1_000)
    await coordinator.loaded()
    assert (await coordinator.list_groups(ListGroupsRequest(), at(5))).error_code == ErrorCode.NONE
    commit = await coordinator.offset_commit(commit_request(), at(8))
    assert commit.topics[0].partitions[0].error_code == ErrorCode.NONE


async def test_deleted_topics_are_forgotten_everywhere() -> None:
    shell = Shell()
    coordinator = await shell.lead()
    names = [f"group-{number}" for number in range(8)]
    for name in names:
        await coordinator.offset_commit(commit_request(group_id=name), at(8))
    coordinator.topics_deleted([("topic", Uuid(b"t" * 16))])
    await coordinator.loaded()
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in names]
    fetched = await coordinator.offset_fetch(OffsetFetchRequest(groups=groups), at(9))
    assert all(group.topics == [] for group in fetched.groups)
    await coordinator.close()
    assert (await coordinator.offset_fetch(_everything(), at(9))).groups[0].error_code == NOT_HERE
