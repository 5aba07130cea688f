"""Offsets by time, and committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
)
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_commit_response import OffsetCommitResponse
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from skylog.wire.messages.offset_fetch_response import OffsetFetchResponse

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
NO_EPOCH: Final = -1


class OffsetAtTime(NamedTuple):
    """The first record at or after a time; offset −1 if there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


class CommittedOffset(NamedTuple):
    """A group's committed offset and its metadata."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


class Member(NamedTuple):
    """The committer: a member of a generation, or none for a group without members."""

    member_id: str = ""
    generation: int = -1


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions grouped by topic, as most requests need them."""
    grouped: dict[str, list[int]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition.partition)
    return grouped


async def list_offsets(
    cluster: Cluster, times: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetAtTime | KafkaError]:
    """Offsets by time, or by LATEST, EARLIEST, MAX_TIMESTAMP; errors by partition."""
    found: dict[TopicPartition, OffsetAtTime | KafkaError] = {}

    async def ask() -> None:
        missing = {key: time for key, time in times.items() if not _settled(found.get(key))}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for key, time in missing.items():
            try:
                _, leader = await cluster.leader(key)
                by_leader.setdefault(leader.leader, {})[key] = time
            except KafkaError as error:
                found[key] = error
        for node_id, wanted in by_leader.items():
            await _ask_leader(cluster, node_id, wanted, isolation, found)
        for outcome in found.values():
            if isinstance(outcome, KafkaError) and outcome.retriable:
                raise outcome

    try:
        await cluster.retry(ask)
    except KafkaError:
        if any(key not in found for key in times):
            raise
    return found


def _settled(outcome: OffsetAtTime | KafkaError | None) -> bool:
    return outcome is not None and not (isinstance(outcome, KafkaError) and outcome.retriable)


async def _ask_leader(
    cluster: Cluster,
    node_id: int,
    wanted: Mapping[TopicPartition, int],
    isolation: int,
    found: dict[TopicPartition, OffsetAtTime | KafkaError],
) -> None:
    topics = [
        ListOffsetsTopic(
            name,
            [
                ListOffsetsPartition(index, NO_EPOCH, wanted[TopicPartition(name, index)])
                for index in indexes
            ],
        )
        for name, indexes in by_topic(wanted).items()
    ]
    request = ListOffsetsRequest(-1, isolation, topics, cluster.settings.request_timeout_ms)
    try:
        connection = await cluster.node(node_id)
        answer: ListOffsetsResponse = await connection.request(request)
    except KafkaError as error:
        found.update(dict.fromkeys(wanted, error))
        for key in wanted:
            cluster.metadata.forget(key.topic)
        return
    for topic in answer.topics:
        for part in topic.partitions:
            key = TopicPartition(topic.name, part.partition_index)
            found[key] = _outcome(key, part)
            if not _settled(found[key]):
                cluster.metadata.forget(key.topic)


def _outcome(key: TopicPartition, part: ListOffsetsPartitionResponse) -> OffsetAtTime | KafkaError:
    error = error_of(part.error_code, f"partition {key}")
    return error or OffsetAtTime(part.offset, part.timestamp, part.leader_epoch)


async def fetch_committed(
    cluster: Cluster,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """A group's committed offsets, of some partitions or (None) of all; unknown ones are omitted.

    ``stable`` waits until no transaction can change them.
    """
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable
    )

    async def ask() -> dict[TopicPartition, CommittedOffset]:
        answer: OffsetFetchResponse = await cluster.at_coordinator(
            group, request, lambda got: int(got.groups[0].error_code), version_min=8, version_max=9
        )
        check(answer.groups[0].error_code, f"group {group}")
        found = {}
        for topic in answer.groups[0].topics:
            for part in topic.partitions:
                key = TopicPartition(topic.name, part.partition_index)
                check(part.error_code, f"group {group}, partition {key}")
                if part.committed_offset >= 0:
                    found[key] = CommittedOffset(
                        part.committed_offset, part.committed_leader_epoch, part.metadata or ""
                    )
        return found

    return await cluster.retry(ask)


async def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    member: Member | None = None,
) -> dict[TopicPartition, KafkaError]:
    """Commit for a group, as its member or from outside; returns the errors, by partition."""
    who = member or Member()
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[_commit(index, offsets[TopicPartition(name, index)]) for index in indexes],
        )
        for name, indexes in by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        topics=topics,
    )
    answer: OffsetCommitResponse = await cluster.at_coordinator(
        group, request, _first_error, version_max=9
    )
    failed: dict[TopicPartition, KafkaError] = {}
    for topic in answer.topics:
        for part in topic.partitions:
            key = TopicPartition(topic.name, part.partition_index)
            error = error_of(part.error_code, f"group {group}, partition {key}")
            if error is not None:
                failed[key] = error
    return failed


def _commit(index: int, offset: CommittedOffset) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(index, offset.offset, offset.leader_epoch, offset.metadata)


def _first_error(answer: OffsetCommitResponse) -> int:
    """A coordinator that has moved reports it for every partition."""
    for topic in answer.topics:
        for part in topic.partitions:
            if part.error_code:
                return part.error_code
    return ErrorCode.NONE
