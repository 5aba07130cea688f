"""Kafka Connect on skylog: its file connectors in a worker of a group, and MirrorMaker."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.interop.support import Node, await_equal, java_program, start_skylog
from tests.interop.topics import create_topic, partitions_of, read_topic
from tests.ports import free_port

# These programs start slowly, and the machine may be busy.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SECONDS_MAX = 100
ONE_REPLICA = {
    f"{topic}.replication.factor": "1"
    for topic in ("config.storage", "offset.storage", "status.storage")
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    """Nodes by name; the internal topics of these programs have fixed names."""
    started: list[Node] = []

    def node(name: str) -> Node:
        started.append(start_skylog(tmp_path / name))
        return started[-1]

    yield node
    for one in started:
        assert one.process.alive
        one.process.stop()


# The file connectors


def worker_settings(bootstrap: str, port: int) -> dict[str, str]:
    string = "org.apache.kafka.connect.storage.StringConverter"
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "connect",
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": string,
        "value.converter": string,
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        **ONE_REPLICA,
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "service_load",
        # A killed worker is detected soon, and its work is reassigned at once.
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        "consumer.session.timeout.ms": "6000",
        "consumer.heartbeat.interval.ms": "1000",
    }


def connector(kind: str, file: Path, **more: str) -> dict[str, str]:
    name = f"org.apache.kafka.connect.file.FileStream{kind}Connector"
    return {"connector.class": name, "tasks.max": "1", "file": str(file), **more}


def rest(port: int, path: str, body: Mapping[str, str] | None = None) -> Any:
    """The worker's response, or None while it is not ready."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="GET" if body is None else "PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError) as error:
        assert getattr(error, "code", 503) in (404, 409, 500, 503), error
        return None


def states(port: int, name: str) -> list[str]:
    status = rest(port, f"/{name}/status") or {"tasks": []}
    return [task["state"] for task in status["tasks"]]


def test_a_file_through_a_topic_into_a_file(start: Callable[[str], Node], tmp_path: Path) -> None:
    """Each line is in the topic once, though the worker is killed and another one takes over."""
    bootstrap = start("skylog").bootstrap
    source, sink, port = tmp_path / "source.txt", tmp_path / "sink.txt", free_port()
    lines = [f"line {number}" for number in range(500)]
    source.write_text("".join(f"{line}\n" for line in lines))
    worker = "org.apache.kafka.connect.cli.ConnectDistributed"
    settings = worker_settings(bootstrap, port)
    with java_program(tmp_path, worker, settings) as connect:
        given = connector("Source", source, topic="lines", **{"exactly.once.support": "required"})
        await_equal(connect, lambda: bool(rest(port, "/source/config", given)), True)
        given = connector("Sink", sink, topics="lines")
        await_equal(connect, lambda: bool(rest(port, "/sink/config", given)), True)
        await_equal(connect, lambda: sink.exists() and sink.read_text(), source.read_text())
        with source.open("a") as more:
            more.writelines(f"{line}\n" for line in ("between", "two", "workers"))
        connect.kill()

    with source.open("a") as more:
        more.write("the end\n")
    lines += ["between", "two", "workers", "the end"]
    with java_program(tmp_path, worker, settings) as connect:
        # This one reads its connectors from the worker's topics.
        await_equal(connect, lambda: states(port, "source") + states(port, "sink"), ["RUNNING"] * 2)
        # A sink may see a record again that it had not committed.
        await_equal(connect, lambda: list(dict.fromkeys(sink.read_text().splitlines())), lines)
    found = read_topic(bootstrap, "lines")
    assert [message.value().decode() for message in found] == lines


# MirrorMaker


def mirror_settings(west: str, east: str) -> dict[str, str]:
    often = {
        f"{what}.interval.seconds": "1"
        for what in (
            "refresh.topics",
            "refresh.groups",
            "sync.topic.configs",
            "sync.group.offsets",
            "emit.checkpoints",
            "emit.heartbeats",
        )
    }
    replicas = {
        f"{what}replication.factor": "1"
        for what in ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    }
    return {
        "clusters": "west,east",
        "west.bootstrap.servers": west,
        "east.bootstrap.servers": east,
        "west->east.enabled": "true",
        "east->west.enabled": "false",
        "east->west.emit.heartbeats.enabled": "false",
        "topics": "orders.*",
        "groups": "readers.*",
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": "0",
        # Worker settings of the one that writes to this cluster.
        "east.plugin.discovery": "service_load",
        "east.offset.flush.interval.ms": "500",
        **ONE_REPLICA,
        **replicas,
        **often,
    }


def fill(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        text = f"{number}".encode()
        headers = [("number", text)]
        producer.produce(topic, b"v" + text, b"k" + text, number % partitions, headers=headers)
    assert producer.flush(SECONDS_MAX) == 0


def contents(found: list[Message]) -> list[tuple[object, ...]]:
    return sorted(
        (m.partition(), m.offset(), m.key(), m.value(), m.timestamp(), m.headers()) for m in found
    )


def group(bootstrap: str, name: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False})


def kept_settings(bootstrap: str, topic: str) -> tuple[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_configs([resource])[resource].result()
    return found["retention.ms"].value, found["diskless.enable"].value


def test_mirror_maker(start: Callable[[str], Node], tmp_path: Path) -> None:
    """Topics with their settings, records with all fields, and the offsets of groups."""
    west, east = start("west").bootstrap, start("east").bootstrap
    partitions = {"orders": 3, "orders-diskless": 2}
    create_topic(west, "orders", 3, {"retention.ms": "86400000"})
    create_topic(west, "orders-diskless", 2, {"diskless.enable": "true"})
    for topic, count in partitions.items():
        fill(west, topic, 300, count)
    reader = group(west, "readers")
    ends = [TopicPartition("orders", 0, 100), TopicPartition("orders-diskless", 1, 150)]
    reader.commit(offsets=ends, asynchronous=False)
    reader.close()

    settings = mirror_settings(west, east)
    maker = "org.apache.kafka.connect.mirror.MirrorMaker"
    with java_program(tmp_path, maker, settings) as mirror:
        for topic, count in partitions.items():
            await_equal(mirror, lambda n=f"west.{topic}": partitions_of(east).get(n), count)
            expected = contents(read_topic(west, topic, count))
            await_equal(
                mirror,
                lambda n=f"west.{topic}", c=count: contents(read_topic(east, n, c)),
                expected,
            )
        assert kept_settings(east, "west.orders") == ("86400000", "false")
        assert kept_settings(east, "west.orders-diskless") == kept_settings(west, "orders-diskless")

        mirrored = group(east, "readers")
        wanted = [TopicPartition(f"west.{end.topic}", end.partition) for end in ends]
        await_equal(
            mirror, lambda: [p.offset for p in mirrored.committed(wanted, SECONDS_MAX)], [100, 150]
        )
        mirrored.close()

        create_topic(west, "orders-later")
        fill(west, "orders-later", 10, 1)
        await_equal(mirror, lambda: partitions_of(east).get("west.orders-later"), 1)
        await_equal(
            mirror,
            lambda: contents(read_topic(east, "west.orders-later")),
            contents(read_topic(west, "orders-later")),
        )
        await_equal(mirror, lambda: "heartbeats" in partitions_of(east), True)
