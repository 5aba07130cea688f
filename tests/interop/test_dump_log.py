"""Kafka's tool reads what we write without complaints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.tiered.assembly import SegmentAssembler, snapshots
from skylog.wire.batch import split_batches
from tests.unit.log.support import NOW, batch, open_log

pytestmark = pytest.mark.interop

COMPLAINT = re.compile(r"exception|mismatch|non-consecutive|not found|invalid|corrupt", re.I)

FIRST_OFFSET = re.compile(r"Non-consecutive offsets in .*\n\s*-1 is followed by \d+\n")


@pytest.fixture(scope="module")
def jars() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    found = Path(os.environ.get("SKYLOG_KAFKA_JARS") or f"{cache}/skylog/kafka-4.3.1/lib")
    if not found.is_dir() or shutil.which("java") is None:
        pytest.skip("needs Java and Kafka's jars (SKYLOG_KAFKA_JARS)")
    return found


def dump(jars: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The tool expects every file to begin at offset 0: ignore that.
    complaints = FIRST_OFFSET.sub("", done.stderr)
    assert not COMPLAINT.search(complaints), complaints
    return done.stdout


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Two full segments and a third, closed; every codec; an idempotent producer."""
    found = open_log(tmp_path / "topic-0", LogConfig(segment_bytes=6000, index_interval_bytes=500))
    for number in range(120):
        values = [b"value %d.%d" % (number, index) + b"x" * 40 for index in range(3)]
        placed = batch(
            *values,
            timestamps=[NOW + 10 * number, NOW + 10 * number + 7, NOW + 10 * number + 3],
            codec=number % 5,
            producer=(77, 2, 3 * number),
        )
        found.appender.append([placed], number // 50, NOW)
    assert len(found.segments) > 2
    found.close()
    return found


def test_batches_and_records(jars: Path, log: Log) -> None:
    logs = sorted(Path(log.directory).glob("*.log"))
    out = dump(
        jars,
        "--deep-iteration",
        "--print-data-log",
        "--files",
        ",".join(map(str, logs)),
    )
    assert not COMPLAINT.search(out)
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", out, re.M)]
    assert offsets == list(range(360))
    assert "payload: value 119.2" in out
    assert out.count("isvalid: true") == 120
    assert {int(e) for e in re.findall(r"partitionLeaderEpoch: (\d+)", out)} == {0, 1, 2}


def test_indexes(jars: Path, log: Log) -> None:
    directory = Path(log.directory)
    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    assert all(path.stat().st_size for path in indexes)
    names = ",".join(map(str, indexes))
    checked = dump(jars, "--index-sanity-check", "--files", names)
    assert checked.count("passed sanity check.") == len(indexes)
    verified = dump(jars, "--deep-iteration", "--files", names)
    assert not COMPLAINT.search(verified)
    assert verified.count("offset: ") >= 30


def test_producer_snapshots(jars: Path, log: Log) -> None:
    last = max(Path(log.directory).glob("*.snapshot"))
    out = dump(jars, "--files", str(last))
    assert "producerId: 77 producerEpoch: 2" in out
    assert "lastSequence: 359" in out
    assert not COMPLAINT.search(out)


def test_after_a_crash(jars: Path, log: Log) -> None:
    path = max(Path(log.directory).glob("*.log"))
    path.write_bytes(path.read_bytes()[:-30])
    for index in Path(log.directory).glob("*index"):
        index.write_bytes(b"\xff" * 24)
    again = open_log(Path(log.directory), log.config)
    assert again.log_end_offset == 357
    again.close()
    directory = Path(log.directory)
    files = sorted([*directory.glob("*.log"), *directory.glob("*index")])
    out = dump(jars, "--deep-iteration", "--files", ",".join(map(str, files)))
    assert not COMPLAINT.search(out)


def test_assembled_segments(jars: Path, log: Log, tmp_path: Path) -> None:
    """Segments that are assembled from batches, as by tiered storage, equal appended ones."""
    folder = tmp_path / "assembled-0"
    folder.mkdir()
    assembled = []
    for path in sorted(Path(log.directory).glob("*.log")):
        assembler = SegmentAssembler(int(path.stem), interval_bytes=500)
        for one in split_batches(memoryview(path.read_bytes())):
            assembler.add(one.buffer)
        assembled.append(assembler.finish())
        (folder / path.name).write_bytes(path.read_bytes())
    for segment, snapshot in zip(assembled, snapshots(assembled), strict=True):
        for name, content in segment.files(snapshot).items():
            (folder / name).write_bytes(content)
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    names = ",".join(map(str, indexes))
    checked = dump(jars, "--index-sanity-check", "--files", names)
    assert checked.count("passed sanity check.") == len(indexes)
    assert not COMPLAINT.search(dump(jars, "--deep-iteration", "--files", names))
    out = dump(jars, "--files", str(max(folder.glob("*.snapshot"))))
    assert "lastSequence: 359" in out
