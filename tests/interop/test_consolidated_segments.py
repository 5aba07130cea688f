"""Kafka's own tool reads what a diskless topic became in the tiered store."""

from __future__ import annotations

import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from skylog.testing import Broker
from skylog.tiered.segments import IndexType, RemoteSegment
from tests.consolidating import CONSOLIDATING, consolidating_broker
from tests.integration.broker_client import Client
from tests.integration.test_consolidation import tiered, until_copied
from tests.interop.support import java

TOPIC = "orders"
RECORDS = 300
SUFFIXES = {
    IndexType.OFFSET: ".index",
    IndexType.TIMESTAMP: ".timeindex",
    IndexType.PRODUCER_SNAPSHOT: ".snapshot",
}
COMPLAINT = re.compile(r"isvalid: false|Found timestamp mismatch|Mismatch|mismatch|exception", re.I)


def dump(*arguments: str) -> str:
    command = java("org.apache.kafka.tools.DumpLogSegments", *arguments, level="ERROR")
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not COMPLAINT.search(done.stdout), done.stdout
    return done.stdout


def unpack(broker: Broker, segment: RemoteSegment, folder: Path) -> None:
    """The files that Kafka would have had of a segment."""
    storage = tiered(broker).storage
    name = f"{segment.start_offset:020d}"
    log = broker.run(storage.fetch(segment, 0, segment.size))
    (folder / f"{name}.log").write_bytes(log)
    for kind, suffix in SUFFIXES.items():
        offset = segment.end_offset + 1 if suffix == ".snapshot" else segment.start_offset
        index = broker.run(storage.fetch_index(segment, kind))
        (folder / f"{offset:020d}{suffix}").write_bytes(index)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All segments of a partition; every codec, an idempotent producer."""
    made = tmp_path_factory.mktemp("kafka") / f"{TOPIC}-0"
    made.mkdir()
    configs = {**CONSOLIDATING, "internal.segment.bytes": "20000", "index.interval.bytes": "500"}
    bucket = tmp_path_factory.mktemp("bucket")
    with consolidating_broker(bucket) as broker, Client(broker.bootstrap) as client:
        client.create(TOPIC, 1, configs)
        rng, now_ms = random.Random(7), int(time.time() * 1000)
        for number in range(RECORDS):
            answer = client.produce(
                TOPIC,
                b"value %d " % number + rng.randbytes(300),
                codec=number % 5,
                producer_id=77,
                producer_epoch=2,
                base_sequence=number,
                timestamp=now_ms + number,
            )
            assert answer.error_code == 0, answer
        segments = until_copied(broker, TOPIC, 200)
        for one in segments:
            unpack(broker, one, made)
    assert len(list(made.glob("*.log"))) > 3
    return made


def test_batches_and_records(folder: Path) -> None:
    logs = sorted(folder.glob("*.log"))
    out = dump("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", out, re.M)]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 200
    assert out.count("isvalid: true") == len(offsets)
    assert {int(found) for found in re.findall(r"partitionLeaderEpoch: (\d+)", out)} == {0}


def test_indexes(folder: Path) -> None:
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    assert all(path.stat().st_size for path in indexes)
    names = ",".join(map(str, indexes))
    checked = dump("--index-sanity-check", "--files", names)
    assert checked.count("passed sanity check.") == len(indexes)
    assert dump("--deep-iteration", "--files", names).count("offset: ") > len(indexes)


def test_producer_snapshots(folder: Path) -> None:
    for path in sorted(folder.glob("*.snapshot")):
        out = dump("--files", str(path))
        assert "producerId: 77 producerEpoch: 2" in out
        assert f"lastSequence: {int(path.stem) - 1}" in out
