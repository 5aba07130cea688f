"""Kafka's tools on three racks: their output for diskless topics."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from skylog.testing.cluster import Cluster, ClusterNode
from tests.integration.racks_cluster import CALM, logged, metrics, racks_cluster, shown_everywhere
from tests.interop.support import JavaTools, java
from tests.waiting import until

pytestmark = pytest.mark.interop
LINE = re.compile(r"Partition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Kafka's tool does not know diskless.enable: here every topic is diskless.
    with racks_cluster(settings={**CALM, "log.diskless.enable": "true"}) as running:
        yield running


@pytest.fixture(scope="module")
def tool(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    log = tmp_path_factory.mktemp("tools") / "log"
    tools = JavaTools(cluster.bootstrap, log, lambda: shown_everywhere(cluster))
    yield tools
    tools.close()


def create(tool: JavaTools, topic: str, *more: str) -> None:
    tool("topics", "--create", "--topic", topic, *more)


def describe(tool: JavaTools, topic: str) -> list[tuple[str, list[str], list[str]]]:
    """Leader, replicas and ISR of each partition."""
    found = LINE.findall(tool("topics", "--describe", "--topic", topic).out)
    return [(leader, replicas.split(","), isr.split(",")) for _, leader, replicas, isr in found]


def test_describe_shows_the_truth(tool: JavaTools) -> None:
    # MRF-06, MRF-13, MRF-17, MRF-66
    create(tool, "foo", "--partitions", "3", "--replication-factor", "1")
    out = tool("topics", "--describe", "--topic", "foo").out
    assert "PartitionCount: 3\tReplicationFactor: 3" in out
    partitions = describe(tool, "foo")
    for leader, replicas, isr in partitions:
        assert isr == replicas
        assert leader == replicas[0]
    firsts = [int(replicas[0]) % 3 for _, replicas, _ in partitions]
    assert sorted(firsts) == [0, 1, 2], "the first replica goes round the racks"
    assert "diskless" not in tool("features", "describe").out  # MRF-01


def test_managed_placement_cannot_be_given(tool: JavaTools) -> None:
    base = ("topics", "--create", "--topic", "refused")
    given = tool.run(*base, "--replication-factor", "3")  # MRF-14
    assert given.code == 1
    assert (
        "replication factor is system-managed for diskless topics; "
        "use replicationFactor=-1 or replicationFactor=1"
    ) in given.text
    assigned = tool.run(*base, "--replica-assignment", "1:2:3")  # MRF-16
    assert assigned.code == 1
    text = (
        "replica assignments cannot be specified for diskless topics; "
        "placement is system-managed at creation time"
    )
    assert text in assigned.text
    assert "refused" not in tool("topics", "--list").lines


def test_partitions_are_added_by_racks(tool: JavaTools) -> None:
    # MRF-18, MRF-20, MRF-21
    create(tool, "grown", "--partitions", "2")
    before = describe(tool, "grown")
    assigned = tool.run(
        *("topics", "--alter", "--topic", "grown", "--partitions", "3"),
        *("--replica-assignment", "1:2:3,2:3:4,3:4:5"),
    )
    assert assigned.code == 1
    assert "replica assignments cannot be specified for diskless topics" in assigned.text
    assert describe(tool, "grown") == before
    tool("topics", "--alter", "--topic", "grown", "--partitions", "10")
    after = describe(tool, "grown")
    assert after[:2] == before
    assert all(len({int(one) % 3 for one in replicas}) == 3 for _, replicas, _ in after)


def test_reassignment(tool: JavaTools, cluster: Cluster, tmp_path: Path) -> None:
    # MRF-29, MRF-30
    create(tool, "moved")
    plan = tmp_path / "plan.json"

    def move(replicas: list[int]) -> str:
        partitions = [{"topic": "moved", "partition": 0, "replicas": replicas}]
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        tool("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
        return tool("reassign-partitions", "--reassignment-json-file", str(plan), "--verify").out

    assert "Reassignment of partition moved-0 is completed." in move([4, 5, 6])
    ((leader, replicas, in_sync),) = describe(tool, "moved")
    assert leader in replicas  # a previous leader continues
    assert replicas == in_sync == ["4", "5", "6"]
    assert "is completed" in move([1])
    assert "is completed" in move([1, 2, 3])
    with logged() as lines:
        assert "is completed" in move([1, 4, 3])
        until(lambda: "non-rack-aware placement" in lines(), "the warning")
    name = 'kafka_controller_diskless_rack_aware{partition="0",topic="moved"}'
    assert metrics(cluster)[name] == 0
    nobody = [{"topic": "moved", "partition": 0, "replicas": [99]}]
    plan.write_text(json.dumps({"version": 1, "partitions": nobody}))
    refused = tool.run("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    assert refused.code == 1


def test_elections_and_offsets(tool: JavaTools, tmp_path: Path) -> None:
    # MRF-22, MRF-74
    create(tool, "elected")
    ((first, replicas, _),) = describe(tool, "elected")
    tool("console-producer", "--topic", "elected", stdin="one\ntwo\n")
    plan = tmp_path / "plan.json"
    turned = [int(one) for one in (*replicas[1:], replicas[0])]
    partitions = [{"topic": "elected", "partition": 0, "replicas": turned}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tool("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    assert describe(tool, "elected")[0][0] == first
    ran = ("--election-type", "preferred", "--topic", "elected", "--partition", "0")
    tool("leader-election", *ran)
    assert describe(tool, "elected")[0][0] == replicas[1]
    tool("console-producer", "--topic", "elected", stdin="three\n")
    assert tool("get-offsets", "--topic", "elected").lines == ["elected:0:3"]
    for flag in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert "elected" not in tool("topics", "--describe", "--topic", "elected", flag).out


def test_a_consumer_of_librdkafka_in_a_zone(tool: JavaTools, cluster: Cluster) -> None:
    create(tool, "zoned", "--partitions", "3")
    tool("console-producer", "--topic", "zoned", stdin="".join(f"{n}\n" for n in range(50)))
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "zoned",
        "auto.offset.reset": "earliest",
        "client.id": "app,diskless_az=c",
        "client.rack": "c",
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["zoned"])
    found: list[bytes] = []

    def complete() -> bool:
        found.extend(message.value() for message in consumer.consume(50, 0.5))
        return len(found) >= 50

    until(complete, "all records")
    consumer.close()
    assert sorted(map(int, found)) == list(range(50))


def test_java_clients_in_a_zone(tool: JavaTools, cluster: Cluster) -> None:
    """They skip the unknown field, and use the brokers that they are given."""
    create(tool, "java", "--partitions", "3")
    sent = [str(number) for number in range(30)]
    tool(
        *("console-producer", "--topic", "java"),
        *("--command-property", "client.id=app,diskless_az=b"),
        stdin="\n".join(sent) + "\n",
    )
    served = {broker.node_id: bytes_out(broker) for broker in cluster.brokers}
    ran = tool(
        *("console-consumer", "--topic", "java", "--from-beginning", "--max-messages", "30"),
        *("--command-property", "client.rack=c"),
    )
    assert sorted(ran.lines, key=int) == sent
    grown = {
        broker.node_id for broker in cluster.brokers if bytes_out(broker) > served[broker.node_id]
    }
    assert grown <= {3, 6}, "only brokers of its rack served it"


def bytes_out(broker: ClusterNode) -> int:
    totals = broker.node._services.traffic.topics.get("java")
    return totals.bytes_out if totals else 0


def test_the_metadata_log_has_kafkas_records_only(
    cluster: Cluster, tool: JavaTools, tmp_path: Path
) -> None:
    # MRF-02
    create(tool, "logged")
    plan = tmp_path / "plan.json"
    moved = [{"topic": "logged", "partition": 0, "replicas": [4, 5, 6]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    tool("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    cluster.broker(4).stop()
    cluster.broker(4).start()
    (log,) = Path(cluster.controllers[0].directory).glob("__cluster_metadata-0/*0.log")
    command = java(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", str(log)),
        level="OFF",
    )
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = set(re.findall(r'"type":"([A-Z_]+)"', out))
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"} <= kinds
    assert "Could not read" not in out
