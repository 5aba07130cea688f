"""Groups of the consumer protocol with Kafka's own consumer and tools, and Kafka's own records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.hashing import metadata_hash
from skylog.groups.consumer.world import FixedTopics, World
from skylog.groups.machine import GroupMachine
from skylog.groups.records import GroupRecordCodec
from skylog.groups.settings import GroupSettings
from skylog.wire.apis import ApiKey
from skylog.wire.batch import split_batches
from skylog.wire.records import decode_records
from tests.interop.clients import await_that
from tests.interop.scenarios.consumer_groups import joining, ready
from tests.interop.support import JavaTools, Node, start_kafka
from tests.interop.wire import Side

pytestmark = pytest.mark.interop
NewTopic = Callable[..., str]
NewName = Callable[[str], str]
CONSUMER = ("--command-property", "group.protocol=consumer")


@pytest.fixture
def member(bootstrap: str, topic: NewTopic, name: NewName) -> Iterator[Any]:
    """A member of librdkafka that owns all partitions of a topic."""

    class Joined:
        topic_name = topic(3)
        group = name("group")
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "group.instance.id": "instance",
                "group.remote.assignor": "range",
            }
        )

        def has(self, count: int) -> bool:
            self.consumer.poll(0.1)
            return len(self.consumer.assignment()) == count

    joined = Joined()
    joined.consumer.subscribe([joined.topic_name])
    await_that(lambda: joined.has(3), "it owns everything")
    yield joined
    joined.consumer.close()


def columns(out: str) -> list[dict[str, str]]:
    """The rows of a table by its headers."""
    lines = [line.split() for line in out.splitlines() if line.strip()]
    headers = next(line for line in lines if line[0] == "GROUP")
    return [dict(zip(headers, line, strict=False)) for line in lines[lines.index(headers) + 1 :]]


def test_kafkas_consumer(kafka_tool: JavaTools, topic: NewTopic, name: NewName) -> None:
    subject, group = topic(2), name("group")
    kafka_tool("console-producer", "--topic", subject, stdin="one\ntwo\nthree\n")
    read = ("console-consumer", "--topic", subject, "--group", group, "--from-beginning")
    ran = kafka_tool(*read, "--max-messages", "3", "--timeout-ms", "60000", *CONSUMER)
    assert sorted(ran.lines) == ["one", "three", "two"]
    listed = kafka_tool("consumer-groups", "--list", "--type").out
    assert re.search(rf"{group}\s+Consumer", listed)
    kafka_tool("console-producer", "--topic", subject, stdin="four\n")
    again = kafka_tool(*read, "--max-messages", "1", "--timeout-ms", "60000", *CONSUMER)
    assert again.lines == ["four"], "it goes on where it was"
    kafka_tool("consumer-groups", "--delete", "--group", group)
    assert group not in kafka_tool("consumer-groups", "--list").lines


def test_kafkas_consumer_by_pattern(kafka_tool: JavaTools, topic: NewTopic, name: NewName) -> None:
    subject = topic(1)
    kafka_tool("console-producer", "--topic", subject, stdin="one\n")
    read = ("console-consumer", "--include", f"{subject}.*", "--group", name("group"))
    ran = kafka_tool(
        *read, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000", *CONSUMER
    )
    assert ran.lines == ["one"]


def test_the_tool_shows_all_of_a_group(kafka_tool: JavaTools, member: Any) -> None:
    group = ("consumer-groups", "--describe", "--group", member.group)
    [line] = columns(kafka_tool(*group, "--members", "--verbose").out)
    assert line["GROUP-INSTANCE-ID"] == "instance"
    assert line["#PARTITIONS"] == "3"
    assert (line["CURRENT-EPOCH"], line["TARGET-EPOCH"]) == ("2", "2")
    assert line["CURRENT-ASSIGNMENT"] == line["TARGET-ASSIGNMENT"] == f"{member.topic_name}:0,1,2"
    assert re.search(r"\(1\)\s+range\s+Stable\s+1", kafka_tool(*group, "--state").out)
    verbose = kafka_tool(*group, "--state", "--verbose").out
    assert re.search(r"range\s+Stable\s+2\s+2\s+1", verbose), verbose
    offsets = kafka_tool(*group, "--offsets", "--verbose").out
    assert len([row for row in offsets.splitlines() if member.topic_name in row]) == 3
    assert re.search(rf"{member.group}\s+Consumer\s+consumer", kafka_tool("groups", "--list").out)
    refused = kafka_tool.run("consumer-groups", "--delete", "--group", member.group)
    assert "is not empty" in refused.text or "GroupNotEmpty" in refused.text


def test_kafkas_tool_changes_a_groups_settings(kafka_tool: JavaTools, member: Any) -> None:
    entity = ("configs", "--entity-type", "groups", "--entity-name", member.group)
    kafka_tool(*entity, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in kafka_tool(*entity, "--describe").out
    refused = kafka_tool.run(*entity, "--alter", "--add-config", "consumer.session.timeout.ms=1")
    assert "group.consumer.min.session.timeout.ms" in refused.text


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = start_kafka(tmp_path_factory.mktemp("kafka"))
    yield node
    node.process.stop()


def stored(side: Side) -> list[tuple[bytes | None, bytes | None]]:
    """All records of Kafka's offsets topic."""
    topic_id, found = side.topic_id("__consumer_offsets"), list[tuple[bytes | None, bytes | None]]()
    for partition in range(4):
        asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 10_000_000}
        answer = side.quiet(
            ApiKey.FETCH, 16, replica_id=-1, max_wait_ms=100, min_bytes=0, max_bytes=10_000_000,
            topics=[{"topic_id": topic_id, "partitions": [asked]}],
        )  # fmt: skip
        for batch in split_batches(answer.responses[0].partitions[0].records):
            found += [(record.key, record.value) for record in decode_records(batch)]
    return found


def test_kafkas_records_are_ours(kafka: Node, tmp_path: Path) -> None:
    """We read what Kafka writes, and would write the same, including the hash of the topics."""
    side = Side(kafka.address, "records")
    try:
        group, topic = side.name("group"), side.create(partitions=3)
        ready(side, group)
        joined = joining(side, group, "a", topic, instance_id="i", rack_id="r")
        joining(side, group, "b", topic, server_assignor="range")
        records = stored(side)
        topics = FixedTopics({topic: (side.topic_id(topic), 3)})
    finally:
        side.close()
    machine, codec = GroupMachine(GroupSettings(), World(topics)), GroupRecordCodec()
    written = 0
    for offset, pair in enumerate(records):
        record = codec.decode(*pair)
        if record is not None:
            machine.apply(record, offset)
            assert codec.encode(record) == pair
            written += 1
    assert written >= 8
    found = machine.group(group)
    assert isinstance(found, ConsumerGroup)
    assert found.metadata_hash == metadata_hash([topic], topics)
    assert found.members["a"].epoch == joined.member_epoch
    assert found.members["a"].rack_id == "r"
    assert found.static_members == {"i": "a"}
    assert found.assignors == {"range": 1}
    assert (found.epoch, found.target_epoch) == (3, 3)
    assert sorted(sum(map(len, target.values())) for target in found.target.values()) == [1, 2]
