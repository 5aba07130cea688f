"""Groups of the consumer protocol with librdkafka: members join, leave, crash and outlive the
broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from skylog.kernel.errors import ConfigError, ErrorCode
from skylog.testing import Broker
from skylog.wire.messages import incremental_alter_configs_request as alter
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.integration.broker_client import Client
from tests.integration.processes import BrokerProcess
from tests.ports import free_port

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "0",
}
PARTITIONS = 6
DEADLINE_SECONDS = 60
GROUP_RESOURCE = 32


def make_topic(bootstrap: str, name: str, partitions: int = PARTITIONS) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(30)
    return admin


class Group:
    """Consumers of one group, polled together until a condition holds."""

    def __init__(self, bootstrap: str, group: str, subscription: list[str]) -> None:
        self.bootstrap, self.group, self.subscription = bootstrap, group, subscription
        self.members: list[Consumer] = []
        self.seen: list[bytes] = []

    def add(self, protocol: str = "consumer", **more: Any) -> Consumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **more,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
            settings |= {"partition.assignment.strategy": "range"}  # which sends no data
        member = Consumer(settings)
        member.subscribe(self.subscription)
        self.members.append(member)
        return member

    def poll_until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not done():
            assert time.monotonic() < deadline, f"{what}: {self.owned()}"
            for member in self.members:
                message = member.poll(0.05)
                if message is not None and message.error() is None:
                    self.seen.append(message.value() or b"")

    def owned(self) -> list[list[tuple[str, int]]]:
        return [sorted((p.topic, p.partition) for p in m.assignment()) for m in self.members]

    def shares(self) -> list[int]:
        return sorted(map(len, self.owned()))

    def await_shares(self, *shares: int) -> None:
        self.poll_until(lambda: self.shares() == list(shares), f"shares {shares}")
        everything = [partition for part in self.owned() for partition in part]
        assert len(set(everything)) == len(everything) == sum(shares)

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        member.close()


@contextmanager
def group(bootstrap: str, name: str, *subscription: str) -> Iterator[Group]:
    members = Group(bootstrap, name, list(subscription))
    try:
        yield members
    finally:
        for member in members.members:
            member.close()


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for index, value in enumerate(values):
        producer.produce(topic, value, partition=index % PARTITIONS)
    assert producer.flush(30) == 0


def described(admin: AdminClient, name: str) -> Any:
    return admin.describe_consumer_groups([name])[name].result(30)


def test_three_members_join_and_leave(broker: Broker) -> None:
    admin = make_topic(broker.bootstrap, "three")
    produce(broker.bootstrap, "three", [b"%d" % i for i in range(60)])
    with group(broker.bootstrap, "three", "three") as members:
        members.add()
        members.await_shares(6)
        members.add()
        members.await_shares(3, 3)
        third = members.add()
        members.await_shares(2, 2, 2)
        members.poll_until(lambda: len(set(members.seen)) == 60, "all records")
        found = described(admin, "three")
        assert (found.state, found.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
        assert sorted(len(m.assignment.topic_partitions) for m in found.members) == [2, 2, 2]
        assert found.partition_assignor == "uniform"
        offsets = [TopicPartition(*part, 10) for part in members.owned()[0]]
        committed = members.members[0].commit(offsets=offsets, asynchronous=False)
        assert [p.error for p in committed] == [None, None]
        members.leave(third)
        members.await_shares(3, 3)
        members.leave(members.members[0])
        members.await_shares(6)
    assert described(admin, "three").state is ConsumerGroupState.EMPTY
    listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(30)
    assert "three" in {g.group_id for g in listed.valid}
    admin.delete_consumer_groups(["three"])["three"].result(30)


def test_topics_are_created_and_grow(broker: Broker) -> None:
    admin = make_topic(broker.bootstrap, "grow", 2)
    with group(broker.bootstrap, "grow", "^gro.*") as members:
        members.add()
        members.await_shares(2)
        admin.create_partitions([NewPartitions("grow", 5)])["grow"].result(30)
        members.await_shares(5)
        members.add()
        members.await_shares(2, 3)


def test_patterns_see_new_topics_and_only_those_that_match(broker: Broker) -> None:
    for name in ("pattern-a", "pattern-b", "other"):
        make_topic(broker.bootstrap, name, 2)
    with group(broker.bootstrap, "patterns", "^pattern-.*") as members:
        members.add()
        members.await_shares(4)
        assert {topic for topic, _ in members.owned()[0]} == {"pattern-a", "pattern-b"}
        make_topic(broker.bootstrap, "pattern-c", 1)
        members.await_shares(5)


def entering(group: str, *topics: str, **more: Any) -> ConsumerGroupHeartbeatRequest:
    values: dict[str, Any] = {"subscribed_topic_names": list(topics), **more}
    return ConsumerGroupHeartbeatRequest(
        group, "m", 0, rebalance_timeout_ms=1_000, topic_partitions=[], **values
    )


def test_invalid_patterns_are_reported(broker: Broker) -> None:
    with Client(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]))
        for regex in ("(", "(?=a)", "a" * 5_000):
            request = entering("bad", subscribed_topic_regex=regex, subscribed_topic_names=None)
            answer = client.ask(request)
            assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
            assert answer.error_message.startswith("SubscribedTopicRegex ")
        [found] = client.ask(ConsumerGroupDescribeRequest(["bad"])).groups
        assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_have_settings_of_their_own(broker: Broker) -> None:
    with Client(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]))
        assert client.ask(entering("own", "t")).heartbeat_interval_ms == 200
        change = alter.AlterableConfig("consumer.heartbeat.interval.ms", 0, "777")
        resource = alter.AlterConfigsResource(GROUP_RESOURCE, "own", [change])
        [changed] = client.ask(alter.IncrementalAlterConfigsRequest([resource])).responses
        assert changed.error_code == 0
        assert client.ask(entering("own", "t")).heartbeat_interval_ms == 777
        assert client.ask(entering("another", "t")).heartbeat_interval_ms == 200
        change.value = "99"  # less than the broker allows
        [refused] = client.ask(alter.IncrementalAlterConfigsRequest([resource])).responses
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "group.consumer.min.heartbeat.interval.ms" in refused.error_message


@pytest.mark.parametrize("settings", [{"group.coordinator.rebalance.protocols": "classic"}])
def test_the_protocol_can_be_switched_off(settings: dict[str, str]) -> None:
    with Broker(settings) as broker, Client(broker.bootstrap) as client:
        assert client.ask(entering("off", "t")).error_code == ErrorCode.UNSUPPORTED_VERSION
        [found] = client.ask(ConsumerGroupDescribeRequest(["off"])).groups
        assert found.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_unknown_assignors_are_a_bad_setting() -> None:
    with pytest.raises(ConfigError, match=r"group\.consumer\.assignors.*uniform and range"):
        Broker({"group.consumer.assignors": "uniform,best"}).start()


def test_static_members_come_back_to_their_partitions(broker: Broker) -> None:
    admin = make_topic(broker.bootstrap, "static")
    with group(broker.bootstrap, "static", "static") as members:
        first = members.add(**{"group.instance.id": "one"})
        members.add(**{"group.instance.id": "two"})
        members.await_shares(3, 3)
        mine = members.owned()[0]
        members.leave(first)
        again = members.add(**{"group.instance.id": "one"})
        members.await_shares(3, 3)
        assert members.owned()[members.members.index(again)] == mine
        found = described(admin, "static")
        assert sorted(m.group_instance_id for m in found.members) == ["one", "two"]


MEMBER = """
import sys
from confluent_kafka import Consumer
c = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "kill", "group.protocol": "consumer"})
c.subscribe(["kill"])
while True:
    c.poll(0.1)
    if c.assignment():
        print(len(c.assignment()), flush=True)
"""


def test_a_killed_member_loses_its_partitions(broker: Broker, tmp_path: Path) -> None:
    make_topic(broker.bootstrap, "kill")
    printed = tmp_path / "printed"
    with group(broker.bootstrap, "kill", "kill") as members, printed.open("wb") as output:
        members.add()
        members.await_shares(6)
        process = subprocess.Popen([sys.executable, "-c", MEMBER, broker.bootstrap], stdout=output)
        try:
            # Both sides at once: a member that is not polled gives up no partitions, and a slow
            # one that is fenced and joins again needs them given up a second time.
            members.poll_until(
                lambda: printed.read_text().endswith("3\n") and members.shares() == [3],
                "three partitions for each",
            )
        finally:
            process.kill()
            process.wait()
        members.await_shares(6)


def test_a_classic_group_changes_while_it_runs(broker: Broker) -> None:
    admin = make_topic(broker.bootstrap, "change")
    with group(broker.bootstrap, "change", "change") as members:
        old = [members.add("classic"), members.add("classic")]
        members.await_shares(3, 3)
        assert described(admin, "change").type is ConsumerGroupType.CLASSIC
        members.add()
        members.await_shares(2, 2, 2)
        assert described(admin, "change").type is ConsumerGroupType.CONSUMER
        members.leave(old[0])
        members.await_shares(3, 3)
        new = members.members[-1]
        members.leave(new)
        members.await_shares(6)
        assert described(admin, "change").type is ConsumerGroupType.CLASSIC


def test_a_group_outlives_its_broker(tmp_path: Path) -> None:
    port = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
    process = BrokerProcess(tmp_path / "data", {**SETTINGS, "listeners": listeners})
    with process:
        bootstrap = process.address
        admin = make_topic(bootstrap, "outlives")
        with group(bootstrap, "outlives", "outlives") as members:
            for _ in range(2):
                members.add()
            members.await_shares(3, 3)
            before = described(admin, "outlives")
            process.kill()
            process.start()
            produce(bootstrap, "outlives", [b"after%d" % i for i in range(12)])
            members.poll_until(lambda: len(set(members.seen)) == 12, "records after the restart")
            members.await_shares(3, 3)
            # A new client: the other one may take half a minute to find the broker again.
            after = described(AdminClient({"bootstrap.servers": bootstrap}), "outlives")
            assert {m.member_id for m in after.members} == {m.member_id for m in before.members}
            members.add()
            members.await_shares(2, 2, 2)


def test_a_group_that_is_not_empty_stays(broker: Broker) -> None:
    admin = make_topic(broker.bootstrap, "stays", 1)
    with group(broker.bootstrap, "stays", "stays") as members:
        members.add()
        members.await_shares(1)
        with pytest.raises(KafkaException, match=r"NON_EMPTY|not empty"):
            admin.delete_consumer_groups(["stays"])["stays"].result(30)
