"""A node that lost its disks is restored from its bucket: what was backed up, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.diskless.files.orphans import OrphanScanner
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import StorageError
from skylog.objects.claim import BucketClaim
from skylog.testing import Broker
from skylog.testing.cluster import Cluster

DEADLINE_SECONDS = 60.0


def settings(bucket: Path, **more: str) -> dict[str, str]:
    return {
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.topic.num.partitions": "2",
        "diskless.metadata.backup.interval.ms": "3600000",  # when the test starts them
        "log.level": "ERROR",
        **more,
    }


def create(broker: Broker | Cluster, name: str, partitions: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(name, partitions, 1, config={"diskless.enable": "true"})
    for future in admin.create_topics([topic]).values():
        future.result()


def produce(broker: Broker | Cluster, topic: str, values: list[str], partitions: int = 3) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(DEADLINE_SECONDS) == 0


def consume(broker: Broker | Cluster, topic: str, count: int, partitions: int = 3) -> set[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: set[str] = set()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None
            found.add(message.value().decode())
    consumer.close()
    return found


def back_up(broker: Broker) -> None:
    backup = broker.node.maintenance.backup
    assert backup is not None
    broker.run(backup.run_once())


def wal_keys(bucket: Path) -> set[str]:
    return {path.relative_to(bucket).as_posix() for path in (bucket / "wal").glob("*/*")}


async def scan_later(broker: Broker) -> int:
    """Scan for orphans as if a day had passed; returns how many were deleted."""
    clock = ManualClock(int(time.time() * 1000))
    clock.advance(24 * 3_600_000)
    services = broker.node._services
    scanner = OrphanScanner(
        services.diskless.plane,
        BucketClaim(services.diskless.store, services.cluster_id),
        clock,
        grace_ms=3_600_000,
    )
    await scanner.run_once()
    return scanner.stats.deleted


def skylog(*words: str) -> subprocess.CompletedProcess[str]:
    command = "from skylog.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, *words], capture_output=True, text=True, check=False
    )


def restore(bucket: Path, disk: Path) -> subprocess.CompletedProcess[str]:
    return skylog("restore", "--from", bucket.as_uri(), "--override", f"log.dirs={disk}", "--json")


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_wiped_disk_is_restored_from_the_bucket(tmp_path: Path, *, snapshots: bool) -> None:
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    given = settings(bucket, **({"diskless.metadata.snapshot.bytes": "200"} if snapshots else {}))
    before = [f"before-{n}" for n in range(30)]
    with Broker(given, directory=disk) as broker:
        create(broker, "orders")
        produce(broker, "orders", before[:15])
        back_up(broker)
        produce(broker, "orders", before[15:])
        back_up(broker)
        cluster_id = broker.node.health()["cluster_id"]
        produce(broker, "orders", [f"after-{n}" for n in range(6)])
        taken = list(disk.glob("diskless-coordinators/*/*.checkpoint"))
        assert bool(taken) == snapshots
    shutil.rmtree(disk)

    answer = restore(bucket, disk)
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["cluster_id"] == cluster_id
    assert [(p["topic"], p["partition"], p["last_offset"]) for p in report["partitions"]] == [
        ("orders", index, 9) for index in range(3)
    ]
    assert report["missing_objects"] == []
    assert 1 <= len(report["held_objects"]) <= 6

    with Broker(given, directory=disk) as broker:
        assert broker.node.health()["cluster_id"] == cluster_id
        assert consume(broker, "orders", 30) == set(before)
        # New records follow, and lost files are not treated as garbage.
        produce(broker, "orders", ["new-0", "new-1", "new-2"])
        assert consume(broker, "orders", 33) == {*before, "new-0", "new-1", "new-2"}
        held = set(report["held_objects"])
        assert broker.run(scan_later(broker)) == 0
        assert held <= wal_keys(bucket)
        back_up(broker)

    shown = skylog("diskless", "orphans", "--storage-url", bucket.as_uri(), "--json")
    assert {row["key"] for row in json.loads(shown.stdout)} >= set(report["held_objects"])
    released = skylog("diskless", "orphans", "--storage-url", bucket.as_uri(), "--release", "-y")
    assert released.returncode == 0, released.stderr
    again = skylog("diskless", "orphans", "--storage-url", bucket.as_uri(), "--json")
    assert json.loads(again.stdout) == []
    assert "nothing is held" in again.stderr
    with Broker(given, directory=disk) as broker:
        assert broker.run(scan_later(broker)) == len(held)
        assert not held & wal_keys(bucket)
        assert len(consume(broker, "orders", 33)) == 33


def test_a_new_cluster_on_empty_disks_leaves_the_bucket_alone(tmp_path: Path) -> None:
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    with Broker(settings(bucket), directory=disk) as broker:
        create(broker, "orders")
        produce(broker, "orders", ["a", "b", "c"])
        back_up(broker)
    shutil.rmtree(disk)
    keys = wal_keys(bucket)
    with Broker(settings(bucket), directory=disk) as broker:  # the operator forgot to restore
        create(broker, "orders")
        for work in (scan_later, lambda one: one.node.maintenance.backup.run_once()):
            with pytest.raises(StorageError, match="belongs to cluster"):
                broker.run(work(broker))
    assert keys <= wal_keys(bucket)
    shutil.rmtree(disk)
    assert restore(bucket, disk).returncode == 0
    with Broker(settings(bucket), directory=disk) as broker:
        assert consume(broker, "orders", 3) == {"a", "b", "c"}


def test_a_restore_does_not_overwrite_disks(tmp_path: Path) -> None:
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    with Broker(settings(bucket), directory=disk) as broker:
        create(broker, "orders")
        back_up(broker)
    answer = restore(bucket, disk)
    assert answer.returncode == 1
    assert "is not empty" in answer.stderr


def test_a_missing_bucket(tmp_path: Path) -> None:
    answer = restore(tmp_path / "bucket", tmp_path / "disk")
    assert answer.returncode == 1
    assert "bucket is not a directory" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_without_backups(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    answer = restore(tmp_path / "bucket", tmp_path / "disk")
    assert answer.returncode == 1
    assert "no backup of node" in answer.stderr
    assert not (tmp_path / "disk").exists()


def test_an_incomplete_backup_restores_nothing(tmp_path: Path) -> None:
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    with Broker(settings(bucket), directory=disk) as broker:
        create(broker, "orders")
        back_up(broker)
    shutil.rmtree(disk)
    for path in (bucket / "backup").glob("node-*/cluster-metadata-0/*"):
        path.unlink()
    answer = restore(bucket, disk)
    assert answer.returncode == 1
    assert "of the backup is gone" in answer.stderr
    with pytest.raises(StorageError, match=re.escape("meta.properties")):
        Broker(settings(bucket), directory=disk).start()


def test_dump_wal_and_files(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    with Broker(settings(bucket), directory=tmp_path / "disk") as broker:
        create(broker, "orders")
        produce(broker, "orders", ["a"])
    (found,) = (bucket / "wal").glob("*/*")
    listed = skylog("diskless", "files", "--storage-url", bucket.as_uri(), "--json")
    assert [row["key"] for row in json.loads(listed.stdout)] == [
        found.relative_to(bucket).as_posix()
    ]
    dumped = skylog("diskless", "dump-wal", str(found), "--json")
    row = json.loads(dumped.stdout)
    assert (row["position"], row["records"], row["fault"]) == (1, 1, None)
    damaged = bytearray(found.read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    wrong = skylog("diskless", "dump-wal", str(tmp_path / "damaged"))
    assert wrong.returncode == 1
    assert "checksum" in wrong.stderr
