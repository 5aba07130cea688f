"""ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

import pytest

from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from tests.unit.groups.support import GROUP, INITIAL_DELAY_MS, Bench, subscription


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ([], [], {GROUP, "lone"}),
        (["Stable"], [], {GROUP}),
        ([" stable", "EMPTY"], ["Classic"], {GROUP, "lone"}),
        (["Dead"], [], set()),
        ([], ["consumer"], set()),
        ([], ["nonsense"], set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: list[str], types: list[str], found: set[str]
) -> None:
    bench = Bench()
    bench.stable()
    bench.commit(group_id="lone")
    reply = bench.ask(ListGroupsRequest(states, types)).reply
    assert {group.group_id for group in reply.groups} == found
    for group in reply.groups:
        stable = group.group_id == GROUP
        assert group.group_state == ("Stable" if stable else "Empty")
        assert group.protocol_type == ("consumer" if stable else "")
        assert group.group_type == "classic"


def test_a_group_is_described() -> None:
    bench = Bench()
    member, _ = bench.new_member()
    bench.advance(INITIAL_DELAY_MS)
    [group] = bench.ask(DescribeGroupsRequest([GROUP]), 6).reply.groups
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""
    bench.settle(member)
    [group] = bench.ask(DescribeGroupsRequest([GROUP]), 6).reply.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    [described] = group.members
    assert (described.member_id, described.client_id, described.client_host) == (
        member,
        "client",
        "/host",
    )
    assert described.member_metadata == subscription("topic")
    assert described.member_assignment == f"part of {member}".encode()


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        (5, ErrorCode.NONE, None),
        (6, ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found."),
    ],
)
def test_a_group_that_does_not_exist_is_dead(
    version: int, code: ErrorCode, message: str | None
) -> None:
    [group] = Bench().ask(DescribeGroupsRequest(["nobody"]), version).reply.groups
    assert (group.group_state, group.error_code, group.error_message) == ("Dead", code, message)


def test_empty_groups_are_deleted_with_their_offsets() -> None:
    bench = Bench()
    bench.commit(group_id="lone")
    bench.stable()
    reply = bench.ask(DeleteGroupsRequest(["lone", GROUP, "nobody", "lone"]), 2).reply
    assert [(result.group_id, result.error_code) for result in reply.results] == [
        ("lone", ErrorCode.NONE),
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    for machine in (bench.machine, bench.reload().machine):
        assert machine.group("lone") is None
        assert machine.offsets_of("lone") == {}
        assert machine.group(GROUP) is not None


def test_a_deleted_group_can_come_back() -> None:
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=0))
    [member] = bench.stable()
    bench.leave(member)
    bench.ask(DeleteGroupsRequest([GROUP]), 2)
    assert bench.join(member).code is ErrorCode.UNKNOWN_MEMBER_ID
    bench.stable()
    assert bench.group.generation == 1
