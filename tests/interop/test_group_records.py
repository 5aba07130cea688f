"""Kafka's own tool reads the groups and offsets that we write."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from skylog.groups.consumer.requests import RegexesResolved
from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.replicated.topic_log import TopicLog
from skylog.replication.partition import Partition
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from tests.unit.groups.consumer_support import ConsumerBench
from tests.unit.groups.support import Bench
from tests.unit.log.support import open_log
from tests.unit.replication.support import Host, state

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
    topic_id = Uuid(random.Random(1).randbytes(16))
    partition = Partition(Host(), "__consumer_offsets", 0, topic_id, log)
    partition.update(state())
    offsets = TopicLog(partition, ManualClock(), InlineExecutor())
    for pair in bench.log:
        offsets.append([pair])
    log.close()
    return directory / f"{0:020}.log"


def dumped(log: Path, jars: Path) -> list[str]:
    """The records of a log as Kafka's tool prints them."""
    command = ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments"]
    done = subprocess.run(
        [*command, "--offsets-decoder", "--files", str(log)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " key: " in line]


def test_kafka_reads_groups_and_offsets(tmp_path: Path, jars: Path) -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.commit(member, 1, offset=4711, metadata="note")
    bench.commit(group_id="old", offset=8, retention_ms=1_000, version=2)
    bench.ask(DeleteGroupsRequest(["old"]), 2)
    bench.leave(member)
    lines = dumped(write(tmp_path, bench), jars)
    assert len(lines) == len(bench.log)
    text = "\n".join(lines)
    assert '"offset":4711' in text
    assert '"metadata":"note"' in text
    assert '"expireTimestamp"' in text
    assert f'"memberId":"{member}"' in text
    assert '"protocolType":"consumer"' in text
    assert sum("<DELETE>" in line for line in lines) == 2


def test_kafka_reads_consumer_groups(tmp_path: Path, jars: Path) -> None:
    bench = ConsumerBench()
    first = bench.member("a", instance_id="i", rack_id="r", server_assignor="range")
    bench.member("b")
    first.beat()
    bench.beat("b", 3, subscribed_topic_regex="t.*")
    bench.run(RegexesResolved("group", 5, 1_700_000_000_000, {"t.*": frozenset({"t"})}))
    bench.join("classic")
    bench.leave("classic", "b")
    bench.beat("a", -1, instance_id="i")
    bench.ask(DeleteGroupsRequest(["group"]), 2)
    lines = dumped(write(tmp_path, bench), jars)
    assert len(lines) == len(bench.log)
    text = "\n".join(lines)
    for kind in (3, 4, 5, 6, 7, 8, 16):
        assert f'key: {{"type":"{kind}"' in text, kind
    for part in (
        '"instanceId":"i"',
        '"rackId":"r"',
        '"serverAssignor":"range"',
        '"rebalanceTimeoutMs":60000',
        '"metadataHash":-954534464913970981',
        '"topics":["t"],"version":5,"timestamp":1700000000000',
        '"partitionsPendingRevocation":[{"topicId"',
        '"assignmentEpochs":[2,2]',
        '"classicMemberMetadata":{"sessionTimeoutMs":10000',
    ):
        assert part in text, part
