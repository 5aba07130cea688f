"""Kafka's command line tools against skylog: their output and their effects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.support import JavaTools, start_skylog

pytestmark = pytest.mark.interop

NewName = Callable[[str], str]
NewTopic = Callable[..., str]


def offsets(tool: JavaTools, topic: str, *arguments: str) -> dict[int, int]:
    lines = tool("get-offsets", "--topic", topic, *arguments).lines
    return {int(index): int(offset) for _, index, offset in (line.split(":") for line in lines)}


def write(tool: JavaTools, topic: str, lines: list[str], *arguments: str) -> None:
    tool("console-producer", "--topic", topic, *arguments, stdin="\n".join(lines) + "\n")


def read(tool: JavaTools, topic: str, count: int, *arguments: str) -> list[str]:
    ran = tool("console-consumer", "--topic", topic, "--max-messages", str(count), *arguments)
    assert f"Processed a total of {count} messages" in ran.err
    return ran.lines


# -- topics --------------------------------------------------------------------------------------


def test_topics(kafka_tool: JavaTools, name: NewName) -> None:
    topic = name("topic")
    create = ("topics", "--create", "--topic", topic)
    kafka_tool(*create, "--partitions", "3", "--config", "retention.ms=1234567")
    assert "already exists" in kafka_tool.run(*create).text
    assert kafka_tool.run(*create, "--if-not-exists").code == 0
    assert topic in kafka_tool("topics", "--list").lines
    assert topic not in kafka_tool("topics", "--list", "--exclude-internal", "--topic", "x").lines
    described = kafka_tool("topics", "--describe", "--topic", topic).lines
    assert "PartitionCount: 3\tReplicationFactor: 1" in described[0]
    assert "retention.ms=1234567" in described[0]
    for index, line in enumerate(described[1:4]):
        assert f"Partition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1" in line
    kafka_tool("topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in kafka_tool("topics", "--describe", "--topic", topic).out
    fewer = kafka_tool.run("topics", "--alter", "--topic", topic, "--partitions", "2")
    assert fewer.code == 1
    assert "5 partition" in fewer.text
    for flag in (
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--at-min-isr-partitions",
    ):
        ran = kafka_tool("topics", "--describe", "--topic", topic, flag)
        assert (topic in ran.out) == (flag == "--at-min-isr-partitions")
    overridden = kafka_tool("topics", "--describe", "--topics-with-overrides", "--topic", topic)
    assert topic in overridden.out
    kafka_tool("topics", "--delete", "--topic", topic)
    assert topic not in kafka_tool("topics", "--list").lines
    assert "does not exist" in kafka_tool.run("topics", "--delete", "--topic", topic).text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--topic", "a b"], "invalid"),
        (["--topic", "ok", "--partitions", "0"], "partitions"),
        (["--topic", "ok", "--replication-factor", "3"], "replicat"),
        (["--topic", "ok", "--config", "retention.ms=x"], "retention.ms"),
        (["--topic", "ok", "--config", "no.such=1"], "no.such"),
        (["--topic", "ok", "--replica-assignment", "2"], "2"),
    ],
)
def test_invalid_topics(kafka_tool: JavaTools, given: list[str], said: str) -> None:
    ran = kafka_tool.run("topics", "--create", *given)
    assert ran.code == 1
    assert said in ran.text


# -- configs -------------------------------------------------------------------------------------


def test_topic_configs(kafka_tool: JavaTools, topic: NewTopic) -> None:
    target = ("--entity-type", "topics", "--entity-name", topic())
    kafka_tool(
        "configs",
        "--alter",
        *target,
        "--add-config",
        "segment.ms=60000,cleanup.policy=[compact,delete]",
    )
    shown = kafka_tool("configs", "--describe", *target).out
    assert "segment.ms=60000" in shown
    assert "cleanup.policy=compact,delete" in shown
    assert "DYNAMIC_TOPIC_CONFIG:segment.ms=60000, DEFAULT_CONFIG" not in shown
    everything = kafka_tool("configs", "--describe", "--all", *target).out
    assert "retention.bytes=-1" in everything
    kafka_tool("configs", "--alter", *target, "--delete-config", "segment.ms")
    assert "segment.ms" not in kafka_tool("configs", "--describe", *target).out
    bad = kafka_tool.run("configs", "--alter", *target, "--add-config", "segment.ms=none")
    assert bad.code == 1
    assert "segment.ms" in bad.text


def test_broker_configs(kafka_tool: JavaTools) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    default = ("--entity-type", "brokers", "--entity-default")
    kafka_tool("configs", "--alter", *broker, "--add-config", "log.retention.ms=7200000")
    kafka_tool("configs", "--alter", *default, "--add-config", "log.retention.ms=3600000")
    shown = kafka_tool("configs", "--describe", *broker).out
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=7200000" in shown
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=3600000" in shown
    assert "log.retention.ms=3600000" in kafka_tool("configs", "--describe", *default).out
    assert "num.partitions=" in kafka_tool("configs", "--describe", "--all", *broker).out
    refused = kafka_tool.run("configs", "--alter", *broker, "--add-config", "node.id=5")
    assert refused.code == 1
    for target in (broker, default):
        kafka_tool("configs", "--alter", *target, "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in kafka_tool("configs", "--describe", *broker).out


def test_loggers(kafka_tool: JavaTools) -> None:
    target = ("--entity-type", "broker-loggers", "--entity-name", "1")
    shown = kafka_tool("configs", "--describe", *target).lines
    loggers = dict(re.findall(r"^\s*(\S+)=(\w+) ", "\n".join(shown), re.MULTILINE))
    assert loggers
    chosen = min(loggers)
    kafka_tool("configs", "--alter", *target, "--add-config", f"{chosen}=ERROR")
    assert f"{chosen}=ERROR" in kafka_tool("configs", "--describe", *target).out
    kafka_tool("configs", "--alter", *target, "--add-config", f"{chosen}={loggers[chosen]}")


def test_quotas(kafka_tool: JavaTools, name: NewName) -> None:
    user, client = name("user"), name("client")
    pair = (
        "--entity-type",
        "users",
        "--entity-name",
        user,
        "--entity-type",
        "clients",
        "--entity-name",
        client,
    )
    kafka_tool(
        "configs",
        "--alter",
        *pair,
        "--add-config",
        "producer_byte_rate=1048576,request_percentage=50",
    )
    shown = kafka_tool("configs", "--describe", *pair).out
    assert "producer_byte_rate=1048576.0" in shown
    assert "request_percentage=50.0" in shown
    everyone = ("--entity-type", "clients", "--entity-default")
    kafka_tool("configs", "--alter", *everyone, "--add-config", "consumer_byte_rate=104857600")
    assert "consumer_byte_rate=1.048576E8" in kafka_tool("configs", "--describe", *everyone).out
    ip = ("--entity-type", "ips", "--entity-name", "127.0.0.77")
    kafka_tool("configs", "--alter", *ip, "--add-config", "connection_creation_rate=100")
    assert "connection_creation_rate=100.0" in kafka_tool("configs", "--describe", *ip).out
    kafka_tool(
        "configs", "--alter", *pair, "--delete-config", "producer_byte_rate,request_percentage"
    )
    kafka_tool("configs", "--alter", *everyone, "--delete-config", "consumer_byte_rate")
    kafka_tool("configs", "--alter", *ip, "--delete-config", "connection_creation_rate")
    assert "producer_byte_rate" not in kafka_tool("configs", "--describe", *pair).out


def test_users(kafka_tool: JavaTools, name: NewName) -> None:
    user = ("--entity-type", "users", "--entity-name", name("user"))
    kafka_tool(
        "configs",
        "--alter",
        *user,
        "--add-config",
        "SCRAM-SHA-256=[iterations=4096,password=secret]",
    )
    kafka_tool("configs", "--alter", *user, "--add-config", "SCRAM-SHA-512=[password=secret]")
    shown = kafka_tool("configs", "--describe", *user).out
    assert "SCRAM-SHA-256=iterations=4096" in shown
    assert "SCRAM-SHA-512=iterations=4096" in shown
    # Both at once would name a user twice, which Kafka refuses.
    kafka_tool("configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    kafka_tool("configs", "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM" not in kafka_tool("configs", "--describe", *user).out


def test_group_and_metrics_configs(kafka_tool: JavaTools, name: NewName) -> None:
    group = ("--entity-type", "groups", "--entity-name", name("group"))
    kafka_tool("configs", "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in kafka_tool("configs", "--describe", *group).out
    metrics = name("metrics")
    kafka_tool(
        "client-metrics", "--alter", "--name", metrics, "--metrics", "a.b", "--interval", "5000"
    )
    assert metrics in kafka_tool("client-metrics", "--list").lines
    assert "interval.ms=5000" in kafka_tool("client-metrics", "--describe", "--name", metrics).out
    kafka_tool("client-metrics", "--delete", "--name", metrics)
    assert metrics not in kafka_tool("client-metrics", "--list").lines


# -- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console(kafka_tool: JavaTools, topic: NewTopic, codec: str) -> None:
    subject = topic()
    sent = [f"h:1,i:2\tkey{i}\tvalue {i}" for i in range(100)]
    properties = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    write(kafka_tool, subject, sent, "--compression-codec", codec, *properties)
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
    assert read(kafka_tool, subject, 100, "--from-beginning", *shown) == sent
    tail = read(kafka_tool, subject, 2, "--partition", "0", "--offset", "98", *shown)
    assert tail == sent[98:]
    committed = ("--isolation-level", "read_committed", "--from-beginning")
    assert len(read(kafka_tool, subject, 100, *committed)) == 100


def test_offsets(kafka_tool: JavaTools, topic: NewTopic, tmp_path: Path) -> None:
    subject, empty = topic(), topic(2)
    write(kafka_tool, subject, [str(i) for i in range(10)])
    for spec, offset in [
        ("-1", 10),
        ("latest", 10),
        ("-2", 0),
        ("earliest", 0),
        ("-4", 0),
        ("0", 0),
    ]:
        assert offsets(kafka_tool, subject, "--time", spec) == {0: offset}
    # All lines may have the same millisecond: then the first of them is the latest.
    (latest,) = offsets(kafka_tool, subject, "--time", "max-timestamp").values()
    assert 0 <= latest < 10
    for spec in ("-5", "-6", "99999999999999"):
        assert offsets(kafka_tool, subject, "--time", spec) == {}
    assert offsets(kafka_tool, empty, "--time", "-3") == {}
    assert offsets(kafka_tool, empty) == {0: 0, 1: 0}
    ran = kafka_tool("get-offsets", "--topic-partitions", f"{subject}:0,{empty}:1")
    assert sorted(ran.lines) == sorted([f"{subject}:0:10", f"{empty}:1:0"])
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": subject, "partition": 0, "offset": 4},
                    {"topic": empty, "partition": 1, "offset": 9},
                ],
            }
        )
    )
    deleted = kafka_tool("delete-records", "--offset-json-file", str(plan)).out
    assert f"{subject}-0\tlow_watermark: 4" in deleted
    assert "OffsetOutOfRange" in deleted
    assert offsets(kafka_tool, subject, "--time", "earliest") == {0: 4}
    assert read(kafka_tool, subject, 6, "--from-beginning") == [str(i) for i in range(4, 10)]


def test_performance_tools(kafka_tool: JavaTools, topic: NewTopic, name: NewName) -> None:
    subject, where = topic(3), ("--bootstrap-server", kafka_tool.bootstrap)
    ran = kafka_tool(
        "producer-perf",
        "--topic",
        subject,
        "--num-records",
        "20000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
        *where,
        server=False,
    )
    assert "20000 records sent" in ran.out
    assert sum(offsets(kafka_tool, subject).values()) == 20_000
    ran = kafka_tool(
        "consumer-perf", "--topic", subject, "--num-records", "20000", "--group", name("perf")
    )
    assert re.search(r", 20000, ", ran.out), ran.out


def test_verifiable_clients(kafka_tool: JavaTools, topic: NewTopic, name: NewName) -> None:
    """Every acknowledged record is consumed and committed by the group."""
    subject, group = topic(2), name("group")
    ran = kafka_tool.alone(
        "verifiable-producer",
        "--topic",
        subject,
        "--max-messages",
        "500",
        "--acks",
        "-1",
        "--value-prefix",
        "7",
        "--repeating-keys",
        "5",
    )
    events = [json.loads(line) for line in ran.lines]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert len(sent) == 500
    ran = kafka_tool(
        "verifiable-consumer",
        "--topic",
        subject,
        "--group-id",
        group,
        "--max-messages",
        "500",
        "--group-protocol",
        "classic",
        "--reset-policy",
        "earliest",
        "--verbose",
    )
    events = [json.loads(line) for line in ran.lines]
    seen = [event for event in events if event["name"] == "record_data"]
    assert sorted(e["value"] for e in seen) == sorted(e["value"] for e in sent)
    assert {(e["partition"], e["offset"]) for e in seen} == {
        (e["partition"], e["offset"]) for e in sent
    }
    commits = [event for event in events if event["name"] == "offsets_committed"]
    assert all(commit["success"] for commit in commits)
    assert commits


def test_end_to_end_latency(kafka_tool: JavaTools, topic: NewTopic) -> None:
    ran = kafka_tool(
        "end-to-end",
        "--topic",
        topic(),
        "--num-records",
        "20",
        "--producer-acks",
        "all",
        "--record-size",
        "100",
    )
    assert "Percentiles" in ran.out


# -- groups --------------------------------------------------------------------------------------


def test_consumer_groups(
    kafka_tool: JavaTools, topic: NewTopic, name: NewName, tmp_path: Path
) -> None:
    subject, group = topic(3), name("group")
    for index in range(3):
        write(
            kafka_tool,
            subject,
            [f"{index}{i}" for i in range(4)],
            "--reader-property",
            "parse.key=false",
        )
    total = sum(offsets(kafka_tool, subject).values())
    read(kafka_tool, subject, total, "--group", group, "--from-beginning")
    of_group = ("consumer-groups", "--group", group)

    def positions() -> dict[int, tuple[str, str]]:
        rows = re.findall(
            rf"^{group}\s+{subject}\s+(\d+)\s+(\S+)\s+\d+\s+(\S+)",
            kafka_tool(*of_group, "--describe").out,
            re.MULTILINE,
        )
        return {int(index): (current, lag) for index, current, lag in rows}

    assert group in kafka_tool("consumer-groups", "--list").lines
    assert re.search(rf"{group}\s+Empty", kafka_tool("consumer-groups", "--list", "--state").out)
    assert re.search(rf"{group}\s+Classic\s+consumer", kafka_tool("groups", "--list").out)
    ends = {index: str(offset) for index, offset in offsets(kafka_tool, subject).items()}
    assert positions() == {index: (end, "0") for index, end in ends.items()}
    assert (
        "has no active members"
        in kafka_tool(*of_group, "--describe", "--members", "--verbose").text
    )
    assert re.search(r"\(1\)\s+-\s+Empty\s+0", kafka_tool(*of_group, "--describe", "--state").out)
    reset = (*of_group, "--reset-offsets", "--topic", subject)
    assert kafka_tool(*reset, "--to-earliest", "--dry-run").out.count(subject) == 3
    assert positions()[0] == (ends[0], "0")
    kafka_tool(*reset, "--to-earliest", "--execute")
    assert positions() == {index: ("0", end) for index, end in ends.items()}
    for how, expected in [
        (["--to-latest"], ends),
        (["--to-datetime", "2020-01-01T00:00:00.000"], dict.fromkeys(ends, "0")),
        (["--shift-by", "2"], {index: str(min(2, int(end))) for index, end in ends.items()}),
        (["--by-duration", "P1D"], dict.fromkeys(ends, "0")),
        (["--to-offset", "1"], {index: str(min(1, int(end))) for index, end in ends.items()}),
        (["--to-current"], {index: str(min(1, int(end))) for index, end in ends.items()}),
    ]:
        kafka_tool(*reset, *how, "--execute")
        assert {index: current for index, (current, _) in positions().items()} == expected, how
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{subject},0,0\n")
    kafka_tool(*of_group, "--reset-offsets", "--from-file", str(plan), "--execute")
    assert positions()[0][0] == "0"
    forgotten = kafka_tool(*of_group, "--delete-offsets", "--topic", f"{subject}:0")
    assert "Successful" in forgotten.out
    assert 0 not in positions()
    assert "successful" in kafka_tool(*of_group, "--delete").out
    assert "GroupIdNotFound" in kafka_tool(*of_group, "--delete").out
    assert group not in kafka_tool("consumer-groups", "--list").lines


# -- the cluster ---------------------------------------------------------------------------------


def test_the_cluster(kafka_tool: JavaTools, topic: NewTopic) -> None:
    subject = topic(2)
    assert re.search(r"Cluster ID: [\w-]{22}", kafka_tool("cluster", "cluster-id").out)
    port = kafka_tool.bootstrap.rsplit(":", 1)[1]
    assert re.search(
        rf"1\s+\S+\s+{port}\s+null\s+unfenced\s+broker", kafka_tool("cluster", "list-endpoints").out
    )
    status = kafka_tool("metadata-quorum", "describe", "--status").out
    assert re.search(r"LeaderId:\s+1\b", status)
    assert re.search(r"MaxFollowerLag:\s+0\b", status)
    replication = kafka_tool("metadata-quorum", "describe", "--replication", "--human-readable").out
    assert re.search(r"^1\s.*Leader", replication, re.MULTILINE)
    features = kafka_tool("features", "describe").out
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4.3-IV0", features)
    assert re.search(r"kraft.version\s.*FinalizedVersionLevel: 1", features)
    versions = kafka_tool("api-versions").out
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", versions)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", versions)
    dirs = json.loads(kafka_tool("log-dirs", "--describe", "--topic-list", subject).lines[-1])
    (directory,) = dirs["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert {p["partition"] for p in directory["partitions"]} == {f"{subject}-0", f"{subject}-1"}


def test_elections_and_reassignments(
    kafka_tool: JavaTools, topic: NewTopic, tmp_path: Path
) -> None:
    subject = topic(2)
    ran = kafka_tool(
        "leader-election", "--election-type", "preferred", "--topic", subject, "--partition", "0"
    )
    assert f"Valid replica already elected for partitions {subject}-0" in ran.out
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {"version": 1, "partitions": [{"topic": subject, "partition": 0, "replicas": [1]}]}
        )
    )
    given = ("reassign-partitions", "--reassignment-json-file", str(plan))
    assert "Successfully started" in kafka_tool(*given, "--execute").out
    assert "Successfully started" in kafka_tool(*given, "--execute", "--throttle", "100000").out
    verified = kafka_tool(*given, "--verify").out
    assert f"Reassignment of partition {subject}-0 is completed" in verified
    assert "No partition reassignments found" in kafka_tool("reassign-partitions", "--list").out
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(plan.read_text().replace("[1]", "[2]"))
    ran = kafka_tool.run(
        "reassign-partitions", "--reassignment-json-file", str(elsewhere), "--execute"
    )
    assert "Unknown broker id 2" in ran.text
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": subject}]}))
    ran = kafka_tool(
        "reassign-partitions",
        "--topics-to-move-json-file",
        str(topics),
        "--broker-list",
        "1",
        "--generate",
    )
    assert "Proposed partition reassignment configuration" in ran.out
    assert "Cancel" not in kafka_tool(*given, "--cancel").err


def test_producers_are_shown(kafka_tool: JavaTools, topic: NewTopic) -> None:
    subject = topic()
    write(kafka_tool, subject, ["a", "b"])
    ran = kafka_tool("transactions", "describe-producers", "--topic", subject, "--partition", "0")
    assert re.search(r"^\d+\s+0\s+-1\s+1\s", ran.out, re.MULTILINE), ran.out
    assert kafka_tool("transactions", "find-hanging", "--broker-id", "1").lines[1:] == []


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node with an authorizer; the tests are super users."""
    node = start_skylog(
        tmp_path_factory.mktemp("guarded"),
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    yield node.bootstrap
    node.process.stop()


def test_acls(kafka_tool: JavaTools, guarded: str) -> None:
    def acls(*arguments: str) -> str:
        return kafka_tool("acls", "--bootstrap-server", guarded, *arguments, server=False).out

    acls("--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    acls(
        "--add", "--allow-principal", "User:bob", "--consumer", "--topic", "orders", "--group", "g"
    )
    prefixed = ("--topic", "or", "--resource-pattern-type", "prefixed")
    acls(
        "--add",
        "--deny-principal",
        "User:eve",
        "--operation",
        "All",
        "--deny-host",
        "10.0.0.1",
        *prefixed,
    )
    acls("--add", "--allow-principal", "User:ops", "--operation", "Alter", "--cluster")
    shown = acls("--list", "--topic", "orders")
    for operation in ("WRITE", "DESCRIBE", "CREATE"):
        assert (
            f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)" in shown
        )
    assert "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)" in shown
    assert "User:eve" not in shown
    matching = acls("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "(principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY)" in matching
    assert "operation=ALTER" in acls("--list", "--cluster")
    assert "User:bob" in acls("--list", "--group", "g")
    assert "User:alice" in acls("--list", "--principal", "User:alice")
    acls("--remove", "--force", "--topic", "orders")
    acls(
        "--remove",
        "--force",
        "--deny-principal",
        "User:eve",
        "--operation",
        "All",
        "--deny-host",
        "10.0.0.1",
        *prefixed,
    )
    left = acls("--list")
    assert "User:eve" not in left
    assert "orders" not in left
    assert "User:ops" in left


def test_acls_need_an_authorizer(kafka_tool: JavaTools) -> None:
    ran = kafka_tool.run("acls", "--list")
    assert "SecurityDisabledException" in ran.text
