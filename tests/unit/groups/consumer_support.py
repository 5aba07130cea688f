"""A bench for consumer groups: topics and members that the test controls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.member import ConsumerMember
from skylog.groups.consumer.requests import TopicsChanged
from skylog.groups.consumer.world import ConsumerConfig, FixedTopics, World
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from tests.unit.groups.support import GROUP, Bench, Call

REBALANCE_MS = 60_000
SESSION_MS = 45_000
Owned = frozenset[tuple[Uuid, int]]


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


class EditableTopics(FixedTopics):
    """Topics that are created, changed and deleted."""

    def put(self, name: str, topic_id: Uuid, partition_count: int) -> None:
        self.version += 1
        if name not in self._by_name:
            self.created_version = self.version
        self._by_name[name] = (topic_id, partition_count)

    def remove(self, name: str) -> None:
        self.version += 1
        del self._by_name[name]


@dataclass
class ConsumerBench(Bench):
    """A machine with a topic ``t`` of four partitions, whose targets are computed at once."""

    config: ConsumerConfig = field(default_factory=lambda: ConsumerConfig(assignment_interval_ms=0))
    topics: EditableTopics = field(default_factory=EditableTopics)

    def __post_init__(self) -> None:
        if not list(self.topics.names()):
            self.topics.put("t", topic_id(1), 4)
        self.world = World(self.topics, lambda group_id: self.config)
        super().__post_init__()

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.machine.group(GROUP)
        assert isinstance(group, ConsumerGroup)
        return group

    def of(self, member_id: str) -> ConsumerMember:
        return self.consumers.members[member_id]

    def change_topic(self, name: str, number: int, partitions: int) -> None:
        self.topics.put(name, topic_id(number), partitions)
        self.run(TopicsChanged(frozenset({name})))

    def beat(self, member_id: str, epoch: int, **more: Any) -> Call:
        owned = more.pop("owned", None)
        if owned is not None:
            more["topic_partitions"] = partitions(owned)
        message = ConsumerGroupHeartbeatRequest(
            more.pop("group_id", GROUP), member_id, epoch, **more
        )
        call = self.ask(message, more.pop("version", 1))
        if call.reply is not None:
            call.reply = call.reply.response
        return call

    def enter(self, member_id: str, *topics: str, **more: Any) -> Call:
        values: dict[str, Any] = {"subscribed_topic_names": list(topics), **more}
        return self.beat(member_id, 0, rebalance_timeout_ms=REBALANCE_MS, owned=(), **values)

    def member(self, member_id: str, *topics: str, **more: Any) -> Member:
        """A member that has joined."""
        member = Member(self, member_id)
        member.take(self.enter(member_id, *(topics or ("t",)), **more))
        return member

    def come_to_rest(self, *members: Any) -> None:
        """All send heartbeats until no assignment changes any more."""
        for _ in range(10):
            before = [(m.epoch, m.owned) for m in members]
            for member in members:
                member.beat()
            if before == [(m.epoch, m.owned) for m in members]:
                return
        raise AssertionError("the group does not become stable")


@dataclass
class Member:
    """A client: it owns its last assignment, and reports it."""

    bench: ConsumerBench
    member_id: str
    epoch: int = 0
    owned: Owned = frozenset()

    def take(self, call: Call) -> Call:
        assert call.code is ErrorCode.NONE, call
        self.epoch = call.reply.member_epoch
        if call.reply.assignment is not None:
            self.owned = owned(call.reply)
        return call

    def beat(self, **more: Any) -> Call:
        return self.take(self.bench.beat(self.member_id, self.epoch, owned=self.owned, **more))

    @property
    def numbers(self) -> list[int]:
        return sorted(partition for _, partition in self.owned)


def owned(response: Any) -> Owned:
    return frozenset(
        (t.topic_id, p) for t in response.assignment.topic_partitions for p in t.partitions
    )


def partitions(found: Iterable[tuple[Uuid, int]]) -> list[TopicPartitions]:
    topics: dict[Uuid, list[int]] = {}
    for key, partition in sorted(found):
        topics.setdefault(key, []).append(partition)
    return [TopicPartitions(key, numbers) for key, numbers in topics.items()]
