"""Replicated topics with librdkafka and Kafka's tools, while brokers stop and start."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from skylog.testing.cluster import Cluster
from tests.integration.racks_cluster import shown_everywhere
from tests.integration.replicated_cluster import (
    CALM,
    QUICK,
    create,
    followers,
    led,
    produce,
    replica,
    same_bytes,
    send,
    settled,
    stop_fetching,
)
from tests.interop.support import JavaTools
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
LINE = re.compile(r"Partition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)")
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Writer:
    """An idempotent producer that keeps writing, in a thread."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acked: dict[int, list[bytes]] = {n: [] for n in range(partitions)}
        self.failed: list[Any] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._over.is_set():
            for partition in self.acked:
                value = b"%d-%d" % (partition, number)
                self._producer.produce(
                    self._topic, value, partition=partition, on_delivery=self._delivered
                )
            number += 1
            self._producer.poll(0.002)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acked[message.partition()].append(message.value())

    @property
    def count(self) -> int:
        return sum(len(values) for values in self.acked.values())

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(90) == 0


def read_all(bootstrap: str, topic: str, partition: int, **more: str) -> list[bytes]:
    """Everything up to the end of a partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "r", "enable.partition.eof": True, **more}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[bytes] = []
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                values.append(message.value())
            elif message.error().code() == -191:  # the end of the partition
                return values
        raise AssertionError("no end")
    finally:
        consumer.close()


def test_an_idempotent_producer_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Leaders are killed and restarted under load, each broker in turn."""
    settings = {**QUICK, "min.insync.replicas": "2"}
    with Cluster(3, 1, settings=settings, directory=tmp_path) as cluster:
        create(cluster, "t", partitions=2)
        writer = Writer(cluster.bootstrap, "t", 2)
        try:
            for turn in range(3):
                before = writer.count
                until(lambda seen=before: writer.count > seen + 50, "records are written")
                gone = led(cluster, "t", turn % 2)
                gone.kill()
                before = writer.count
                until(lambda seen=before: writer.count > seen + 200, "others lead")
                gone.start()
                for index in range(2):
                    until(
                        lambda n=index: len(settled_isr(cluster, n)) == 3, "all are in sync again"
                    )
        finally:
            writer.stop()
        assert not writer.failed
        for index in range(2):
            settled(cluster, "t", index)
            assert read_all(cluster.bootstrap, "t", index) == writer.acked[index]
    for index in range(2):
        same_bytes(cluster, "t", index)


def settled_isr(cluster: Cluster, index: int) -> set[int]:
    copy = replica(led(cluster, "t", index), "t", index)
    return set() if copy is None else set(copy.isr)


def test_groups_go_on_when_their_coordinator_dies() -> None:
    settings = {**QUICK, "offsets.topic.num.partitions": "3"}
    with Cluster(3, 1, settings=settings) as cluster:
        create(cluster, "t", partitions=3)
        for index in range(3):
            produce(cluster, "t", [b"one", b"two"], index=index)
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe(["t"])
        seen: list[bytes] = []

        def read(count: int) -> bool:
            seen.extend(m.value() for m in consumer.consume(10, 0.5) if m.error() is None)
            return len(seen) >= count

        until(lambda: read(6), "all are read")
        consumer.commit(asynchronous=False)
        groups = cluster.brokers[0].node._services.groups
        coordinator = led(cluster, "__consumer_offsets", groups.partition_for("g"))
        settled(cluster, "__consumer_offsets", groups.partition_for("g"))
        coordinator.kill()
        alive = [each for each in cluster.brokers if each is not coordinator]

        def committed() -> list[int]:
            other = Consumer(
                {
                    "bootstrap.servers": ",".join(each.bootstrap for each in alive),
                    "group.id": "g",
                    "log_level": 0,
                }
            )
            try:
                found = other.committed([TopicPartition("t", n) for n in range(3)], timeout=5)
                return [each.offset for each in found]
            except KafkaException:
                return []
            finally:
                other.close()

        until(lambda: committed() == [2, 2, 2], "another broker has the offsets")
        produce(cluster, "t", [b"three"])
        until(lambda: read(7), "the group goes on")
        until(lambda: _commits(consumer), "and commits")
        consumer.close()
        coordinator.start()


def _commits(consumer: Any) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        consumer.poll(0.1)
        return False
    return True


def test_a_consumer_in_another_rack_reads_there() -> None:
    settings = {**CALM, "replica.selector.class": SELECTOR}
    with Cluster(3, 1, racks=("a", "b", "c"), settings=settings) as cluster:
        create(cluster, "t")
        produce(cluster, "t", [b"%d" % n for n in range(50)])
        settled(cluster, "t")
        near = followers(cluster, "t")[0]
        rack = "abc"[near.node_id - 1]
        values = read_all(cluster.bootstrap, "t", 0, **{"client.rack": rack})
        assert values == [b"%d" % n for n in range(50)]
        served = near.node._services.traffic.topics["t"].bytes_out
        assert served > 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {**CALM, "replica.lag.time.max.ms": "5000", "replica.fetch.wait.max.ms": "200"}
    with Cluster(3, 1, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def tool(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    log = tmp_path_factory.mktemp("tools") / "log"
    tools = JavaTools(cluster.bootstrap, log, lambda: shown_everywhere(cluster))
    yield tools
    tools.close()


def described(tool: JavaTools, topic: str) -> list[tuple[str, list[str], list[str]]]:
    found = LINE.findall(tool("topics", "--describe", "--topic", topic).out)
    return [(leader, replicas.split(","), isr.split(",")) for _, leader, replicas, isr in found]


def test_tools_move_a_partition(tool: JavaTools, cluster: Cluster, tmp_path: Path) -> None:
    tool("topics", "--create", "--topic", "moved", "--replica-assignment", "1:2")
    shown_everywhere(cluster)
    produce(cluster, "moved", [b"v" * 10_000] * 20)
    plan = tmp_path / "plan.json"
    partitions = [{"topic": "moved", "partition": 0, "replicas": [3, 2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    where = ("--reassignment-json-file", str(plan))
    started = tool("reassign-partitions", *where, "--throttle", "50000000", "--execute").out
    assert "Successfully started partition reassignment for moved-0" in started

    def done() -> bool:
        out = tool("reassign-partitions", *where, "--verify").out
        return "Reassignment of partition moved-0 is completed." in out

    until(done, "it is moved")
    assert described(tool, "moved") == [("3", ["3", "2"], ["2", "3"])]
    assert "No partition reassignments found." in tool("reassign-partitions", "--list").out
    # The last verification removed the throttle.
    configs = tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "moved")
    assert "throttled" not in configs.out
    until(lambda: replica(cluster.broker(1), "moved") is None, "the old replica is deleted")
    elected = tool(
        "leader-election",
        *("--election-type", "preferred", "--topic", "moved", "--partition", "0"),
    )
    assert "already" in elected.out.lower() or "Valid replica" in elected.out


def test_tools_show_lagging_replicas(tool: JavaTools, cluster: Cluster) -> None:
    tool("topics", "--create", "--topic", "lagging", "--replica-assignment", "1:2:3")
    tool("configs", *("--alter", "--topic", "lagging", "--add-config", "min.insync.replicas=3"))
    shown_everywhere(cluster)
    produce(cluster, "lagging", [b"one"])
    under = ("topics", "--describe", "--topic", "lagging", "--under-replicated-partitions")
    assert tool(*under).out.strip() == ""
    slow = cluster.broker(3)
    stop_fetching(slow)
    assert send(cluster.broker(1), "lagging", [b"two"], acks=1).error_code == 0
    until(lambda: described(tool, "lagging")[0][2] == ["1", "2"], "it leaves")
    assert "Topic: lagging" in tool(*under).out
    below = ("topics", "--describe", "--topic", "lagging", "--under-min-isr-partitions")
    assert "Topic: lagging" in tool(*below).out
    slow.stop()
    slow.start()
    until(lambda: described(tool, "lagging")[0][2] == ["1", "2", "3"], "it is back")
    assert tool(*under).out.strip() == ""
