"""From committed records to a broker that acts on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.fetch_sessions import FetchSessions, FetchSessionSettings
from skylog.broker.metadata.configs import Configs
from skylog.broker.metadata.followers import (
    AclFollower,
    ConfigFollower,
    PartitionFollower,
    QuotaFollower,
    put_strays_aside,
)
from skylog.broker.metadata.publisher import MetadataPublisher, everything
from skylog.broker.observe.traffic import Traffic
from skylog.controller.image import ClusterImage, Delta
from skylog.kernel import limits
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import system_random
from skylog.kernel.settings import load_settings
from skylog.replicated.log import LoadedBatch
from skylog.security.quotas import ClientQuotas
from skylog.wire.messages.client_quota_record import ClientQuotaRecord, EntityData
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.metadata_records import encode_metadata
from skylog.wire.schema import Message

BROKER, TOPIC = 4, 2


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def topic(name: str, number: int, partitions: int = 1, leader: int = 1) -> list[Message]:
    where = {"leader": leader, "leader_epoch": 0, "partition_epoch": 0}
    return [
        TopicRecord(name, topic_id(number)),
        *(
            PartitionRecord(index, topic_id(number), [1], [1], **where)
            for index in range(partitions)
        ),
    ]


def committed(records: Sequence[Message], offset: int = 0) -> LoadedBatch:
    return LoadedBatch(offset, [(None, encode_metadata(record)) for record in records])


class Recorder:
    def __init__(self, fail: bool = False) -> None:
        self.deltas: list[Delta] = []
        self.fail = fail

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        self.deltas.append(delta)
        if self.fail:
            raise RuntimeError("a bug")


# The publisher


def test_followers_hear_everything_once_and_then_every_change() -> None:
    publisher = MetadataPublisher(ClusterImage())
    publisher.committed(committed([*topic("old", 1), *topic("doomed", 2)]))
    publisher.committed(committed([RemoveTopicRecord(topic_id(2))], 5))
    follower = Recorder()
    publisher.start([follower])
    (first,) = follower.deltas
    assert [t.name for t in first.topics_created.values()] == ["old"]
    assert not first.topics_deleted
    publisher.committed(committed(topic("new", 3, partitions=2), 6))
    assert follower.deltas[1].partitions == {topic_id(3): {0, 1}}
    assert publisher.end_offset == 9
    publisher.committed(LoadedBatch(9, [(None, None)]))
    assert len(follower.deltas) == 2  # nothing changed, no listener is notified


def test_a_follower_that_fails_does_not_stop_the_others() -> None:
    publisher = MetadataPublisher(ClusterImage())
    broken, sound = Recorder(fail=True), Recorder()
    publisher.start([broken, sound])
    publisher.committed(committed(topic("t", 1)))
    publisher.committed(committed(topic("u", 2), 2))
    assert len(broken.deltas) == len(sound.deltas) == 3
    assert publisher.image.topic("u") is not None


def test_everything_is_the_way_from_nothing() -> None:
    image = ClusterImage()
    for record in [*topic("t", 1, partitions=3), ConfigRecord(TOPIC, "t", "retention.ms", "1")]:
        image.apply(record)
    delta = everything(image)
    assert delta.partitions == {topic_id(1): {0, 1, 2}}
    assert [resource.name for resource in delta.configs] == ["t"]


# Settings


def configs(image: ClusterImage, *overrides: str) -> Configs:
    return Configs(load_settings(None, {}, ["node.id=1", *overrides]), image)


def change(image: ClusterImage, found: Configs, *records: Message) -> Delta:
    delta = Delta()
    for record in records:
        image.apply(record, delta)
    found.metadata_changed(image, delta)
    return delta


def test_a_topics_own_setting_goes_before_all_others() -> None:
    image = ClusterImage()
    found = configs(image, "message.max.bytes=1000")
    key = "max.message.bytes"

    def limit(name: str = "t") -> int:
        return found.topic_rules(name).message_bytes_max

    assert limit() == 1000
    change(image, found, ConfigRecord(BROKER, "", "message.max.bytes", "2000"))
    assert limit() == 2000
    change(image, found, ConfigRecord(BROKER, "1", "message.max.bytes", "3000"))
    assert limit() == 3000
    change(image, found, ConfigRecord(BROKER, "7", "message.max.bytes", "7000"))
    assert limit() == 3000  # another broker's
    change(image, found, *topic("t", 1), ConfigRecord(TOPIC, "t", key, "4000"))
    assert (limit(), limit("u")) == (4000, 3000)
    delta = change(image, found, ConfigRecord(TOPIC, "t", key, None))
    assert limit() == 3000
    assert list(found.changed_topics(delta)) == ["t"]
    change(image, found, ConfigRecord(BROKER, "1", "message.max.bytes", None))
    change(image, found, ConfigRecord(BROKER, "", "message.max.bytes", None))
    assert limit() == 1000


def test_what_a_topics_settings_come_to_is_worked_out_once() -> None:
    image = ClusterImage()
    found = configs(image)
    change(image, found, *topic("t", 1))
    first = found.topic("t")
    change(image, found, *topic("u", 2))
    assert found.topic("t") is first
    change(image, found, ConfigRecord(TOPIC, "t", "retention.ms", "5"))
    assert found.topic("t") is not first
    assert found.log_config("t").retention_ms == 5


def test_listeners_of_the_nodes_settings_are_notified() -> None:
    image = ClusterImage()
    found = configs(image)
    heard: list[Any] = []
    found.on_change(heard.append)
    change(image, found, ConfigRecord(TOPIC, "t", "retention.ms", "5"))
    assert heard == []
    change(image, found, ConfigRecord(BROKER, "", "max.connections", "77"))
    assert [settings.network.connections_max for settings in heard] == [77]


def test_dynamic_settings_that_cannot_be_used_leave_the_old_ones() -> None:
    image = ClusterImage()
    found = configs(image)
    before = found.current
    change(image, found, ConfigRecord(BROKER, "", "max.connections", "many"))
    assert found.current is before
    with pytest.raises((ConfigError, KafkaError)):
        found.check_broker_change("", [("max.connections", 0, "many")])
    with pytest.raises(KafkaError) as refused:
        found.check_broker_change("7", [("max.connections", 0, "5")])
    assert refused.value.code is ErrorCode.INVALID_REQUEST


# Partitions


class Groups:
    def __init__(self) -> None:
        self.partition_count = 0
        self.log: list[tuple[str, Any]] = []
        self.changed: list[list[str]] = []

    def topics_deleted(self, topics: Any) -> None:
        self.log.append(("deleted", [name for name, _ in topics]))

    def topics_changed(self, names: Any) -> None:
        self.changed.append(sorted(names))

    def partition_led(self, index: int, log: Any) -> None:
        self.log.append(("led", index))

    def partition_resigned(self, index: int) -> None:
        self.log.append(("resigned", index))


class Replicas:
    def __init__(self) -> None:
        self.assigned: list[tuple[str, int]] = []
        self.deleted: list[str] = []
        self.configured: list[str] = []
        self.failing: set[tuple[str, int]] = set()

    def assign(self, topic: str, index: int, topic_id: Uuid, state: Any, config: Any) -> Any:
        if (topic, index) in self.failing:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        self.assigned.append((topic, index))
        return SimpleNamespace(is_leader=state.leader == 1, leader_epoch=state.leader_epoch)

    def delete_topic(self, name: str) -> None:
        self.deleted.append(name)

    def configure(self, name: str, config: Any) -> None:
        self.configured.append(name)


class Following:
    """A partition follower and its collaborators."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.groups, self.replicas, self.traffic = Groups(), Replicas(), Traffic()
        self.configs = configs(self.image)
        services: Any = SimpleNamespace(
            image=self.image,
            groups=self.groups,
            replicas=self.replicas,
            traffic=self.traffic,
            configs=self.configs,
            clock=ManualClock(),
            executor=None,
        )
        self.publisher = MetadataPublisher(self.image)
        self.publisher.start([ConfigFollower(self.configs), PartitionFollower(services)])

    def happens(self, *records: Message) -> None:
        self.publisher.committed(committed(records, self.publisher.end_offset))


def test_topics_are_created_changed_and_deleted() -> None:
    world = Following()
    world.happens(*topic("t", 1, partitions=2))
    assert world.replicas.assigned == [("t", 0), ("t", 1)]
    world.happens(ConfigRecord(TOPIC, "t", "retention.ms", "5"))
    assert world.replicas.configured == ["t"]
    world.traffic.rejected("t")
    world.happens(RemoveTopicRecord(topic_id(1)))
    assert world.replicas.deleted == ["t"]
    assert world.groups.log == [("deleted", ["t"])]
    assert world.groups.changed == [["t"], ["t"]], "when it was created and when it was deleted"
    assert world.publisher.topics_created_offset == 3
    assert world.traffic.topics == {}
    assert world.configs._topics == {}, "settings must not outlive their topic"


def test_a_partition_that_fails_does_not_keep_others_away() -> None:
    world = Following()
    world.replicas.failing = {("t", 1)}
    world.happens(*topic("t", 1, partitions=3), *topic("u", 2))
    assert world.replicas.assigned == [("t", 0), ("t", 2), ("u", 0)]


def test_groups_follow_the_leaders_of_the_offsets_topic() -> None:
    world = Following()
    world.happens(*topic("__consumer_offsets", 1, partitions=2))
    assert world.groups.partition_count == 2
    moved = PartitionRecord(
        0, topic_id(1), [1, 7], [7], leader=7, leader_epoch=1, partition_epoch=1
    )
    world.happens(moved)
    world.happens(moved)
    world.happens(RemoveTopicRecord(topic_id(1)))
    led = [("led", 0), ("led", 1)]
    deleted = ("deleted", ["__consumer_offsets"])
    assert world.groups.log == [*led, ("resigned", 0), ("resigned", 1), deleted]


async def test_very_many_partitions_come_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARTITIONS_MADE_AT_ONCE_MAX", 3)
    monkeypatch.setattr(limits, "PARTITIONS_MADE_PER_TURN", 2)
    world = Following()
    world.replicas.failing = {("t", 4)}
    world.happens(*topic("t", 1, partitions=10), *topic("doomed", 2, partitions=10))
    assert len(world.replicas.assigned) == 3
    world.happens(RemoveTopicRecord(topic_id(2)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert {index for name, index in world.replicas.assigned if name == "t"} == {
        *range(4), *range(5, 10)
    }  # fmt: skip
    assert not [index for name, index in world.replicas.assigned if name == "doomed"]


async def test_a_bug_in_one_turn_does_not_end_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARTITIONS_MADE_AT_ONCE_MAX", 0)
    monkeypatch.setattr(limits, "PARTITIONS_MADE_PER_TURN", 1)
    failed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    world = Following()
    assign = world.replicas.assign

    def fail_once(topic: str, index: int, *rest: Any) -> Any:
        if index == 1:
            raise ZeroDivisionError
        return assign(topic, index, *rest)

    monkeypatch.setattr(world.replicas, "assign", fail_once)
    world.happens(*topic("t", 1, partitions=4))
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.replicas.assigned == [("t", 0), ("t", 2), ("t", 3)]
    assert len(failed) == 1


def test_logs_of_what_is_not_here_any_more_are_put_aside() -> None:
    image = ClusterImage()
    for record in topic("t", 1, partitions=2):
        image.apply(record)
    stored = [
        SimpleNamespace(
            topic=name, partition=index, companions=SimpleNamespace(topic_id=topic_id(number))
        )
        for name, index, number in (("t", 0, 1), ("t", 2, 1), ("u", 0, 2))
    ]
    aside: list[tuple[str, int]] = []

    def delete(name: str, index: int, *, stray: bool) -> None:
        assert stray
        aside.append((name, index))

    logs: Any = SimpleNamespace(logs=lambda: iter(stored), delete=delete)
    put_strays_aside(logs, image, 1)
    assert aside == [("t", 2), ("u", 0)]
    aside.clear()
    put_strays_aside(logs, image, 7)  # its partitions have been moved away
    assert aside == [("t", 0), ("t", 2), ("u", 0)]


# Permissions and quotas


def test_quotas_are_set_changed_and_taken_back() -> None:
    image, quotas = ClusterImage(), ClientQuotas(11, 1, 11, 1)
    rates: dict[str | None, float | None] = {}
    connections: Any = SimpleNamespace(update_ip_rate=rates.__setitem__)
    follower = QuotaFollower(quotas, connections)

    def happens(kind: str, name: str | None, key: str, value: float, remove: bool = False) -> None:
        delta = Delta()
        image.apply(ClientQuotaRecord([EntityData(kind, name)], key, value, remove), delta)
        follower.metadata_changed(image, delta)

    happens("client-id", "c", "producer_byte_rate", 100.0)
    assert quotas.produce.limit("", "c") == 100.0
    happens("client-id", "c", "consumer_byte_rate", 5.0)
    happens("client-id", "c", "producer_byte_rate", 0.0, remove=True)
    assert not quotas.produce.enabled
    assert quotas.fetch.limit("", "c") == 5.0
    happens("ip", "10.0.0.1", "connection_creation_rate", 3.0)
    happens("ip", "10.0.0.1", "connection_creation_rate", 0.0, remove=True)
    assert rates == {"10.0.0.1": None}


def test_changed_permissions_are_looked_at_by_the_next_fetch() -> None:
    sessions = FetchSessions(FetchSessionSettings(), ManualClock(), system_random())
    looked: list[bool] = []
    sessions.look_again = lambda: looked.append(True)  # type: ignore[method-assign]
    known: dict[Any, Any] = {}
    authorizer: Any = SimpleNamespace(add=known.__setitem__, remove=known.pop)
    follower = AclFollower(authorizer, sessions)
    acl: Any = object()
    follower.metadata_changed(ClusterImage(), Delta(acls_added={topic_id(1): acl}))
    assert known == {topic_id(1): acl}
    follower.metadata_changed(ClusterImage(), Delta(acls_removed={topic_id(1): acl}))
    follower.metadata_changed(ClusterImage(), Delta())
    assert known == {}
    assert len(looked) == 2
