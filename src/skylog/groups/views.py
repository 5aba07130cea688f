"""Groups for administrators: ListGroups and DescribeGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skylog.groups.members import CONSUMER_PROTOCOL_TYPE, ClassicGroup, GroupState, Member
from skylog.groups.passes import AnyGroup
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse

CLASSIC_TYPE: Final = "classic"
CONSUMER_TYPE: Final = "consumer"
# From this version on, a missing group is an error; before, its state was Dead.
_GROUP_NOT_FOUND_VERSION: Final = 6


def list_groups(message: ListGroupsRequest, groups: Iterable[AnyGroup]) -> ListGroupsResponse:
    states = {state.lower().strip() for state in message.states_filter}
    types = {group_type.lower() for group_type in message.types_filter}
    listed = [
        group
        for group in map(_listed, groups)
        if (not states or group.group_state.lower() in states)
        and (not types or group.group_type in types)
    ]
    return ListGroupsResponse(groups=listed)


def _listed(group: AnyGroup) -> ListedGroup:
    protocol_type, group_type = CONSUMER_PROTOCOL_TYPE, CONSUMER_TYPE
    if isinstance(group, ClassicGroup):
        protocol_type, group_type = group.protocol_type or "", CLASSIC_TYPE
    return ListedGroup(group.group_id, protocol_type, group.state.value, group_type)


def describe_groups(
    group_ids: Iterable[str], version: int, groups: Mapping[str, AnyGroup]
) -> DescribeGroupsResponse:
    described = [_describe(group_id, version, groups.get(group_id)) for group_id in group_ids]
    return DescribeGroupsResponse(groups=described)


def _describe(group_id: str, version: int, group: AnyGroup | None) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        found = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= _GROUP_NOT_FOUND_VERSION:
            found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            why = "not found" if group is None else "is not a classic group"
            found.error_message = f"Group {group_id} {why}."
        return found
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            _describe_member(member, group.protocol_name if stable else None)
            for member in group.members.values()
        ],
    )


def _describe_member(member: Member, protocol_name: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        member_assignment=member.assignment,
    )
