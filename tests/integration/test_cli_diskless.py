"""``skylog diskless`` against a broker and its store."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.kernel.rng import system_random
from skylog.objects.holds import Hold
from skylog.objects.keys import ObjectKey
from skylog.testing import Broker
from tests.integration.cli_support import Cli, invoke

SETTINGS = {
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.commit.age.max.ms": "600000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "1200001",
    "log.level": "ERROR",
}
SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
"""
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture
def cli(broker: Broker) -> Cli:
    return Cli(broker)


@pytest.fixture
def objects(broker: Broker) -> Path:
    return broker.directory / OBJECTS_DIRECTORY


def produce(cli: Cli, topic: str, *values: str) -> None:
    for value in values:  # each in a separate object
        cli.ok("produce", topic, text=value + "\n")


def put(objects: Path, age_ms: int) -> str:
    """An object that no coordinator knows."""
    key = ObjectKey.new("wal", int(time.time() * 1000) - age_ms, system_random())
    path = objects / key.text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"never committed")
    return key.text


def test_a_topic_that_stays_in_the_log_is_told_as_such(cli: Cli) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true", "--partitions", "2")
    produce(cli, "orders", "a", "b", "c")
    about = cli.json("diskless", "describe", "orders")
    assert about["consolidation"] == "off"
    assert [row["partition"] for row in about["partitions"]] == [0, 1]
    assert sum(row["lag"] for row in about["partitions"]) == 3
    for row in about["partitions"]:
        assert row["wal_start_offset"] == row["tiered_end_offset"] == row["log_start_offset"] == 0
        assert row["segments"] == row["tiered_bytes"] == 0
    assert "stays in WAL objects" in cli.run("diskless", "describe", "orders").stderr
    cli.ok("topics", "create", "classic")
    assert "is not diskless" in cli.fails("diskless", "describe", "classic")


def test_files_beside_what_coordinators_know(cli: Cli, objects: Path) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true", "--partitions", "2")
    produce(cli, "orders", "a", "b", "c")
    rows = cli.json("diskless", "files")
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert {row["state"] for row in rows} == {"live"}
    assert all(row["live_batches"] == 1 and row["live_bytes"] == row["size"] - 1 for row in rows)
    assert all(row["marked"] is None and row["note"] is None for row in rows)

    stranger = put(objects, 0)
    short, missing = rows[0]["key"], rows[1]["key"]
    (objects / short).write_bytes((objects / short).read_bytes()[:-1])
    (objects / missing).unlink()
    by_key = {row["key"]: row for row in cli.json("diskless", "files")}
    assert by_key[stranger]["state"] == "recent"
    assert by_key[short]["note"].startswith("size differs")
    assert by_key[missing]["state"] == "missing"
    assert by_key[rows[2]["key"]]["state"] == "live"
    assert cli.json("diskless", "files", "--max", "1") == [min(by_key.values(), key=key_of)]
    assert "size differs" in cli.ok("diskless", "files")


def key_of(row: dict[str, str]) -> str:
    return row["key"]


def test_files_of_a_topic(cli: Cli, tmp_path: Path) -> None:
    for topic in ("orders", "returns"):
        cli.ok("topics", "create", topic, "--config", "diskless.enable=true", "--partitions", "2")
        produce(cli, topic, "a", "b")
    rows = {topic: cli.json("diskless", "files", topic) for topic in ("orders", "returns")}
    together = sorted(rows["orders"] + rows["returns"], key=key_of)
    assert [len(found) for found in rows.values()] == [2, 2]
    assert together == cli.json("diskless", "files")
    for topic, found in rows.items():
        located = {row["key"] for row in cli.json("diskless", "batches", topic)}
        assert {row["key"] for row in found} == located
        assert {row["state"] for row in found} == {"live"}
    assert cli.json("diskless", "files", "orders", "--kind", "staging") == []
    cli.ok("topics", "create", "classic")
    assert "no batches in the object store" in cli.fails("diskless", "files", "classic")


def test_unknown_topics_are_reported(cli: Cli, objects: Path, tmp_path: Path) -> None:
    assert "topics create" in cli.fails("diskless", "files", "nothing")
    settings = tmp_path / "server.properties"
    settings.write_text(f"{SERVER}diskless.storage.url={objects.as_uri()}\n")
    assert "--server-config" in cli.fails("diskless", "files", str(settings))
    for command in ("files", "orphans"):
        found = invoke("diskless", command, "--server-config", str(settings), "--json")
        assert found.exit_code == 0, found.stderr
    backup = cli.run("diskless", "files", "orders", "--kind", "backup")
    assert (backup.exit_code, "all topics" in backup.stderr) == (2, True)
    assert cli.run("diskless", "orphans", "orders").exit_code == 2


def test_files_without_records_wait(cli: Cli) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    produce(cli, "orders", "a")
    cli.ok("topics", "delete", "orders", "--yes")
    deadline = time.monotonic() + 60
    while (row := cli.json("diskless", "files")[0])["state"] != "waiting":
        assert time.monotonic() < deadline
    assert (row["live_batches"], row["live_bytes"]) == (0, 0)
    assert row["marked"] > 0


def test_orphans_are_listed_and_deleted(cli: Cli, objects: Path) -> None:
    put(objects, DAY_MS)
    assert [row["state"] for row in cli.json("diskless", "orphans")] == ["kept"]  # no scans yet
    shutil.rmtree(objects / "wal")
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    old, young, kept = put(objects, DAY_MS), put(objects, 0), put(objects, 2 * DAY_MS)
    now_ms = int(time.time() * 1000)
    hold = Hold(now_ms - 3 * DAY_MS, now_ms - 2 * DAY_MS + 60_000)
    (objects / hold.key.text).parent.mkdir(parents=True)
    (objects / hold.key.text).write_bytes(b"")
    rows = {row["key"]: row for row in cli.json("diskless", "orphans")}
    assert {key: row["state"] for key, row in rows.items()} == {
        old: "orphan",
        young: "recent",
        kept: "held",
    }
    assert [key for key, row in rows.items() if row["deleted_by_next_scan"]] == [old]
    assert DAY_MS <= rows[old]["age_ms"] < DAY_MS + 600_000
    shown = cli.run("diskless", "orphans", "--release", "--yes")
    assert "held: objects created" in shown.stderr
    assert "released" in shown.stderr
    assert {row["state"] for row in cli.json("diskless", "orphans")} == {"orphan", "recent"}
    # The scan does what the command predicted.
    scanner = cli.broker.node.maintenance.orphans
    cli.broker.run(scanner.run_once())
    assert {row["key"] for row in cli.json("diskless", "orphans")} == {young}


def test_a_lost_object_is_an_error(cli: Cli, objects: Path) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    produce(cli, "orders", "a")
    (row,) = cli.json("diskless", "files")
    (objects / row["key"]).unlink()
    result = cli.run("diskless", "orphans")
    assert result.exit_code == 1
    assert "missing" in result.stdout
    assert row["key"] in result.stderr


def test_coordinators(cli: Cli) -> None:
    assert cli.json("diskless", "coordinators") == []
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true", "--partitions", "4")
    produce(cli, "orders", "a", "b")
    rows = cli.json("diskless", "coordinators")
    assert [row["partition"] for row in rows] == [0, 1]
    assert sum(row["partitions"] for row in rows) == 4
    assert sum(row["batches"] for row in rows) == 2
    assert all((row["state"], row["lag"], row["pins"]) == ("active", 0, 0) for row in rows)
    assert all(row["high_watermark"] == row["log_end_offset"] for row in rows)
    assert all(row["snapshot_offset"] is None for row in rows)
    text = cli.ok("diskless", "coordinators")
    assert "COMMITTED" in text
    assert "TO DELETE" in text


def test_an_object_of_a_store_is_dumped(cli: Cli, objects: Path) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    produce(cli, "orders", "a")
    (row,) = cli.json("diskless", "files")
    url = ("--storage-url", objects.as_uri())
    assert cli.json("diskless", "dump-wal", row["key"], *url)["records"] == 1
    gone = put(objects, 0)
    (objects / gone).unlink()
    assert "not in the store" in cli.fails("diskless", "dump-wal", gone, *url)


def test_errors_say_what_to_do(cli: Cli, objects: Path, tmp_path: Path) -> None:
    nobody = invoke("diskless", "coordinators", "-b", "127.0.0.1:1")
    assert nobody.exit_code == 1
    assert "skylog server" in nobody.stderr
    wrong = invoke("diskless", "files", "--kind", "nonsense")
    assert wrong.exit_code == 2
    assert "staging" in wrong.stderr
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    produce(cli, "orders", "a")
    shutil.move(objects, tmp_path / "elsewhere")
    assert "--storage-url" in cli.fails("diskless", "files")
    url = (tmp_path / "elsewhere").as_uri()
    assert [row["state"] for row in cli.json("diskless", "files", "--storage-url", url)] == ["live"]


def test_inspection_creates_no_directory(cli: Cli, tmp_path: Path) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true")
    nowhere = tmp_path / "nowhere"
    for command in (("files",), ("orphans",), ("dump-wal", "wal/x")):
        message = cli.fails("diskless", *command, "--storage-url", nowhere.as_uri())
        assert "nowhere is not a directory" in message
    assert not nowhere.exists()


def test_batches_and_their_positions(cli: Cli, objects: Path) -> None:
    cli.ok("topics", "create", "orders", "--config", "diskless.enable=true", "--partitions", "2")
    for value in ("a", "b", "c"):
        cli.ok("produce", "orders", "--partition", "1", text=value + "\n")
    rows = cli.json("diskless", "batches", "orders")
    assert [(row["partition"], row["first_offset"], row["last_offset"]) for row in rows] == [
        (1, offset, offset) for offset in range(3)
    ]
    for row in rows:
        data = (objects / row["key"]).read_bytes()
        assert (row["position"], row["position"] + row["bytes"]) == (1, len(data))
        assert row["timestamp_type"] == "CreateTime"
    assert cli.json("diskless", "batches", "orders", "-p", "0") == []
    assert cli.json("diskless", "batches", "orders", "--from", "1", "--limit", "1") == rows[1:2]
    assert rows[0]["key"] in cli.ok("diskless", "batches", "orders", "-p", "1")

    cli.ok("topics", "create", "classic")
    assert "no batches in the object store" in cli.fails("diskless", "batches", "classic")
    assert "topics create" in cli.fails("diskless", "batches", "nothing")
    assert "no partition 9" in cli.fails("diskless", "batches", "orders", "-p", "9")
