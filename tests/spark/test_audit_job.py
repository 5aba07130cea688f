"""An audit finds what was broken on purpose, and nothing in an intact bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skylog.kernel.errors import ConfigError, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.spark.jobs import audit
from skylog.spark.jobs.audit import Audit, AuditJob
from skylog.spark.jobs.audit_found import Kind
from skylog.spark.jobs.audit_report import document, html
from skylog.spark.jobs.cluster import JobCluster
from skylog.testing import Broker
from tests.spark.support import Message, Topics


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def node(objects: Path) -> Iterator[Broker]:
    objects.mkdir()
    with Broker({"diskless.storage.url": objects.as_uri()}) as running:
        yield running


def look(spark: SparkSession, node: Broker, *topics: str) -> Audit:
    return audit.run(spark, AuditJob(JobCluster({"bootstrap.servers": node.bootstrap}), topics))


def kinds(found: Audit) -> set[Kind]:
    return set(found.findings.counts)


def test_damage_of_every_kind_is_found(spark: SparkSession, node: Broker, objects: Path) -> None:
    topics = Topics(node.bootstrap)
    name = topics.create("audited", 2)
    topics.create("classic", 1, diskless=False)
    for part in range(4):
        topics.produce(name, [Message(b"x" * 500, None, i % 2) for i in range(40)], "lz4")
        topics.produce(name, [Message(b"y%d" % part * 9, None, i % 2) for i in range(40)])

    sound = look(spark, node)
    assert not sound.findings, list(sound.findings)
    assert sound.findings.sound
    assert sum(tally.records for tally in sound.checked.tallies.values()) == 320
    assert "Sound" in html(sound, "now")

    stored = sorted(path for path in (objects / "wal").rglob("*") if path.is_file())
    assert len(stored) >= 4
    gone, damaged, short = stored[:3]
    kept = gone.read_bytes()
    gone.unlink()
    data = bytearray(damaged.read_bytes())
    data[-3] ^= 0xFF
    damaged.write_bytes(data)
    short.write_bytes(short.read_bytes()[:-10])
    stray = objects / ObjectKey.parse(f"wal/ab/{1:012x}{'cd' * 9}ab").text
    stray.parent.mkdir(exist_ok=True, parents=True)
    stray.write_bytes(b"\0nothing of ours")

    found = look(spark, node)
    assert kinds(found) >= {Kind.MISSING, Kind.CORRUPT, Kind.SIZE, Kind.DANGLING, Kind.ORPHAN}
    assert not found.findings.sound
    told = json.loads(json.dumps(document(found, "now")))
    assert not told["sound"]
    by_kind: dict[str, set[str]] = {}
    for finding in told["findings"]:
        by_kind.setdefault(finding["kind"], set()).add(finding["object_key"])
    assert by_kind[Kind.DANGLING.value] == {gone.relative_to(objects).as_posix()}
    assert by_kind[Kind.CORRUPT.value] == {damaged.relative_to(objects).as_posix()}
    assert short.relative_to(objects).as_posix() in by_kind[Kind.SIZE.value]
    assert by_kind[Kind.ORPHAN.value] == {stray.relative_to(objects).as_posix()}
    assert told["plan"][0]["damage"]
    page = html(found, "now")
    assert "Damaged" in page
    assert gone.name in page

    # Restoring the object repairs it.
    gone.write_bytes(kept)
    assert Kind.DANGLING not in kinds(look(spark, node))
    # Records that are deleted need no objects.
    for partition in range(2):
        topics.delete_records(name, partition, 160)
    healed = look(spark, node)
    assert kinds(healed) <= {Kind.ORPHAN, Kind.SIZE}


def test_errors_of_an_audit_are_named(spark: SparkSession, node: Broker) -> None:
    Topics(node.bootstrap).create("plain", 1, diskless=False)
    with pytest.raises(ConfigError, match="plain is not diskless"):
        look(spark, node, "plain")
    with pytest.raises(KafkaError, match="absent"):
        look(spark, node, "absent")
    assert not look(spark, node).findings
