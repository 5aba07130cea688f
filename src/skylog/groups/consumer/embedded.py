"""The consumer protocol embedded in the classic protocol: subscriptions, assignments."""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from skylog.groups.consumer.member import Partitions
from skylog.groups.consumer.world import Topics
from skylog.kernel.errors import ProtocolError
from skylog.wire.codec import decode_at, encode
from skylog.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from skylog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION: Final = struct.Struct(">h")
EmbeddedT = TypeVar("EmbeddedT", ConsumerProtocolAssignment, ConsumerProtocolSubscription)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    return _decode(ConsumerProtocolAssignment, data)


def _decode(cls: type[EmbeddedT], data: bytes) -> EmbeddedT:
    version = _known_version(cls, data)
    return decode_at(cls, data, version, _VERSION.size)[0]


def _known_version(cls: type[EmbeddedT], data: bytes) -> int:
    """The version of some data; a later one starts like the last known version."""
    if len(data) < _VERSION.size:
        raise ProtocolError(f"a {cls.__name__} without a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < cls.VERSIONS.low:
        raise ProtocolError(f"a {cls.__name__} of version {version}")
    return min(version, cls.VERSIONS.high)


def encode_assignment(partitions: Partitions, subscription: bytes, topics: Topics) -> bytes:
    """An assignment in the version of the member's subscription."""
    version = _known_version(ConsumerProtocolAssignment, subscription)
    assigned = [
        TopicPartition(name, sorted(found))
        for topic_id, found in partitions.items()
        if (name := topics.name(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return _VERSION.pack(version) + encode(message, version)
