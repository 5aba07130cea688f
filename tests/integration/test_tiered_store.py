"""The store of remote segments behind a running broker: orphans, verification, another's store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.broker.background.orphans import open_scanner
from skylog.kernel.errors import StorageError
from skylog.testing import Broker
from skylog.tiered.layout.aiven import decode_custom, main_path
from skylog.tiered.segments import SegmentState, TopicIdPartition
from skylog.tiered.verify import verify_partition
from tests.contract.bucket_server import bucket_server
from tests.waiting import until

TOPIC = "tiered"
RECORDS = 400


def settings(bucket: Path, **more: str) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "tiered.storage.url": bucket.as_uri(),
        "remote.log.manager.task.interval.ms": "200",
        "log.retention.check.interval.ms": "200",
        "tiered.orphan.scan.interval.ms": "3600000",  # when the test starts them
        "tiered.orphan.scan.grace.period.ms": "1000",
        "log.level": "ERROR",
        **more,
    }


def create(broker: Broker, topic: str = TOPIC, **more: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "remote.storage.enable": "true",
        "segment.bytes": "1048576",
        "local.retention.bytes": "1",
        **more,
    }
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values():
        future.result()


def produce(broker: Broker, topic: str = TOPIC) -> None:
    """Several segments: a record has ten kilobytes."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%05d" % number + bytes(10_000), partition=0)
        if number % 50 == 0:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def consume(broker: Broker, topic: str = TOPIC, count: int = RECORDS) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None
            found.append(int(message.value()[:5]))
    consumer.close()
    return found


def local_start(broker: Broker, topic: str = TOPIC) -> int:
    replica = broker.node._services.replicas.get(topic, 0)
    assert replica is not None
    return replica.log.local_log_start_offset


def partition_of(broker: Broker, topic: str = TOPIC) -> TopicIdPartition:
    found = broker.node._services.image.topic(topic)
    assert found is not None
    return TopicIdPartition(found.topic_id, 0)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def broker(bucket: Path) -> Iterator[Broker]:
    """With a topic most of which is remote only."""
    with Broker(settings(bucket)) as running:
        create(running)
        produce(running)
        until(lambda: local_start(running) > RECORDS / 2)
        yield running


def objects(bucket: Path) -> set[str]:
    return {
        str(path.relative_to(bucket))
        for path in bucket.rglob("*")
        if path.is_file() and path.suffix in (".log", ".indexes", ".rsm-manifest")
    }


def test_orphans_go_and_what_is_known_stays(broker: Broker, bucket: Path) -> None:
    known = objects(bucket)
    assert len(known) >= 9
    folder = bucket / f"{TOPIC}-{partition_of(broker).topic_id}" / "0"
    some = sorted(folder.glob("*.log"))[0]
    other = folder / f"{0:020}-{'A' * 22}.log"  # a copy that was given up
    other.write_bytes(some.read_bytes())
    missing = bucket / f"gone-{'B' * 21}A" / "0" / f"{0:020}-{'C' * 21}A.log"  # a deleted topic's
    missing.parent.mkdir(parents=True)
    missing.write_bytes(b"old")
    services = broker.node._services
    scanner = open_scanner(services, services.configs.current.tiered)
    assert scanner is not None
    until(lambda: time.time() > other.stat().st_mtime + 1.1)

    def scanned() -> bool:
        broker.run(scanner.run_once())
        return not missing.exists()

    until(scanned)
    assert not other.exists()
    assert objects(bucket) == known
    assert consume(broker) == list(range(RECORDS))


def test_what_was_copied_is_sound_and_damage_is_found(broker: Broker, bucket: Path) -> None:
    tiered = broker.node._services.tiered
    assert tiered is not None
    remote = tiered.logs.get(partition_of(broker))
    assert remote is not None
    end = local_start(broker)

    def verify() -> list[str]:
        work = verify_partition(tiered.storage, remote.all(), start=0, end=end)
        return [problem.text for problem in broker.run(work).problems]

    assert verify() == []
    folder = bucket / f"{TOPIC}-{partition_of(broker).topic_id}" / "0"
    victim = sorted(folder.glob("*.log"))[1]
    data = victim.read_bytes()
    victim.write_bytes(data[:5000] + b"\xff" + data[5001:])
    assert any("checksum" in text for text in verify())
    victim.write_bytes(data)
    assert verify() == []


def test_a_store_of_another_cluster_stops_the_node(broker: Broker, bucket: Path) -> None:
    known = objects(bucket)
    with pytest.raises(StorageError, match="the object store belongs to cluster"):
        Broker(settings(bucket)).start()
    assert objects(bucket) == known


def test_a_store_that_is_away_does_not_stop_the_node(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    away = {
        "tiered.storage.url": "s3://bucket",
        "diskless.storage.s3.endpoint": "http://127.0.0.1:1",
        "diskless.storage.s3.region": "x",
        "diskless.storage.s3.access.key.id": "x",
        "diskless.storage.s3.secret.access.key": "x",
    }
    with Broker({**settings(tmp_path), **away}) as running:
        create(running, "waiting")
        produce(running, "waiting")
        assert consume(running, "waiting") == list(range(RECORDS))


def test_a_bucket_configured_as_for_the_plugin(tmp_path: Path) -> None:
    """Uploads in parts, and reads from where the plugin would look."""
    with bucket_server() as server:
        plugin = {
            "remote.log.storage.manager.class.name": (
                "io.aiven.kafka.tieredstorage.RemoteStorageManager"
            ),
            "rsm.config.storage.backend.class": (
                "io.aiven.kafka.tieredstorage.storage.s3.S3Storage"
            ),
            "rsm.config.storage.s3.bucket.name": "tests",
            "rsm.config.storage.s3.region": "us-east-1",
            "rsm.config.storage.s3.endpoint.url": server.endpoint,
            "rsm.config.storage.s3.path.style.access.enabled": "true",
            "rsm.config.storage.s3.multipart.upload.part.size": "5242880",
            "rsm.config.storage.aws.access.key.id": "id",
            "rsm.config.storage.aws.secret.access.key": "secret",
            "rsm.config.chunk.size": "1048576",
            "rsm.config.key.prefix": "some/prefix/",
            "rsm.config.custom.metadata.fields.include": "REMOTE_SIZE,OBJECT_PREFIX",
        }
        given = {**settings(tmp_path), **plugin}
        del given["tiered.storage.url"]
        with Broker(given) as running:
            create(running, **{"segment.bytes": "6000000"})
            for _ in range(4):
                produce(running)
            until(lambda: local_start(running) > RECORDS)
            found = consume(running, count=4 * RECORDS)
            assert found == [*range(RECORDS)] * 4
            tiered = running.node._services.tiered
            assert tiered is not None
            remote = tiered.logs.get(partition_of(running))
            assert remote is not None
            segments = [one for one in remote.all() if one.state is SegmentState.COPY_FINISHED]
        keys = {key.rpartition(".")[0] for key in server.objects if key.startswith("some/prefix/t")}
        assert keys >= {f"some/prefix/{main_path(one)}" for one in segments}
        assert decode_custom(segments[0].custom_metadata).object_prefix == "some/prefix/"
        assert any(len(data) > 5242880 for data in server.objects.values())
        assert server.uploads == {}
