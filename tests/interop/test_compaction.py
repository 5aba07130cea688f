"""Kafka reads compacted logs of ours: its tool the segments, its broker the directory."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.wire.batch import Compression
from tests.interop.support import Process, java, start_skylog
from tests.ports import free_port
from tests.unit.log.compaction_support import CompactedLog
from tests.unit.log.support import NOW

pytestmark = pytest.mark.interop

TOPIC = "compacted"
QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "min.cleanable.dirty.ratio": "0.0",
    "file.delete.delay.ms": "0",
}


def dump(*arguments: str) -> str:
    command = java("org.apache.kafka.tools.DumpLogSegments", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


async def test_dump_log_reads_compacted_segments(tmp_path: Path) -> None:
    world = CompactedLog(tmp_path / "topic-0")
    for number in range(150):
        world.append(
            (b"k%d" % (number % 40), b"%d" % number),
            (b"dead", None if number == 120 else b"x"),
            codec=list(Compression)[number % 5],
            producer=(77, 0, 2 * number),
        )
        if number == 120:
            world.append((b"other", None))
    world.roll()
    await world.compact()
    world.log.close()
    directory = world.directory
    logs = ",".join(str(path) for path in sorted(directory.glob("*.log")))
    out = dump("--deep-iteration", "--print-data-log", "--files", logs)
    assert "isvalid: false" not in out
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", out, re.MULTILINE)]
    assert offsets == [record.offset for record in world.records()]
    assert out.count("isvalid: true") == len(world.batches())
    assert f"deleteHorizonMs: OptionalLong[{NOW + 10_000}]" in out
    indexes = ",".join(str(path) for path in sorted(directory.glob("*index")))
    verified = dump("--deep-iteration", "--files", indexes)
    assert not re.search(r"exception|mismatch|not found|invalid|corrupt", verified, re.IGNORECASE)


def everything(address: str) -> list[tuple[int, bytes, bytes | None]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            **QUIET,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int, bytes, bytes | None]] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append((message.offset(), message.key(), message.value()))
    raise AssertionError("no end of the partition")


def compacted(directory: Path, settings: dict[str, str]) -> list[tuple[int, bytes, bytes | None]]:
    """The records of a topic that skylog compacted, as clients see them."""
    node = start_skylog(directory, {"log.cleaner.backoff.ms": "50", **settings})
    try:
        admin = confluent.AdminClient({"bootstrap.servers": node.bootstrap, **QUIET})
        topic = confluent.NewTopic(TOPIC, 1, config=COMPACTED)
        admin.create_topics([topic])[TOPIC].result(30)
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": node.bootstrap, "enable.idempotence": True, **QUIET}
        )
        for number in range(2000):
            producer.produce(TOPIC, f"value {number}", f"key-{number % 10}")
            if number % 10 == 9:
                producer.flush(30)
        producer.produce(TOPIC, None, "key-3")
        assert producer.flush(30) == 0
        deadline = time.monotonic() + 60
        while len(everything(node.bootstrap)) > 200:
            assert time.monotonic() < deadline, "the topic is not compacted"
            time.sleep(0.1)
        return everything(node.bootstrap)
    finally:
        node.process.stop()


@pytest.mark.parametrize("clean", [True, False])
def test_kafka_goes_on_with_a_directory_that_we_compacted(tmp_path: Path, clean: bool) -> None:
    broker, controller = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"
    found = compacted(tmp_path, {"listeners": listeners})
    data = tmp_path / "data"
    checkpoint = (data / "cleaner-offset-checkpoint").read_text().splitlines()
    assert checkpoint[0] == "0"
    assert any(line.startswith(f"{TOPIC} 0 ") for line in checkpoint)
    # Kafka does not know diskless topics.
    shutil.rmtree(data / "diskless-objects", ignore_errors=True)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"listeners={listeners}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
        f"log.dirs={data}\n"
        "log.cleaner.threads=1\n"
    )
    process = Process(java("kafka.Kafka", str(config), heap="512m"), tmp_path / "kafka.log")
    try:
        process.await_line(r"Kafka Server started")
        theirs = everything(f"127.0.0.1:{broker}")
        # Kafka may have compacted further: the latest record of each key is the same.
        assert {key: (at, value) for at, key, value in theirs} == {
            key: (at, value) for at, key, value in found
        }
        assert set(theirs) <= set(found)
    finally:
        process.stop()
