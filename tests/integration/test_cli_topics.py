"""``skylog topics``, ``configs``, ``cluster`` and ``version`` against a broker."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from skylog.testing import Broker
from tests.integration.cli_support import Cli, invoke


@pytest.fixture(scope="module")
def cli() -> Iterator[Cli]:
    with Broker() as broker:
        yield Cli(broker)


def test_topics_from_creation_to_deletion(cli: Cli) -> None:
    out = cli.ok("topics", "create", "life", "-p", "2", "--config", "retention.ms=60000")
    assert out == "life created: 2 partitions, replication factor 1\n"
    (described,) = cli.json("topics", "describe", "life")
    assert described["configs"] == {"retention.ms": "60000"}
    assert [row["partition"] for row in described["partitions"]] == [0, 1]
    assert {(row["leader"], row["first_offset"]) for row in described["partitions"]} == {(1, 0)}

    alter = ("topics", "alter", "life", "-p", "3", "--unset", "retention.ms")
    assert cli.ok(*alter, "--config", "segment.ms=70000") == "life altered\n"
    (described,) = cli.json("topics", "describe", "life")
    assert described["configs"] == {"segment.ms": "70000"}
    assert len(described["partitions"]) == 3

    assert cli.ok("topics", "delete", "life") == "life deleted\n"
    assert "life" not in cli.names()


def test_a_pipe_gets_aligned_text(cli: Cli) -> None:
    cli.ok("topics", "create", "aligned")
    lines = cli.ok("topics", "list").splitlines()
    assert re.split(r" {2,}", lines[0]) == ["TOPIC", "PARTITIONS", "REPLICAS", "ID"]
    (row,) = [line for line in lines if line.startswith("aligned ")]
    assert re.split(r" {2,}", row)[1:3] == ["1", "1"]


def test_an_existing_topic_is_an_error_unless_accepted(cli: Cli) -> None:
    cli.ok("topics", "create", "twice")
    error = cli.fails("topics", "create", "twice")
    assert "Topic 'twice' already exists" in error
    assert "--if-not-exists" in error
    assert cli.ok("topics", "create", "twice", "--if-not-exists") == "twice already exists\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "create", "good", "bad/name"), "INVALID_TOPIC_EXCEPTION"),
        (("topics", "create", "good", "-p", "0"), "INVALID_PARTITIONS"),
        (("topics", "create", "good", "-r", "3"), "INVALID_REPLICATION_FACTOR"),
        (("topics", "create", "good", "--config", "retention.ms=soon"), "retention.ms"),
        (("topics", "create", "good", "--config", "no.such=1"), "no.such"),
    ],
)
def test_no_topic_is_created_when_one_cannot_be(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    assert said in cli.fails(*arguments)
    assert "good" not in cli.names()


def test_a_dry_run_creates_nothing(cli: Cli) -> None:
    assert "could be created" in cli.ok("topics", "create", "dry", "--dry-run")
    assert "dry" not in cli.names()


def test_nothing_is_deleted_when_one_is_missing(cli: Cli) -> None:
    cli.ok("topics", "create", "kept")
    assert "topic gone does not exist" in cli.fails("topics", "delete", "kept", "gone")
    assert "kept" in cli.names()
    out = cli.ok("topics", "delete", "kept", "gone", "--if-exists")
    assert out == "kept deleted\ngone does not exist\n"


def test_nothing_is_altered_when_a_part_cannot_be(cli: Cli) -> None:
    cli.ok("topics", "create", "stays")
    cli.fails("topics", "alter", "stays", "-p", "4", "--config", "segment.ms=never")
    cli.fails("topics", "alter", "stays", "-p", "1", "--config", "segment.ms=70000")
    (described,) = cli.json("topics", "describe", "stays")
    assert (len(described["partitions"]), described["configs"]) == (1, {})


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create"),
        ("topics", "create", "x", "--config", "without-value"),
        ("topics", "create", "x", "--partitions", "many"),
        ("topics", "alter", "x"),
        ("configs", "set", "a=1"),
        ("configs", "set", "--topic", "x", "--broker", "1", "a=1"),
        ("configs", "set", "--topic", "x", "a"),
        ("topics", "creat"),
    ],
)
def test_bad_usage_is_code_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert "--help" in (error := cli.fails(*arguments, code=2)) or "-h" in error


def test_settings_of_a_topic(cli: Cli) -> None:
    cli.ok("topics", "create", "set")
    cli.ok("configs", "set", "--topic", "set", "retention.ms=60000", "cleanup.policy=compact")
    rows = {row["name"]: row for row in cli.json("configs", "describe", "--topic", "set")}
    assert rows["retention.ms"]["value"] == "60000"
    assert rows["retention.ms"]["source"] == "topic"
    assert "segment.ms" not in rows
    every = cli.json("configs", "describe", "--topic", "set", "--all")
    assert {"segment.ms", "retention.ms"} <= {row["name"] for row in every}

    cli.fails("configs", "set", "--topic", "set", "segment.ms=70000", "retention.ms=never")
    cli.ok("configs", "set", "--topic", "set", "segment.ms=70000", "--dry-run")
    cli.ok("configs", "unset", "--topic", "set", "retention.ms")
    (described,) = cli.json("topics", "describe", "set")
    assert described["configs"] == {"cleanup.policy": "compact"}


def test_settings_of_brokers(cli: Cli) -> None:
    cli.ok("configs", "set", "--cluster", "message.max.bytes=2000000")
    (row,) = cli.json("configs", "describe", "--broker", "1", "message.max.bytes")
    assert (row["value"], row["source"]) == ("2000000", "cluster")
    cli.ok("configs", "set", "--broker", "1", "message.max.bytes=3000000")
    (row,) = cli.json("configs", "describe", "--broker", "1", "message.max.bytes")
    assert (row["value"], row["source"]) == ("3000000", "broker")
    cli.ok("configs", "unset", "--broker", "1", "message.max.bytes")
    cli.ok("configs", "unset", "--cluster", "message.max.bytes")
    (row,) = cli.json("configs", "describe", "--broker", "1", "message.max.bytes")
    assert row["source"] == "default"


def test_levels_of_loggers(cli: Cli) -> None:
    cli.ok("configs", "set", "--loggers", "1", "root=WARN")
    (row,) = cli.json("configs", "describe", "--loggers", "1", "root")
    assert row["value"] == "WARN"
    cli.ok("configs", "set", "--loggers", "1", "root=INFO")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("configs", "describe", "--topic", "none"), "topic none does not exist"),
        (("configs", "describe", "--broker", "7"), "there is no broker 7; there are: 1"),
        (("configs", "describe", "--broker", "1", "no.such"), "no.such"),
        (("configs", "set", "--topic", "none", "retention.ms=1"), "topic none does not exist"),
        (("configs", "set", "--broker", "1", "node.id=2"), "node.id"),
        (("configs", "set", "--cluster", "mesage.max.bytes=1"), "has no setting mesage.max.bytes"),
        (("topics", "describe", "none"), "topic none does not exist"),
        (("topics", "alter", "none", "-p", "2"), "topic none does not exist"),
    ],
)
def test_missing_resources_are_named(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    assert said in cli.fails(*arguments)


def test_cluster(cli: Cli) -> None:
    found = cli.json("cluster")
    (node,) = found["nodes"]
    assert node == {"id": 1, "address": cli.broker.bootstrap, "rack": None, "controller": True}
    assert found["quorum"]["leader_id"] == 1
    assert [row["role"] for row in found["quorum"]["replicas"]] == ["voter"]
    features = {row["name"]: row["level"] for row in found["features"]}
    assert features["metadata.version"] > 0
    assert f"cluster {found['cluster_id']}, controller 1" in cli.ok("cluster")


def test_an_empty_cluster_says_what_to_do() -> None:
    with Broker() as broker:
        cli = Cli(broker)
        assert "`skylog topics create NAME`" in cli.run("topics", "list").stderr
        assert "`skylog consume TOPIC --group NAME`" in cli.run("groups", "list").stderr


def test_no_broker_listens() -> None:
    result = invoke("topics", "list", "--bootstrap", "127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no connection to 127.0.0.1:1: Connection refused" in result.stderr
    assert "Is one running at 127.0.0.1:1? Start one with `skylog server`" in result.stderr


@pytest.mark.parametrize(
    ("bootstrap", "said"), [("nowhere", "allowed is host:port"), (",", "is empty")]
)
def test_an_invalid_address(bootstrap: str, said: str) -> None:
    result = invoke("topics", "list", "--bootstrap", bootstrap)
    assert result.exit_code == 1
    assert said in result.stderr


def test_version() -> None:
    assert "compatible with Kafka 4.3.1" in invoke("version").stdout
    assert invoke("--version").stdout == invoke("version").stdout
