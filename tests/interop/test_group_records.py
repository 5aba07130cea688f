"""Kafka's own tool reads the groups and offsets that we write."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from skylog.groups.offsets_log import OffsetsLog
from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.replication.partition import Partition
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from tests.unit.groups.support import Bench
from tests.unit.log.support import open_log

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def jars() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    found = Path(os.environ.get("SKYLOG_KAFKA_JARS") or f"{cache}/skylog/kafka-4.3.1/lib")
    if not found.is_dir() or shutil.which("java") is None:
        pytest.skip("needs Java and Kafka's jars (SKYLOG_KAFKA_JARS)")
    return found


def write(directory: Path, bench: Bench) -> Path:
    """The bench's records in a real log; returns its file."""
    log = open_log(directory)
    partition = Partition(1, "__consumer_offsets", 0, Uuid(random.Random(1).randbytes(16)), log)
    partition.update(leader_id=1, leader_epoch=0, replicas=[1], isr=[1])
    offsets = OffsetsLog(partition, ManualClock(), InlineExecutor())
    for pair in bench.log:
        offsets.append([pair])
    log.close()
    return directory / f"{0:020}.log"


def test_kafka_reads_groups_and_offsets(tmp_path: Path, jars: Path) -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.commit(member, 1, offset=4711, metadata="note")
    bench.commit(group_id="old", offset=8, retention_ms=1_000, version=2)
    bench.ask(DeleteGroupsRequest(["old"]), 2)
    bench.leave(member)
    command = ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments"]
    done = subprocess.run(
        [*command, "--offsets-decoder", "--files", str(write(tmp_path, bench))],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if " key: " in line]
    assert len(lines) == len(bench.log)
    text = "\n".join(lines)
    assert '"offset":4711' in text
    assert '"metadata":"note"' in text
    assert '"expireTimestamp"' in text
    assert f'"memberId":"{member}"' in text
    assert '"protocolType":"consumer"' in text
    assert sum("<DELETE>" in line for line in lines) == 2
