"""A running broker deletes objects of diskless topics that are no longer needed, and its metrics
show it."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.kernel.rng import system_random
from skylog.objects.keys import ObjectKey
from skylog.testing import Broker
from tests.waiting import until

DEADLINE_SECONDS = 60.0
SETTINGS = {
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.commit.age.max.ms": "3000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "6001",
    "diskless.coordinator.orphan.scan.interval.ms": "100",
    "diskless.file.cleaner.interval.ms": "100",
    "diskless.retention.check.interval.ms": "100",
    "http.listener": "127.0.0.1:0",
    "log.level": "ERROR",
}


def wal_objects(broker: Broker) -> list[Path]:
    return list((broker.directory / OBJECTS_DIRECTORY / "wal").glob("*/*"))


def metric(broker: Broker, name: str) -> float:
    with urllib.request.urlopen(f"http://{broker.node.http_address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " "))


def produce(broker: Broker, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, partition=0)
    assert producer.flush(DEADLINE_SECONDS) == 0


def create(broker: Broker, name: str, **configs: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    settings = {"diskless.enable": "true", **configs}
    for future in admin.create_topics([NewTopic(name, 1, 1, config=settings)]).values():
        future.result()
    return admin


def test_retention_deletion_and_orphans_end_in_an_empty_bucket() -> None:
    # DC-50, DC-52, DC-53, ENG-48 partly: until retention removes it
    with Broker(SETTINGS) as broker:
        create(broker, "short", **{"retention.ms": "1"})
        admin = create(broker, "deleted")
        create(broker, "kept")
        produce(broker, "kept", b"k")
        (kept,) = wal_objects(broker)
        produce(broker, "short", b"s")
        produce(broker, "deleted", b"d")
        orphan = ObjectKey.new("wal", int(time.time() * 1000), system_random())
        path = broker.directory / OBJECTS_DIRECTORY / orphan.text
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"never committed")
        assert {kept, path} <= set(wal_objects(broker))
        for future in admin.delete_topics(["deleted"]).values():
            future.result()
        until(lambda: set(wal_objects(broker)) <= {kept, path})
        # A file is counted when its plane has forgotten it, after the object is deleted.
        until(lambda: metric(broker, "skylog_diskless_cleaner_files_deleted_total") == 2)
        until(lambda: metric(broker, "skylog_diskless_retention_batches_deleted_total") == 1)
        # The oldest file delays it as long as it is kept (DC-51).
        for future in admin.delete_topics(["kept", "short"]).values():
            future.result()
        until(lambda: wal_objects(broker) == [])
        until(lambda: metric(broker, "skylog_diskless_orphans_deleted_total") == 1)
        until(lambda: metric(broker, 'skylog_objects_requests_total{operation="delete"}') >= 3)
        assert metric(broker, 'skylog_diskless_last_success_age_seconds{stage="orphans"}') < 60


def test_a_cluster_without_diskless_topics_has_no_work_for_them() -> None:  # DC-61
    with Broker(SETTINGS) as broker:
        produce(broker, "classic", b"c")
        for paced in broker.node.maintenance.passes:
            broker.run(paced.run())
            assert paced.stage.runs == 0
        assert not (broker.directory / OBJECTS_DIRECTORY / "wal").exists()
