"""Committed offsets: who may commit, responses, and expiry."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from skylog.groups.consumer import commits
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.members import ClassicGroup, GroupState
from skylog.groups.pending import OffsetPlace, PendingOffsets
from skylog.groups.records import OffsetRecord, offset_tombstone
from skylog.groups.requests import Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.messages.offset_commit_key import OffsetCommitKey
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skylog.wire.messages.offset_commit_value import OffsetCommitValue
from skylog.wire.messages.offset_delete_request import OffsetDeleteRequest
from skylog.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from skylog.wire.messages.offset_fetch_request import OffsetFetchRequestGroup
from skylog.wire.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET: Final = -1
NO_GENERATION: Final = -1
NO_RETENTION_MS: Final = -1
_INT64_MAX: Final = 2**63 - 1
# From this version on, a commit to a group that does not exist reports that.
_GROUP_NOT_FOUND_VERSION: Final = 9

PartitionOffsets = dict[int, OffsetCommitValue]
TopicOffsets = dict[str, PartitionOffsets]


class Offsets:
    """All committed offsets of a machine: group → topic → partition. No level is ever empty."""

    def __init__(self) -> None:
        self._groups: dict[str, TopicOffsets] = {}
        self.pending = PendingOffsets()

    def of_group(self, group_id: str) -> TopicOffsets:
        return self._groups.get(group_id, {})

    def group_ids(self) -> Iterator[str]:
        return iter(self._groups)

    def apply(self, record: OffsetRecord, offset: int) -> None:
        key = record.key
        place = OffsetPlace(key.group, key.topic, key.partition)
        if record.value is not None:
            self._put(place, record.value, offset)
            return
        self.pending.forget(place)
        topics = self._groups.get(key.group, {})
        partitions = topics.get(key.topic, {})
        if partitions.pop(key.partition, None) is not None and not partitions:
            del topics[key.topic]
            if not topics:
                del self._groups[key.group]

    def _put(self, place: OffsetPlace, value: OffsetCommitValue, offset: int) -> None:
        topics = self._groups.setdefault(place.group_id, {})
        topics.setdefault(place.topic, {})[place.partition] = value
        self.pending.committed(place, offset)

    def apply_in_transaction(self, producer_id: int, record: OffsetRecord, offset: int) -> None:
        key = record.key
        if record.value is None:
            self.apply(record, offset)
            return
        place = OffsetPlace(key.group, key.topic, key.partition)
        self.pending.add(producer_id, place, record.value, offset)

    def end_transaction(self, producer_id: int, *, commits: bool) -> None:
        for place, pending in self.pending.end(producer_id):
            if commits and pending.value is not None:
                self._put(place, pending.value, pending.record_offset)

    def records(self) -> Iterator[OffsetRecord]:
        for group_id, topics in self._groups.items():
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
                    yield OffsetRecord(key, value)


# OffsetCommit


def check_commit(
    group: ClassicGroup | ConsumerGroup | None, request: Request[OffsetCommitRequest]
) -> None:
    """Raise unless the sender may commit offsets of this group now."""
    message = request.message
    generation, member_id = message.generation_id_or_member_epoch, message.member_id
    if isinstance(group, ConsumerGroup):
        commits.check_commit(group, member_id, generation, places(message), request.version)
        return
    if group is None:
        if generation >= 0:
            known = request.version >= _GROUP_NOT_FOUND_VERSION
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION
            )
        return
    if generation < 0 and group.state is GroupState.EMPTY:
        return  # an administrator, or a consumer that assigns partitions to itself
    if generation < 0 and not member_id and message.group_instance_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(member_id, message.group_instance_id)
    if generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def check_commit_in_transaction(
    group: ClassicGroup | ConsumerGroup | None, request: Request[OffsetCommitRequest]
) -> None:
    """Raise unless the sender may commit offsets of this group in its transaction now.

    Old versions do not identify the consumer, so only what is given is checked against the group.
    """
    message = request.message
    generation, member_id = message.generation_id_or_member_epoch, message.member_id
    is_named = bool(member_id or message.group_instance_id is not None)
    if group is None:
        if generation >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    elif isinstance(group, ConsumerGroup):
        if (is_named or generation != NO_GENERATION) and (generation >= 0 or group.members):
            commits.check_commit_in_transaction(group, member_id, generation, places(message))
    elif generation >= 0 or (is_named and group.state is not GroupState.EMPTY):
        group.check_member(member_id, message.group_instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def places(message: OffsetCommitRequest) -> Iterator[tuple[str, Uuid, int]]:
    """The partitions that a request commits: name, id and number."""
    for topic in message.topics:
        for partition in topic.partitions:
            yield topic.name, topic.topic_id, partition.partition_index


def commit(
    message: OffsetCommitRequest, settings: GroupSettings, now_ms: int
) -> tuple[OffsetCommitResponse, list[OffsetRecord]]:
    expire_ms = -1
    if message.retention_time_ms != NO_RETENTION_MS:
        expire_ms = min(max(now_ms + message.retention_time_ms, 0), _INT64_MAX)
    response, records = OffsetCommitResponse(), list[OffsetRecord]()
    for topic in message.topics:
        answered: list[OffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            error = ErrorCode.NONE
            if _utf16_units(metadata) > settings.offset_metadata_length_max:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                value = _commit_value(topic, partition, now_ms, expire_ms)
                key = OffsetCommitKey(message.group_id, topic.name, partition.partition_index)
                records.append(OffsetRecord(key, value))
            answered.append(OffsetCommitResponsePartition(partition.partition_index, error))
        response.topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, answered))
    return response, records


def _commit_value(
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    now_ms: int,
    expire_ms: int,
) -> OffsetCommitValue:
    value = OffsetCommitValue(
        offset=partition.committed_offset,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_ms,
    )
    if expire_ms < 0:  # the version with an expiry has no other fields
        value.leader_epoch = partition.committed_leader_epoch
        value.topic_id = topic.topic_id
    return value


def _utf16_units(text: str) -> int:
    """The length of a string in Java (UTF-16 units)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# OffsetFetch


def fetch(
    request: OffsetFetchRequestGroup,
    offsets: TopicOffsets,
    unstable: Container[tuple[str, int]] = (),
) -> OffsetFetchResponseGroup:
    """The requested offsets; all of the group's if no topics are named.

    ``unstable`` ones may be about to change: their reader has to retry.
    """
    if request.topics is None:
        topics = [
            OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    _unstable(p) if (name, p) in unstable else _fetched(p, value)
                    for p, value in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ]
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)
    response = OffsetFetchResponseGroup(group_id=request.group_id)
    for topic in request.topics:
        known = offsets.get(topic.name, {})
        partitions = [
            _unstable(index)
            if (topic.name, index) in unstable
            else _fetched(index, _of_same_topic(known.get(index), topic.topic_id))
            for index in topic.partition_indexes
        ]
        response.topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
    return response


def _of_same_topic(value: OffsetCommitValue | None, topic_id: Uuid) -> OffsetCommitValue | None:
    """None for an offset of an older topic of the same name."""
    if value is None or ZERO_UUID in (value.topic_id, topic_id) or value.topic_id == topic_id:
        return value
    return None


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )


def _fetched(index: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
    if value is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


# OffsetDelete and the end of offsets


def delete(
    message: OffsetDeleteRequest,
    group: ClassicGroup | ConsumerGroup,
    offsets: TopicOffsets,
    pending: Container[tuple[str, int]] = (),
) -> tuple[OffsetDeleteResponse, list[OffsetRecord]]:
    if isinstance(group, ClassicGroup) and (
        group.state is not GroupState.EMPTY and not group.uses_consumer_protocol
    ):
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    response, records = OffsetDeleteResponse(), list[OffsetRecord]()
    for topic in message.topics:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        indexes = dict.fromkeys(partition.partition_index for partition in topic.partitions)
        answered = [OffsetDeleteResponsePartition(index, error) for index in indexes]
        response.topics.append(OffsetDeleteResponseTopic(topic.name, answered))
        known = offsets.get(topic.name, {})
        records += [
            offset_tombstone(message.group_id, topic.name, index)
            for index in indexes
            if not subscribed and (index in known or (topic.name, index) in pending)
        ]
    return response, records


def all_tombstones(group_id: str, offsets: Offsets) -> list[OffsetRecord]:
    known = offsets.of_group(group_id).items()
    places = [(topic, partition) for topic, partitions in known for partition in partitions]
    return [
        offset_tombstone(group_id, *place)
        for place in dict.fromkeys([*places, *offsets.pending.of_group(group_id)])
    ]


def expired_tombstones(
    group: ClassicGroup | ConsumerGroup, offsets: Offsets, retention_ms: int, now_ms: int
) -> list[OffsetRecord]:
    """Tombstones for the offsets of a group that have been unused for the retention time."""
    if not _may_expire(group):
        return []
    since_ms = -1  # for a classic group with a protocol, counted from when its last member left
    if isinstance(group, ClassicGroup) and (
        group.state is GroupState.EMPTY and group.protocol_type is not None
    ):
        since_ms = group.state_since_ms
    pending = offsets.pending.of_group(group.group_id)
    return [
        offset_tombstone(group.group_id, topic, partition)
        for topic, partitions in offsets.of_group(group.group_id).items()
        if not group.is_subscribed_to(topic)
        for partition, value in partitions.items()
        if _is_expired(value, since_ms, retention_ms, now_ms) and (topic, partition) not in pending
    ]


def _may_expire(group: ClassicGroup | ConsumerGroup) -> bool:
    if isinstance(group, ConsumerGroup):
        return True
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    return group.state is GroupState.STABLE and group.subscribed_topics is not None


def _is_expired(value: OffsetCommitValue, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    if value.expire_timestamp >= 0:
        return now_ms >= value.expire_timestamp
    begin_ms = since_ms if since_ms >= 0 else value.commit_timestamp
    return now_ms - begin_ms >= retention_ms


def topic_tombstones(
    group_id: str, offsets: Offsets, topics: tuple[tuple[str, Uuid], ...]
) -> list[OffsetRecord]:
    """Tombstones for the offsets of deleted topics; a new topic of the same name keeps its own."""
    known, gone = offsets.of_group(group_id), dict(topics)
    places = [
        (name, partition)
        for name, topic_id in topics
        for partition, value in known.get(name, {}).items()
        if value.topic_id in (ZERO_UUID, topic_id)
    ]
    places += [
        (name, partition)
        for (name, partition), value in offsets.pending.values(group_id)
        if name in gone and value.topic_id in (ZERO_UUID, gone[name])
    ]
    return [offset_tombstone(group_id, *place) for place in dict.fromkeys(places)]
