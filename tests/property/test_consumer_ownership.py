"""Whatever members, topics and the log do, a partition of a consumer group has one owner.

Members are small clients: they own their last assignment, revoke slowly, crash, leave and come
back, some as static members. Topics grow, the high watermark lags, the coordinator loses what was
not committed. Both the log (owners at each moment, and the committers of offsets) and the members
themselves (what each believes to own) are checked.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from skylog.groups.consumer.records import ConsumerRecord, apply_record
from skylog.groups.consumer.requests import TopicsChanged
from skylog.groups.consumer.world import ConsumerConfig
from skylog.groups.consumer.world import World as Surroundings
from skylog.groups.machine import GroupMachine
from skylog.groups.records import GroupRecordCodec, OffsetRecord
from skylog.groups.requests import Loaded, Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.replicated.digest import state_digest
from skylog.replicated.lifecycle import COORDINATOR_REFUSALS
from skylog.replicated.runtime import MachineKind, Runtime
from skylog.wire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from skylog.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.groups.consumer_support import EditableTopics
from tests.unit.replicated.support import LaggingLog, ManualTimers

GROUP = "group"
SESSION_MS, REBALANCE_MS = 10_000, 15_000
CODEC = GroupRecordCodec()
SETTINGS = GroupSettings()
TOPICS = {"t": Uuid(b"t" * 16), "u": Uuid(b"u" * 16)}
MEMBERS = 5
Key = tuple[Uuid, int]
LEAVING = (-1, -2)
AWAY = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass
class World:
    """A coordinator of one partition, with two topics."""

    interval_ms: int
    clock: ManualClock = field(default_factory=ManualClock)
    log: LaggingLog = field(default_factory=LaggingLog)
    incarnations: int = 0

    def __post_init__(self) -> None:
        self.timers = ManualTimers(self.clock)
        self.topics = EditableTopics({name: (topic_id, 3) for name, topic_id in TOPICS.items()})
        self.partitions = dict.fromkeys(TOPICS, 3)
        config = ConsumerConfig(SESSION_MS, 1_000, self.interval_ms)
        self.surroundings = Surroundings(self.topics, lambda group_id: config)
        kind: MachineKind[Any] = MachineKind(
            "groups",
            lambda: GroupMachine(SETTINGS, self.surroundings),
            CODEC,
            COORDINATOR_REFUSALS,
            loaded_request=Loaded(),
        )
        self.runtime: Runtime[Any] = Runtime(
            kind, self.log, self.clock, self.timers, on_failure=self._failed
        )

    def _failed(self, error: Exception) -> None:
        raise error

    async def grow(self, name: str) -> None:
        self.partitions[name] += 1
        self.topics.put(name, TOPICS[name], self.partitions[name])
        with contextlib.suppress(KafkaError):  # a machine that is loaded later checks in any case
            await self.runtime.submit(TopicsChanged(frozenset({name})))

    async def fail_over(self) -> None:
        """Another broker takes over with what was committed."""
        self.runtime.unload()
        self.log.lose_tail()
        await self.runtime.load()

    @property
    def group(self) -> ConsumerGroup | None:
        machine = self.runtime.machine
        assert isinstance(machine, GroupMachine)
        group = machine.group(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @property
    def everything(self) -> set[Key]:
        return {(TOPICS[n], p) for n, count in self.partitions.items() for p in range(count)}

    def check_log(self) -> None:
        """At every moment each partition has at most one owner, and only owners commit."""
        replayed, judge = GroupMachine(SETTINGS, self.surroundings), ConsumerGroup(GROUP)
        for batch in self.log.batches:
            for pair in batch:
                record = CODEC.decode(*pair)
                replayed.apply(record, 0)
                match record:
                    case OffsetRecord(key, value) if value is not None:
                        member = judge.members[value.metadata]
                        topic_id = TOPICS[key.topic]
                        assert member.partition_epoch(topic_id, key.partition) is not None
                    case ConsumerRecord():
                        apply_record(judge, record)
                        if record.value is None and isinstance(
                            record.key, ConsumerGroupMetadataKey
                        ):
                            judge = ConsumerGroup(GROUP)
            _check_owners(judge)
        machine = self.runtime.machine
        assert machine is not None
        assert state_digest(machine, CODEC) == state_digest(replayed, CODEC)


def _check_owners(group: ConsumerGroup) -> None:
    owned: dict[Key, str] = {}
    for member in group.members.values():
        for part in (member.assigned, member.revoking):
            for topic_id, partitions in part.items():
                for partition in partitions:
                    key = (topic_id, partition)
                    assert key not in owned, "a partition has two owners"
                    owned[key] = member.member_id
    assert {k: group.members[m].epoch for k, m in owned.items()} == group.owned_epochs
    assert group.target_epoch <= group.epoch


@dataclass
class Client:
    """What a consumer does, one request at a time."""

    world: World
    instance_id: str | None
    wishes: frozenset[str]
    member_id: str = ""
    epoch: int = 0
    owned: frozenset[Key] = frozenset()
    assigned: frozenset[Key] = frozenset()
    alive: bool = True
    sure: bool = True
    said: frozenset[str] = frozenset()
    request: asyncio.Task[Any] | None = None

    def __post_init__(self) -> None:
        self.world.incarnations += 1
        self.member_id = f"m{self.world.incarnations:04}"

    @property
    def busy(self) -> bool:
        return self.request is not None and not self.request.done()

    def act(self, commits: bool, slow: bool) -> None:
        """Handle the last response, if it has arrived, and send the next request."""
        if not self.alive or self.busy:
            return
        if self.request is not None:
            self._note(*self.request.result())
            if not self.alive:
                return
        if not slow:
            self.owned = self.assigned
        message = self._commit() if commits and self.owned and self.epoch > 0 else self._beat()
        self._start(message)

    def _beat(self) -> ConsumerGroupHeartbeatRequest:
        message = ConsumerGroupHeartbeatRequest(
            GROUP, self.member_id, self.epoch, self.instance_id, topic_partitions=self._reported()
        )
        if self.epoch == 0 or not self.sure or self.said != self.wishes:  # then it sends all fields
            message.rebalance_timeout_ms = REBALANCE_MS
            message.subscribed_topic_names = sorted(self.wishes)
        return message

    def _reported(self) -> list[TopicPartitions]:
        if self.epoch == 0:
            return []
        topics: dict[Uuid, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            topics.setdefault(topic_id, []).append(partition)
        return [TopicPartitions(*item) for item in topics.items()]

    def _commit(self) -> OffsetCommitRequest:
        topics = [
            OffsetCommitRequestTopic(
                name,
                topic_id,
                [
                    OffsetCommitRequestPartition(p, 1, committed_metadata=self.member_id)
                    for t, p in sorted(self.owned)
                    if t == topic_id
                ],
            )
            for name, topic_id in TOPICS.items()
        ]
        return OffsetCommitRequest(
            GROUP,
            self.epoch,
            self.member_id,
            self.instance_id,
            topics=[topic for topic in topics if topic.partitions],
        )

    def _start(self, message: Any) -> None:
        self.request = asyncio.get_running_loop().create_task(self._send(message))

    async def _send(self, message: Any) -> tuple[Any, Any, ErrorCode]:
        try:
            response = await self.world.runtime.submit(Request(message, 9, "client", "/h", "?"))
        except KafkaError as error:
            return message, None, error.code
        return message, response, ErrorCode.NONE

    def _note(self, message: Any, reply: Any, code: ErrorCode) -> None:
        self.sure = code is ErrorCode.NONE
        match code:
            case ErrorCode.NONE if isinstance(message, ConsumerGroupHeartbeatRequest):
                self.epoch = reply.response.member_epoch
                if message.subscribed_topic_names is not None:
                    self.said = frozenset(message.subscribed_topic_names)
                if reply.response.assignment is not None:
                    told = reply.response.assignment.topic_partitions
                    self.assigned = frozenset((t.topic_id, p) for t in told for p in t.partitions)
                    self.owned |= self.assigned
            case ErrorCode.NONE | ErrorCode.STALE_MEMBER_EPOCH | ErrorCode.UNRELEASED_INSTANCE_ID:
                pass
            case (
                ErrorCode.FENCED_MEMBER_EPOCH
                | ErrorCode.UNKNOWN_MEMBER_ID
                | ErrorCode.GROUP_ID_NOT_FOUND
            ):
                self.epoch, self.owned, self.assigned = 0, frozenset(), frozenset()
            case ErrorCode.FENCED_INSTANCE_ID:
                self.die()
            case _:
                assert code in AWAY, code

    def die(self) -> None:
        self.alive, self.owned, self.assigned = False, frozenset(), frozenset()

    def leave(self) -> None:
        """Leave the group; earlier requests may still take effect."""
        if self.alive and not self.busy and self.epoch > 0:
            self.die()
            epoch = -1 if self.instance_id is None else -2
            self._start(
                ConsumerGroupHeartbeatRequest(GROUP, self.member_id, epoch, self.instance_id)
            )


NUMBER = st.integers(0, MEMBERS - 1)
actions = st.one_of(
    *[st.tuples(st.just("act"), NUMBER, st.booleans())] * 4,
    *[st.tuples(st.just("all"), NUMBER, st.booleans())] * 4,
    *[st.tuples(st.just("commit"), st.integers(0, 30), st.none())] * 3,
    *[st.tuples(st.just("time"), st.sampled_from([1, 500, 3_000, 9_999, 16_000]), st.none())] * 2,
    st.tuples(st.just("slow"), NUMBER, st.booleans()),
    st.tuples(st.just("crash"), NUMBER, st.none()),
    st.tuples(st.just("leave"), NUMBER, st.none()),
    st.tuples(st.just("restart"), NUMBER, st.none()),
    st.tuples(st.just("wish"), NUMBER, st.sampled_from([{"t"}, {"u"}, {"t", "u"}])),
    st.tuples(st.just("grow"), st.sampled_from(["t", "u"]), st.none()),
    st.tuples(st.just("fail over"), st.none(), st.none()),
)


class Schedule:
    """Runs actions against a world."""

    def __init__(self, interval_ms: int) -> None:
        self.world = World(interval_ms)
        names = frozenset(TOPICS)
        # Two of them are static members.
        self.clients = [
            Client(self.world, None if i < MEMBERS - 2 else f"s{i}", names) for i in range(MEMBERS)
        ]
        self.old_requests: list[asyncio.Task[Any]] = []

    async def step(self, action: str, number: Any, flag: Any) -> None:
        match action:
            case "commit" | "time" | "grow" | "fail over":
                await self._happen(action, number)
            case "all":
                for client in self.clients:
                    client.act(flag, slow=False)
            case _:
                self._do(action, number, flag)
        for _ in range(4):
            await asyncio.sleep(0)
        self._check_beliefs()

    async def _happen(self, action: str, number: Any) -> None:
        world, log = self.world, self.world.log
        match action:
            case "commit":
                log.commit(min(log.high_watermark + number, log.end_offset))
            case "time":
                world.timers.advance(number)
            case "grow" if world.partitions[number] < 8:
                self.old_requests.append(asyncio.create_task(world.grow(number)))
            case "fail over":
                await world.fail_over()

    def _do(self, action: str, number: int, flag: Any) -> None:
        client = self.clients[number]
        match action:
            case "act" | "slow":
                client.act(flag, slow=action == "slow")
            case "crash":
                client.die()
            case "leave":
                client.leave()
            case "restart":
                self._restart(number)
            case "wish":
                client.wishes = frozenset(flag)

    def _restart(self, number: int) -> None:
        """A new process; requests of the old one may still take effect."""
        old = self.clients[number]
        if old.request is not None:
            self.old_requests.append(old.request)
        self.clients[number] = Client(self.world, old.instance_id, old.wishes)

    def _check_beliefs(self) -> None:
        """No two clients that the coordinator counts as members own the same partition."""
        group = self.world.group
        if group is None:
            return
        members = [client for client in self.clients if client.member_id in group.members]
        for one, other in combinations(members, 2):
            assert not one.owned & other.owned, "two members believe to own a partition"

    async def heal(self) -> None:
        """With all members alive and a prompt log, the group must become stable."""
        for client in self.clients:
            client.wishes = frozenset(TOPICS)
        for number in range(60):
            for index, client in enumerate(self.clients):
                if not client.alive and not client.busy:
                    self._restart(index)
                    self.clients[index].wishes = frozenset(TOPICS)
            await self.step("all", 0, number % 3 == 2)
            await self.step("commit", 2**31, None)
            await self.step("time", 1_000, None)
        group = self.world.group
        assert group is not None
        assert group.state is ConsumerGroupState.STABLE
        assert {client.epoch for client in self.clients} == {group.epoch}
        owned = [len(client.owned) for client in self.clients]
        assert max(owned) - min(owned) <= 1
        assert set().union(*(client.owned for client in self.clients)) == self.world.everything
        assert sum(owned) == len(self.world.everything)

    async def close(self) -> None:
        self.world.runtime.unload()
        requests = [c.request for c in self.clients if c.request is not None]
        await asyncio.gather(*requests, *self.old_requests)


async def run(steps: list[tuple[str, Any, Any]], interval_ms: int) -> None:
    schedule = Schedule(interval_ms)
    await schedule.world.runtime.load()
    for step in steps:
        await schedule.step(*step)
    schedule.world.check_log()
    await schedule.heal()
    schedule.world.check_log()
    await schedule.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, min_size=20, max_size=120), st.sampled_from([0, 1_000]))
def test_one_owner_per_partition(steps: list[tuple[str, Any, Any]], interval_ms: int) -> None:
    asyncio.run(run(steps, interval_ms))
