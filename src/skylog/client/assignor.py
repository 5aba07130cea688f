"""Divides partitions among the members of a group, and encodes the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from skylog.client.metadata import TopicPartition
from skylog.client.offsets import by_topic
from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode, encode
from skylog.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from skylog.wire.messages.consumer_protocol_assignment import TopicPartition as Assigned
from skylog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from skylog.wire.schema import Message

RANGE: Final = "range"
PROTOCOL_TYPE: Final = "consumer"


def assign_range(
    partitions: Mapping[str, int], subscriptions: Mapping[str, Sequence[str]]
) -> dict[str, list[TopicPartition]]:
    """Kafka's range assignor: every member gets a contiguous range of each topic.

    ``partitions`` has the count by topic, ``subscriptions`` the topics by member.
    """
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in sorted(subscriptions)}
    for topic in sorted(partitions):
        members = [member for member in assigned if topic in subscriptions[member]]
        if not members:
            continue
        share, rest = divmod(partitions[topic], len(members))
        start = 0
        for index, member in enumerate(members):
            end = start + share + (index < rest)
            assigned[member] += [TopicPartition(topic, number) for number in range(start, end)]
            start = end
    return assigned


def encode_subscription(topics: Iterable[str]) -> bytes:
    return _versioned(ConsumerProtocolSubscription(topics=sorted(topics)))


def decode_subscription(data: Buffer) -> list[str]:
    """The topics of a member's subscription."""
    version = _version(data, ConsumerProtocolSubscription)
    return list(decode(ConsumerProtocolSubscription, data, version, 2).topics)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics = [Assigned(topic, indexes) for topic, indexes in by_topic(partitions).items()]
    return _versioned(ConsumerProtocolAssignment(assigned_partitions=topics))


def decode_assignment(data: Buffer) -> list[TopicPartition]:
    """A member's assignment; empty if the leader sent none."""
    if not len(data):
        return []
    version = _version(data, ConsumerProtocolAssignment)
    found = decode(ConsumerProtocolAssignment, data, version, 2)
    return [
        TopicPartition(entry.topic, index)
        for entry in found.assigned_partitions
        for index in entry.partitions
    ]


def _versioned(message: Message) -> bytes:
    version = message.VERSIONS.high
    return version.to_bytes(2, "big") + encode(message, version)


def _version(data: Buffer, cls: type[Message]) -> int:
    """Later versions only append fields, so they are parsed as the latest known."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError(f"{cls.__name__} without a version")
    return min(version, cls.VERSIONS.high)
