"""All disks are lost: what was in the store of remote segments can be read again. # T13, T16"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.broker.background.orphans import open_scanner
from skylog.cli.restore import restore_node
from skylog.kernel.settings import load_settings
from skylog.testing import Broker
from skylog.testing.cluster import Cluster, ClusterNode, start_together
from tests.integration.test_cluster_restore import backed_up, marks
from tests.waiting import until

TOPIC = "tiered"


def settings(bucket: Path) -> dict[str, str]:
    return {
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.backup.interval.ms": "3600000",  # when the test starts them
        "diskless.tiering.prune.delay.ms": "7200000",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "200",
        "log.retention.check.interval.ms": "200",
        "log.level": "ERROR",
    }


def create(broker: Broker | Cluster, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "remote.storage.enable": "true",
        "segment.bytes": "1048576",
        "local.retention.bytes": "1",
    }
    for future in admin.create_topics([NewTopic(TOPIC, 1, replicas, config=config)]).values():
        future.result()


def produce(broker: Broker | Cluster, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for number in range(first, first + count):
        producer.produce(TOPIC, b"%05d" % number + bytes(10_000), partition=0)
        if number % 50 == 0:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def consume(broker: Broker | Cluster, start: int, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(TOPIC, 0, start)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None
            found.append(int(message.value()[:5]))
    consumer.close()
    return found


def local_start(broker: Broker | ClusterNode) -> int:
    replica = broker.node._services.replicas.get(TOPIC, 0)
    return -1 if replica is None else replica.log.local_log_start_offset


def leader_epoch(broker: Broker) -> int:
    topic = broker.node._services.image.topic(TOPIC)
    assert topic is not None
    return topic.partitions[0].leader_epoch


def back_up(broker: Broker | ClusterNode) -> None:
    backup = broker.node.maintenance.backup
    assert backup is not None
    broker.run(backup.run_once())


def restore(bucket: Path, directory: Path, *more: str) -> dict[str, object]:
    """By the command, as an operator does."""
    command = [sys.executable, "-m", "skylog.cli.main", "restore", "--from", bucket.as_uri()]
    command += ["--json", "--override", f"log.dirs={directory}"]
    for text in ("remote.log.storage.system.enable=true", *more):
        command += ["--override", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_remote_segments_survive_the_loss_of_all_disks(tmp_path: Path) -> None:
    """Also those that were finished after the backup, which are only in the store."""
    bucket, directory = tmp_path / "bucket", tmp_path / "data"
    with Broker(settings(bucket), directory=directory) as broker:
        create(broker)
        produce(broker, 0, 250)
        until(lambda: local_start(broker) > 50)
        back_up(broker)
        produce(broker, 250, 250)
        until(lambda: local_start(broker) > 300)
        end, epoch = local_start(broker), leader_epoch(broker)
        assert consume(broker, 0, end)[:end] == list(range(end))
    shutil.rmtree(directory)
    report = restore(bucket, directory)
    assert report["remote_segments"]
    assert report["unreadable_remote_segments"] == report["missing_remote_segments"] == []
    with Broker(settings(bucket), directory=directory) as broker:
        assert leader_epoch(broker) > epoch + 1_000_000  # and the elections of a start
        found = consume(broker, 0, end)
        assert found[:end] == list(range(end))
        # It goes on where the remote segments end, and copies again.
        produce(broker, 1000, 250)
        until(lambda: local_start(broker) > end + 50)
        again = consume(broker, 0, end + 250)
        assert again[:end] == list(range(end))
        assert again[-250:] == list(range(1000, 1250))


def test_segments_that_are_gone_are_told(tmp_path: Path) -> None:
    bucket, directory = tmp_path / "bucket", tmp_path / "data"
    with Broker(settings(bucket), directory=directory) as broker:
        create(broker)
        produce(broker, 0, 400)
        until(lambda: local_start(broker) > 250)
        back_up(broker)
    shutil.rmtree(directory)
    manifests = sorted(bucket.rglob("*.rsm-manifest"))
    manifests[0].unlink()
    given = load_settings(
        None,
        {},
        [
            f"log.dirs={directory}",
            f"diskless.storage.url={bucket.as_uri()}",
            "remote.log.storage.system.enable=true",
        ],
    )
    _, remote = asyncio.run(restore_node(given))
    assert remote is not None
    assert [one.start_offset for one in remote.missing] == [0]
    assert remote.count == len(manifests) - 1
    with Broker(settings(bucket), directory=directory) as broker:
        first = min(page[0].start_offset for page in remote.segments.values())
        assert 0 < first < 150
        found = consume(broker, first, 100)
        assert found[:100] == list(range(first, first + 100))
        # What is gone is below the log start now, rather than an error for ever.
        replica = broker.node._services.replicas.get(TOPIC, 0)
        assert replica is not None
        assert replica.log.log_start_offset == first


def skylog(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "skylog.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_lost_metadata_topic_takes_no_records_with_it(tmp_path: Path) -> None:
    """What it named is unknown then, but no orphan; manifests bring it back."""
    bucket, metadata = tmp_path / "bucket", "__remote_log_metadata"
    given = {**settings(bucket), "tiered.orphan.scan.grace.period.ms": "1"}
    with Broker(given, directory=tmp_path / "data") as broker:
        create(broker)
        produce(broker, 0, 400)
        until(lambda: local_start(broker) > 250)
        end = local_start(broker)
        where = ("--bootstrap", broker.bootstrap)
        store = (bucket / "tiered").as_uri()
        refused = skylog("tiered", "rebuild", "--from", store, "--yes", *where)
        assert refused.returncode == 1
        assert "a rebuild needs an empty one" in refused.stderr
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([metadata])[metadata].result()
        services = broker.node._services
        scanner = open_scanner(services, services.configs.current.tiered)
        assert scanner is not None

        def unknown() -> bool:
            broker.run(scanner.run_once())
            return scanner.stats.needed > 0

        until(unknown)
        assert scanner.stats.deleted == 0
        done = skylog("tiered", "rebuild", "--from", store, "--yes", *where)
        assert done.returncode == 0, done.stderr
        assert consume(broker, 0, 400) == list(range(400))
        assert local_start(broker) == end


def test_a_cluster_is_restored_node_by_node(tmp_path: Path) -> None:
    """Each from a backup of its own; replicas of the metadata topic agree all the same."""
    bucket = tmp_path / "bucket"
    given = {
        **settings(bucket),
        "diskless.metadata.backup.interval.ms": "100",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "2",
        "rlmm.config.remote.log.metadata.topic.min.isr": "2",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "5",
        "offsets.topic.num.partitions": "1",
    }
    with Cluster(brokers=2, controllers=1, settings=given, directory=tmp_path / "nodes") as cluster:
        nodes = [*cluster.controllers, *cluster.brokers]
        create(cluster, 2)
        produce(cluster, 0, 400)
        until(lambda: min(map(local_start, cluster.brokers)) > 250)
        end = min(map(local_start, cluster.brokers))
        for node in nodes:
            until(partial(backed_up, bucket, node, marks(node)))
        for node in nodes:
            node.kill()
        for node in nodes:
            shutil.rmtree(node.directory)
        for node in nodes:
            report = restore(bucket, node.directory, f"node.id={node.node_id}", *overrides(given))
            assert bool(report.get("remote_segments")) == (node in cluster.brokers), report
        start_together(nodes)
        assert consume(cluster, 0, end)[:end] == list(range(end))
        produce(cluster, 1000, 250)
        until(lambda: min(map(local_start, cluster.brokers)) > end + 50)
        assert consume(cluster, 0, end + 250)[-250:] == list(range(1000, 1250))


def overrides(given: dict[str, str]) -> list[str]:
    return [f"{name}={text}" for name, text in given.items() if name.startswith("rlmm.")]
