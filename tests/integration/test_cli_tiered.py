"""``skylog tiered`` on a broker that has copied segments to a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.objects.holds import Hold
from skylog.testing import Broker
from tests.integration.broker_client import Client
from tests.integration.cli_support import Cli, invoke
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    PER_SEGMENT,
    consolidating_broker,
    fill,
    until_pruned,
)
from tests.waiting import until

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "0",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "tiered.orphan.scan.grace.period.ms": "1",
}
TOPIC = "clicks"
RECORDS = 4000


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    url = (tmp_path / "bucket").as_uri()
    with Broker({**SETTINGS, "tiered.storage.url": url}) as broker:
        found = Cli(broker)
        configs = ("remote.storage.enable=true", "segment.bytes=1048576", "local.retention.bytes=1")
        options = [part for config in configs for part in ("--config", config)]
        found.ok("topics", "create", TOPIC, *options)
        found.ok("perf", "produce", TOPIC, "--records", str(RECORDS), "--size", "1024")
        until(lambda: _regions(found)["local_start_offset"] > 0)
        until(lambda: _regions(found)["remote_segments"] == 4)
        yield found


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    return tmp_path / "bucket"


def _regions(cli: Cli) -> dict[str, Any]:
    found: dict[str, Any] = cli.json("tiered", "regions", TOPIC)[0]
    return found


def objects(bucket: Path, suffix: str) -> list[Path]:
    return sorted(bucket.rglob(f"*.{suffix}"))


def test_what_is_where(cli: Cli) -> None:
    about = _regions(cli)
    assert about["log_start_offset"] == 0 and about["end_offset"] == RECORDS
    assert about["holes"] == []
    segments = cli.json("tiered", "segments", TOPIC)
    assert [one["state"] for one in segments] == ["COPY_SEGMENT_FINISHED"] * 4
    assert segments[0]["start_offset"] == 0
    assert [one["start_offset"] for one in segments[1:]] == [
        one["end_offset"] + 1 for one in segments[:-1]
    ]
    shown = cli.ok("tiered", "regions", TOPIC)
    assert "█" in shown and "!" not in shown
    refused = cli.run("tiered", "segments", TOPIC, "-p", "7")
    assert refused.exit_code == 1 and "has no partition 7" in refused.stderr


def test_what_is_where_of_a_diskless_topic() -> None:
    end = 3 * PER_SEGMENT + 2
    with consolidating_broker() as broker, Client(broker.bootstrap) as client:
        cli = Cli(broker)
        client.create("orders", configs=dict(CONSOLIDATING))
        fill(client, "orders", 0, end)
        until_pruned(client, "orders", 3 * PER_SEGMENT)
        (row,) = cli.json("tiered", "regions", "orders")
        assert row["wal_start_offset"] == 3 * PER_SEGMENT and row["holes"] == []
        assert (row["log_start_offset"], row["end_offset"]) == (0, end)
        assert row["remote_segments"] == 3
        assert row["bar"] == "█" * 3 * PER_SEGMENT + "░" * 2
        assert "WAL START" in cli.ok("tiered", "regions", "orders")
        segments = cli.json("tiered", "segments", "orders")
        assert [one["start_offset"] for one in segments] == [0, PER_SEGMENT, 2 * PER_SEGMENT]
        about = cli.json("diskless", "describe", "orders")
        assert about["consolidation"] == "broker"
        (described,) = about["partitions"]
        assert described["tiered_end_offset"] == described["wal_start_offset"] == 3 * PER_SEGMENT
        assert described["lag"] == 2 and described["segments"] == 3
        assert described["tiered_bytes"] == row["remote_bytes"] > 0
        shown = cli.run("diskless", "describe", "orders")
        assert "consolidated by its leaders" in shown.stderr


def test_a_topic_that_is_not_remote_is_told_as_such(cli: Cli) -> None:
    cli.ok("topics", "create", "plain")
    refused = cli.run("tiered", "regions", "plain")
    assert refused.exit_code == 1
    (line,) = refused.stderr.splitlines()
    assert "plain has no remote storage" in line


def test_damage_is_found_and_nothing_else(cli: Cli, bucket: Path) -> None:
    whole = cli.json("tiered", "verify", TOPIC)
    assert (whole["segments"], whole["problems"]) == (4, [])
    log = objects(bucket, "log")[1]
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    objects(bucket, "rsm-manifest")[3].unlink()
    found = cli.run("tiered", "verify", "--json")
    assert found.exit_code == 1
    problems = json.loads(found.stdout)["problems"]
    starts = {problem["start_offset"] for problem in problems}
    segments = cli.json("tiered", "segments", TOPIC)
    assert starts == {segments[1]["start_offset"], segments[3]["start_offset"]}
    assert any("checksum" in problem["problem"] for problem in problems), problems
    # Without reading the logs only what is missing is seen.
    quick = cli.run("tiered", "verify", "--quick", "--json")
    assert len(json.loads(quick.stdout)["problems"]) == 1


def test_objects_are_decoded(cli: Cli, bucket: Path) -> None:
    manifest = json.loads(invoke("tiered", "dump", str(objects(bucket, "rsm-manifest")[0])).stdout)
    described = manifest["remoteLogSegmentMetadata"]
    assert described["startOffset"] == 0
    assert manifest["chunkIndex"]["originalFileSize"] == objects(bucket, "log")[0].stat().st_size
    indexes = invoke("tiered", "dump", str(objects(bucket, "indexes")[0]), "--json")
    assert indexes.exit_code == 0, indexes.output
    kinds = {json.loads(line)["kind"] for line in indexes.stdout.splitlines()}
    assert "leader_epoch" in kinds and len(kinds) >= 3
    key = str(objects(bucket, "log")[0].relative_to(bucket))
    batches = invoke("tiered", "dump", key, "--storage-url", bucket.as_uri(), "--json")
    assert batches.exit_code == 0, batches.output
    first = json.loads(batches.stdout.splitlines()[0])
    assert first["base_offset"] == 0
    for hostile in ("../../etc/passwd", f"{key}x", "wal/zz"):
        refused = invoke("tiered", "dump", hostile, "--storage-url", bucket.as_uri())
        assert refused.exit_code == 1
        assert len(refused.stderr.splitlines()) == 1, refused.stderr


def test_orphans_are_listed_and_deleted_when_told(cli: Cli, bucket: Path) -> None:
    assert _orphans(cli, bucket) == []
    log = objects(bucket, "log")[0]
    orphan = log.with_name(log.name[:20] + "-" + "A" * 21 + "Q.log")
    orphan.write_bytes(b"left behind")
    until(lambda: "orphan" in _orphans(cli, bucket))
    cli.ok("tiered", "orphans", "--delete", "--yes", *_store(bucket))
    assert not orphan.exists() and log.exists()


def test_what_a_restore_holds_is_listed_and_released(cli: Cli, bucket: Path) -> None:
    log = objects(bucket, "log")[0]
    unknown = log.with_name(log.name[:20] + "-" + "B" * 21 + "Q.log")
    unknown.write_bytes(b"of another history")
    created_ms = int(unknown.stat().st_mtime * 1000)
    hold = bucket / Hold(created_ms - 1, created_ms + 1).key.text
    hold.parent.mkdir(parents=True, exist_ok=True)
    hold.write_bytes(b"")
    cli.ok("tiered", "orphans", "--delete", "--yes", *_store(bucket))
    assert _orphans(cli, bucket) == ["held"]
    told = cli.run("tiered", "orphans", "--release", "--yes", *_store(bucket))
    assert "released: 1 hold" in told.stderr and unknown.exists()
    assert _orphans(cli, bucket) == ["orphan"]
    cli.ok("tiered", "orphans", "--delete", "--yes", *_store(bucket))
    assert not unknown.exists() and log.exists()


def _store(bucket: Path) -> tuple[str, ...]:
    grace = "tiered.orphan.scan.grace.period.ms=1"
    return ("--storage-url", bucket.as_uri(), "--override", grace)


def _orphans(cli: Cli, bucket: Path) -> list[str]:
    return [row["state"] for row in cli.json("tiered", "orphans", *_store(bucket))]


def test_a_rebuild_needs_an_empty_metadata_topic(cli: Cli, bucket: Path) -> None:
    shown = cli.json("tiered", "rebuild", "--from", bucket.as_uri(), "--dry-run")
    (partition,) = shown["partitions"]
    assert partition["topic"] == TOPIC and partition["segments"] == 4
    refused = cli.run("tiered", "rebuild", "--from", bucket.as_uri(), "--yes")
    assert refused.exit_code == 1
    assert "needs an empty one" in refused.stderr
    assert _regions(cli)["remote_segments"] == 4


def test_a_rebuild_brings_lost_metadata_back(cli: Cli, bucket: Path) -> None:
    cli.ok("topics", "delete", "__remote_log_metadata", "--yes")
    rebuilt = cli.run("tiered", "rebuild", "--from", bucket.as_uri(), "--yes")
    assert rebuilt.exit_code == 0, rebuilt.output
    assert "8 records of 4 segments written" in rebuilt.stderr
    until(lambda: _regions(cli)["remote_segments"] == 4)
    read = cli.ok("consume", TOPIC, "--from-beginning", "--max-messages", str(RECORDS))
    assert len(read.splitlines()) == RECORDS


def test_a_store_that_is_not_there_is_said(cli: Cli, tmp_path: Path) -> None:
    refused = cli.run("tiered", "verify", "--storage-url", (tmp_path / "no").as_uri())
    assert refused.exit_code == 1
    assert "is not a directory on this machine" in refused.stderr
    assert not (tmp_path / "no").exists()


def test_the_longest_name_of_a_topic_fits_into_a_directory(cli: Cli, bucket: Path) -> None:
    name = "n" * 249
    configs = ("remote.storage.enable=true", "segment.bytes=1048576", "local.retention.bytes=1")
    cli.ok("topics", "create", name, *[part for one in configs for part in ("--config", one)])
    cli.ok("perf", "produce", name, "--records", "1200", "--size", "1024")
    until(lambda: cli.json("tiered", "regions", name)[0]["remote_segments"] == 1)
    assert cli.json("tiered", "verify", name)["problems"] == []
    read = cli.ok("consume", name, "--from-beginning", "--max-messages", "1200")
    assert len(read.splitlines()) == 1200
