"""Consumer groups: list, describe, delete, and their committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from skylog.client.assignor import PROTOCOL_TYPE, decode_assignment
from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import CommittedOffset, by_topic, commit_offsets, fetch_committed
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.wire.messages import consumer_group_describe_response as described
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.delete_groups_response import DeleteGroupsResponse
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_groups_response import (
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.leave_group_response import LeaveGroupResponse
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_groups_response import ListGroupsResponse
from skylog.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from skylog.wire.messages.offset_delete_response import OffsetDeleteResponse


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list; ``coordinator`` is the broker that returned it."""

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class GroupMemberDescription:
    """A member and its assignment."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group; ``protocol`` is the chosen assignor."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMemberDescription, ...]
    epoch: int = -1


class GroupAdmin:
    """Requests for a group go to its coordinator; lists are merged from all brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_all(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing]:
        await self._cluster.refresh(())
        request = ListGroupsRequest(list(states), list(types))
        needed = 5 if types else 4 if states else 0
        found: dict[str, GroupListing] = {}
        for node_id in sorted(self._cluster.metadata.brokers):

            async def ask(node_id: int = node_id) -> ListGroupsResponse:
                connection = await self._cluster.node(node_id)
                answer: ListGroupsResponse = await connection.request(request, version_min=needed)
                check(answer.error_code, f"groups of broker {node_id}")
                return answer

            for group in (await self._cluster.retry(ask)).groups:
                found[group.group_id] = GroupListing(
                    group.group_id,
                    group.protocol_type,
                    group.group_state,
                    group.group_type,
                    node_id,
                )
        return [found[name] for name in sorted(found)]

    async def describe(self, groups: Collection[str]) -> dict[str, GroupDescription | KafkaError]:
        """Groups of either protocol: the new one is tried first, as in Kafka's admin client."""
        found: dict[str, GroupDescription | KafkaError] = {}
        for group in groups:
            try:
                found[group] = await self._describe(group)
            except KafkaError as error:
                found[group] = error
        return found

    async def _describe(self, group: str) -> GroupDescription:
        try:
            answer: described.ConsumerGroupDescribeResponse = await self._cluster.at_coordinator(
                group,
                ConsumerGroupDescribeRequest([group]),
                lambda got: int(got.groups[0].error_code),
            )
            check(answer.groups[0].error_code, answer.groups[0].error_message)
        except KafkaError as error:
            if error.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                return await self._describe_classic(group)
            raise
        return _consumer_group(answer.groups[0])

    async def _describe_classic(self, group: str) -> GroupDescription:
        answer: DescribeGroupsResponse = await self._cluster.at_coordinator(
            group, DescribeGroupsRequest([group]), lambda got: int(got.groups[0].error_code)
        )
        told = answer.groups[0]
        check(told.error_code, told.error_message or f"group {group}")
        members = tuple(_classic_member(told.protocol_type, member) for member in told.members)
        return GroupDescription(
            group, "Classic", told.group_state, told.protocol_type, told.protocol_data, members
        )

    async def delete(self, groups: Collection[str]) -> dict[str, KafkaError | None]:
        found: dict[str, KafkaError | None] = {}
        for group in groups:
            try:
                answer: DeleteGroupsResponse = await self._cluster.at_coordinator(
                    group,
                    DeleteGroupsRequest([group]),
                    lambda got: int(got.results[0].error_code),
                )
                found[group] = error_of(answer.results[0].error_code, f"group {group}")
            except KafkaError as error:
                found[group] = error
        return found

    async def offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The group's committed offsets, of all partitions or some."""
        return await fetch_committed(self._cluster, group, partitions)

    async def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, KafkaError]:
        """Set the offsets of a group without members; returns the errors."""
        return await commit_offsets(self._cluster, group, offsets)

    async def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, KafkaError]:
        """Delete the offsets of topics that the group does not read; returns the errors."""
        topics = [
            OffsetDeleteRequestTopic(
                name, [OffsetDeleteRequestPartition(index) for index in indexes]
            )
            for name, indexes in by_topic(partitions).items()
        ]
        answer: OffsetDeleteResponse = await self._cluster.at_coordinator(
            group, OffsetDeleteRequest(group, topics), lambda got: int(got.error_code)
        )
        check(answer.error_code, f"group {group}")
        failed = {}
        for topic in answer.topics:
            for part in topic.partitions:
                key = TopicPartition(topic.name, part.partition_index)
                error = error_of(part.error_code, f"group {group}, partition {key}")
                if error is not None:
                    failed[key] = error
        return failed

    async def remove_members(
        self, group: str, members: Collection[str]
    ) -> dict[str, KafkaError | None]:
        """Remove members by their member ids."""
        request = LeaveGroupRequest(group, members=[MemberIdentity(name) for name in members])
        answer: LeaveGroupResponse = await self._cluster.at_coordinator(
            group, request, lambda got: int(got.error_code), version_min=3
        )
        check(answer.error_code, f"group {group}")
        return {gone.member_id: error_of(gone.error_code) for gone in answer.members}


def _classic_member(protocol_type: str, member: DescribedGroupMember) -> GroupMemberDescription:
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == PROTOCOL_TYPE:
        try:
            assignment = tuple(decode_assignment(member.member_assignment))
        except ProtocolError:  # other kinds of groups may use the protocol type consumer
            assignment = ()
    return GroupMemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
    )


def _consumer_group(told: described.DescribedGroup) -> GroupDescription:
    members = tuple(
        GroupMemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in member.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for member in told.members
    )
    return GroupDescription(
        told.group_id,
        "Consumer",
        told.group_state,
        PROTOCOL_TYPE,
        told.assignor_name,
        members,
        told.group_epoch,
    )
