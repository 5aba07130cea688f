"""``skylog produce``, ``consume``, ``groups`` and ``perf`` against a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.client.partitioner import partition_of_key
from skylog.testing import Broker
from tests.integration.cli_support import Cli


@pytest.fixture(scope="module")
def cli() -> Iterator[Cli]:
    with Broker() as broker:
        yield Cli(broker)


def records(cli: Cli, topic: str, *more: str) -> list[dict[str, Any]]:
    """The output of consume from the beginning to the end."""
    start = () if {"--from", "--group"} & set(more) else ("--from-beginning",)
    out = cli.ok("consume", topic, *start, "--exit-at-end", "--json", *more)
    return [json.loads(line) for line in out.splitlines()]


def test_lines_become_records(cli: Cli) -> None:
    sent = cli.json("produce", "lines", text="one\ntwo\r\n\nlast without an end")
    assert sent == {
        "topic": "lines",
        "records": 4,
        "partitions": [{"partition": 0, "records": 4, "last_offset": 3}],
    }
    out = cli.ok("consume", "lines", "--from-beginning", "--exit-at-end")
    assert out == "one\ntwo\n\nlast without an end\n"


def test_what_was_sent_is_reported_on_standard_error(cli: Cli) -> None:
    result = cli.run("produce", "said", text="x\n")
    assert result.stdout == ""
    assert result.stderr == "1 record sent to said: partition 0 up to offset 0\n"
    assert cli.run("produce", "said", "--quiet", text="x\n").output == ""


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_compression(cli: Cli, codec: str) -> None:
    topic = f"keyed-{codec}"
    cli.ok("topics", "create", topic, "-p", "3")
    options = ("-k", ":", "--null", "NULL", "-H", "a=1", "-H", "b=", "--compression", codec)
    cli.ok("produce", topic, *options, text="k1:v1\nk2:v:2\nk3:NULL\n")
    found = {record["key"]: record for record in records(cli, topic)}
    assert {key: record["value"] for key, record in found.items()} == {
        "k1": "v1",
        "k2": "v:2",
        "k3": None,
    }
    for key, record in found.items():
        assert record["partition"] == partition_of_key(key.encode(), 3)
        assert record["headers"] == [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acknowledgements(cli: Cli, acks: str) -> None:
    cli.ok("topics", "create", f"acks-{acks}")
    cli.ok("produce", f"acks-{acks}", "--acks", acks, text="x\n")
    found: list[dict[str, Any]] = []
    while not found:  # a record without acknowledgement may be stored later
        found = records(cli, f"acks-{acks}")
    assert [record["value"] for record in found] == ["x"]


def test_a_file_of_bytes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\xff\xfe\nplain\n")
    cli.ok("produce", "file", "--file", str(tmp_path / "in"))
    raw, plain = records(cli, "file")
    assert raw["value_base64"] == "//4="
    assert plain["value"] == "plain"


def test_a_line_without_its_key_ends_the_sending(cli: Cli) -> None:
    error = cli.fails("produce", "broken", "-k", ":", text="a:1\nno key\nb:2\n")
    assert "line 2 has no key separator ':'" in error
    assert [record["key"] for record in records(cli, "broken")] == ["a"]


def test_a_record_that_the_topic_refuses(cli: Cli) -> None:
    cli.ok("topics", "create", "narrow", "--config", "max.message.bytes=1000")
    error = cli.fails("produce", "narrow", text="x" * 2000)
    assert "after 0 stored records" in error
    assert "max.message.bytes of the topic is the limit" in error
    cli.ok("configs", "set", "--topic", "narrow", "max.message.bytes=4000000")
    cli.ok("produce", "narrow", text="x" * 2_000_000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("produce", "none", "--file", "no/such/file"), "No such file"),
        (("produce", "few", "--partition", "5"), "no 5"),
        (("consume", "none"), "topic none does not exist; create it"),
        (("consume", "few", "--partition", "5"), "there is no 5"),
        (("consume", "few", "--from", "99", "-p", "0"), "OFFSET_OUT_OF_RANGE"),
        (("groups", "describe", "none"), "group none does not exist"),
        (("groups", "delete", "none"), "group none does not exist"),
        (
            ("groups", "reset-offsets", "none", "--all-topics", "--to", "latest"),
            "no committed offset",
        ),
        (
            ("groups", "reset-offsets", "none", "--topic", "few", "--shift", "1"),
            "no committed offset",
        ),
        (("groups", "reset-offsets", "g", "--topic", "few:9", "--to", "0"), "no partition 9"),
        (("perf", "consume", "empty"), "has 0 records"),
    ],
)
def test_errors_say_what_is_wrong(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    cli.ok("topics", "create", "few", "empty", "--if-not-exists")
    assert said in cli.fails(*arguments, text="x\n")
    assert "none" not in cli.names()


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce", "bad", "--acks", "1", "--idempotent"),
        ("produce", "bad", "--acks", "2"),
        ("produce", "bad", "--compression", "rar"),
        ("produce", "bad", "--key-separator", ""),
        ("produce", "bad", "--header", "novalue"),
        ("consume", "bad", "--from", "yesterday"),
        ("consume", "bad", "--from", "0", "--from-beginning"),
        ("consume", "bad", "--from", "0", "--group", "g"),
        ("consume", "bad", "--print", "value,colour"),
        ("consume", "bad", "--max", "0"),
        ("groups", "reset-offsets", "g", "--to", "latest"),
        ("groups", "reset-offsets", "g", "--all-topics"),
        ("groups", "reset-offsets", "g", "--all-topics", "--to", "0", "--shift", "1"),
        ("groups", "reset-offsets", "g", "--topic", "t:x", "--to", "0"),
        ("perf", "produce", "bad", "--records", "0"),
    ],
)
def test_bad_usage_changes_nothing(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.fails(*arguments, code=2, text="x\n")
    assert "bad" not in cli.names()


def test_where_reading_begins(cli: Cli) -> None:
    cli.ok("topics", "create", "starts", "-p", "2")
    for partition in ("0", "1"):
        lines = "".join(f"{partition}{number}\n" for number in range(5))
        cli.ok("produce", "starts", "--partition", partition, text=lines)

    def values(*where: str) -> list[str]:
        return sorted(record["value"] for record in records(cli, "starts", *where))

    assert len(values()) == 10
    assert values("--from", "latest") == []
    assert values("--from", "-2") == ["03", "04", "13", "14"]
    assert values("--from", "4") == ["04", "14"]
    assert values("--from", "3", "--partition", "1") == ["13", "14"]
    assert len(values("--from", "-1h")) == len(values("--from", "1970-01-01")) == 10
    assert values("--from", "2999-01-01") == []
    assert len(values("--max", "3")) == 3


def test_what_is_printed_of_a_record(cli: Cli) -> None:
    cli.ok("produce", "printed", "-k", "=", "-H", "h=1", text="k=v\n")
    fields = "partition,offset,headers,key,value"
    end = ("--from-beginning", "--exit-at-end")
    out = cli.ok("consume", "printed", *end, "--print", fields, "--separator", "|")
    assert out == "0|0|h=1|k|v\n"
    (line,) = cli.ok("consume", "printed", *end, "--print", "timestamp,value").splitlines()
    assert line.endswith("Z\tv")


def lags(cli: Cli, group: str) -> list[tuple[int, int, int]]:
    (described,) = cli.json("groups", "describe", group)
    return [(row["partition"], row["committed"], row["lag"]) for row in described["partitions"]]


def test_a_group_resumes_where_it_stopped(cli: Cli) -> None:
    cli.ok("produce", "grouped", text="".join(f"{number}\n" for number in range(10)))
    options = ("consume", "grouped", "--group", "readers")
    assert cli.ok(*options, "--from-beginning", "--max", "4") == "0\n1\n2\n3\n"
    assert lags(cli, "readers") == [(0, 4, 6)]
    assert cli.ok(*options, "--exit-at-end") == "4\n5\n6\n7\n8\n9\n"
    assert lags(cli, "readers") == [(0, 10, 0)]

    (listed,) = [row for row in cli.json("groups", "list") if row["group"] == "readers"]
    assert (listed["state"], listed["protocol"]) == ("Empty", "consumer")
    assert "readers: Classic group, Empty, 0 members, lag 0" in cli.ok(
        "groups", "describe", "readers"
    )
    assert cli.json("groups", "list", "--state", "Stable") == []


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (("--to", "earliest"), 0),
        (("--to", "latest"), 10),
        (("--to", "current"), 5),
        (("--to", "7"), 7),
        (("--to", "700"), 10),
        (("--to", "-1d"), 0),
        (("--to", "2999-12-31T23:59:59Z"), 10),
        (("--shift", "-2"), 3),
        (("--shift", "-20"), 0),
        (("--shift", "20"), 10),
    ],
)
def test_offsets_of_a_group_are_moved(cli: Cli, where: tuple[str, ...], offset: int) -> None:
    cli.ok("topics", "create", "moved", "--if-not-exists")
    missing = 10 - len(records(cli, "moved"))
    cli.ok("produce", "moved", text="x\n" * missing)
    reset = ("groups", "reset-offsets", "mover")
    cli.ok(*reset, "--topic", "moved:0", "--to", "5", "--execute")

    planned = cli.json(*reset, "--all-topics", *where)
    expected = {"topic": "moved", "partition": 0, "old_offset": 5, "new_offset": offset}
    assert planned == {"executed": False, "partitions": [expected]}
    assert lags(cli, "mover") == [(0, 5, 5)]
    assert cli.json(*reset, "--all-topics", *where, "--execute")["executed"]
    assert lags(cli, "mover") == [(0, offset, 10 - offset)]


def test_a_group_is_deleted_with_its_offsets(cli: Cli) -> None:
    cli.ok("topics", "create", "doomed")
    cli.ok("groups", "reset-offsets", "dies", "--topic", "doomed", "--to", "latest", "--execute")
    assert cli.ok("groups", "delete", "dies") == "dies deleted\n"
    assert "group dies does not exist" in cli.fails("groups", "describe", "dies")


def test_perf(cli: Cli) -> None:
    produced = cli.json("perf", "produce", "load", "-n", "500", "-s", "50", "--rate", "5000")
    assert (produced["records"], produced["bytes"]) == (500, 25_000)
    assert produced["p50_ms"] <= produced["p99_ms"] <= produced["max_ms"]
    consumed = cli.json("perf", "consume", "load", "-n", "400")
    assert (consumed["records"], consumed["bytes"]) == (400, 20_000)
    assert cli.json("perf", "consume", "load")["records"] == 500
    assert cli.json("perf", "latency", "load", "-n", "5")["records"] == 5
    assert cli.ok("perf", "consume", "load").startswith("MEASURED")
