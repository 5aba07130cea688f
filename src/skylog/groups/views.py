"""Groups as administrators see them: ListGroups and DescribeGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skylog.groups.members import ClassicGroup, GroupState, Member
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse

CLASSIC_TYPE: Final = "classic"
# From this version on, a group that does not exist is an error; before, it was called dead.
_GROUP_NOT_FOUND_VERSION: Final = 6


def list_groups(message: ListGroupsRequest, groups: Iterable[ClassicGroup]) -> ListGroupsResponse:
    states = {state.lower().strip() for state in message.states_filter}
    types = {group_type.lower() for group_type in message.types_filter}
    if types and CLASSIC_TYPE not in types:
        return ListGroupsResponse()
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC_TYPE,
        )
        for group in groups
        if not states or group.state.value.lower() in states
    ]
    return ListGroupsResponse(groups=listed)


def describe_groups(
    group_ids: Iterable[str], version: int, groups: Mapping[str, ClassicGroup]
) -> DescribeGroupsResponse:
    described = [_describe(group_id, version, groups.get(group_id)) for group_id in group_ids]
    return DescribeGroupsResponse(groups=described)


def _describe(group_id: str, version: int, group: ClassicGroup | None) -> DescribedGroup:
    if group is None:
        found = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= _GROUP_NOT_FOUND_VERSION:
            found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            found.error_message = f"Group {group_id} not found."
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
