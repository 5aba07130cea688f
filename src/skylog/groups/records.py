"""The records of ``__consumer_offsets``, in Kafka's own format and versions.

A key is preceded by its type, a value by its version, both of two bytes. Records of other kinds
(those of share and streams groups) are skipped when a partition is loaded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from skylog.groups.consumer.records import KEY_CLASSES, ConsumerRecord
from skylog.groups.members import ClassicGroup, GroupState, Member
from skylog.kernel.errors import ProtocolError
from skylog.wire.codec import decode
from skylog.wire.coordinator_records import encode_key, encode_value
from skylog.wire.messages.group_metadata_key import GroupMetadataKey
from skylog.wire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from skylog.wire.messages.offset_commit_key import OffsetCommitKey
from skylog.wire.messages.offset_commit_value import OffsetCommitValue
from skylog.wire.schema import Message

_TYPE: Final = struct.Struct(">h")
# Key types 0 and 1 are the same: offset commit keys once carried a version instead of a type.
_OFFSET_TYPES: Final = (0, OffsetCommitKey.API_KEY)
_GROUP_VALUE_VERSION: Final = 3
_OFFSET_VALUE_VERSION: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_CONSUMER_VALUE_VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """An offset committed for a partition; a tombstone if ``value`` is None."""

    key: OffsetCommitKey
    value: OffsetCommitValue | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group's generation with all its members; a tombstone if ``value`` is None."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None


GroupsRecord = OffsetRecord | GroupRecord | ConsumerRecord
ValueT = TypeVar("ValueT", bound=Message)


class GroupRecordCodec:
    """The runtime's codec of these records: a key and a value in bytes."""

    def encode(self, record: GroupsRecord) -> tuple[bytes, bytes | None]:
        key = encode_key(record.key)
        if record.value is None:
            return key, None
        return key, encode_value(record.value, _value_version(record.value))

    def decode(self, key: bytes | None, value: bytes | None) -> GroupsRecord | None:
        if key is None or len(key) < _TYPE.size:
            return None
        (kind,) = _TYPE.unpack_from(key)
        if kind in _OFFSET_TYPES:
            offset_key = decode(OffsetCommitKey, key, 0, _TYPE.size)
            return OffsetRecord(offset_key, _decode_value(OffsetCommitValue, value))
        if kind == GroupMetadataKey.API_KEY:
            group_key = decode(GroupMetadataKey, key, 0, _TYPE.size)
            return GroupRecord(group_key, _decode_value(GroupMetadataValue, value))
        if kind in KEY_CLASSES:
            key_class, value_class = KEY_CLASSES[kind]
            consumer_key = decode(key_class, key, 0, _TYPE.size)
            return ConsumerRecord(consumer_key, _decode_value(value_class, value))
        return None


def _decode_value(cls: type[ValueT], value: bytes | None) -> ValueT | None:
    if value is None:
        return None
    if len(value) < _TYPE.size:
        raise ProtocolError(f"a {cls.__name__} without a version")
    (version,) = _TYPE.unpack_from(value)
    return decode(cls, value, version, _TYPE.size)


def _value_version(value: Any) -> int:
    if isinstance(value, GroupMetadataValue):
        return _GROUP_VALUE_VERSION
    if not isinstance(value, OffsetCommitValue):
        return _CONSUMER_VALUE_VERSION
    if value.expire_timestamp >= 0:
        return _OFFSET_VALUE_VERSION_WITH_EXPIRY
    return _OFFSET_VALUE_VERSION


def offset_tombstone(group_id: str, topic: str, partition: int) -> OffsetRecord:
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group=group_id), None)


def group_record(group: ClassicGroup) -> GroupRecord:
    """The group's current state, with its members' subscriptions and assignments."""
    return GroupRecord(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.leader,
            current_state_timestamp=group.state_since_ms,
            members=[_member_metadata(m, group.protocol_name) for m in group.members.values()],
        ),
    )


def new_group_record(group_id: str, now_ms: int) -> GroupRecord:
    """The first record of a group, before it has members."""
    return group_record(ClassicGroup(group_id, state_since_ms=now_ms))


def group_from(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record describes: the initial state of a new leader."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader=value.leader,
    )
    for stored in value.members:
        group.put(_member_from(stored, value))
    group.subscribed_topics = group.find_subscribed_topics()
    return group


def _member_metadata(member: Member, protocol_name: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=member.assignment,
    )


def _member_from(stored: MemberMetadata, value: GroupMetadataValue) -> Member:
    timeout_ms = stored.rebalance_timeout
    return Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.session_timeout if timeout_ms == -1 else timeout_ms,
        session_timeout_ms=stored.session_timeout,
        protocol_type=value.protocol_type,
        protocols=((value.protocol or "", stored.subscription),),
        assignment=stored.assignment,
    )
